// The implementation of Sampler.
//
// sampler_impl.cc opens and attaches; sampler_control.cc switches and pauses; sampler_drain.cc reads;
// sampler_threads.cc follows threads that come and go; sampler_accounting.cc settles losses; sampler_overhead.cc keeps
// the cost within its budget; sampler_live.cc has stacks that threads walk themselves.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "src/ring/time_merge.h"
#include "src/sample/accounting.h"
#include "src/sample/id_table.h"
#include "src/sample/inheritance_map.h"
#include "src/sample/live_stack_handler.h"
#include "src/sample/overhead_controller.h"
#include "src/sample/plan.h"
#include "src/sample/ring_set.h"
#include "src/sample/sample_weight.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sample {

using Visit = absl::FunctionRef<void(const SamplerRecord&)>;

// Returns the time in nanoseconds.
uint64_t Now(clockid_t clock);

// Returns the threads of the target from /proc, or {kShared} for whole CPUs.
absl::StatusOr<std::vector<pid_t>> ThreadsNow(const Plan& plan);

class SamplerImpl {
 public:
  static absl::StatusOr<std::unique_ptr<SamplerImpl>> Open(Plan plan);
  explicit SamplerImpl(Plan plan);
  ~SamplerImpl();

  absl::Status Start();
  absl::Status Stop();
  absl::Status Pause();
  absl::Status Resume();
  absl::Status SetRate(size_t event, SampleRate rate);
  absl::Status SetStackBytes(uint32_t bytes);
  size_t Drain(Visit visit, size_t max_records);
  absl::StatusOr<Sampler::Takeover> Snapshot();
  SamplerStats Stats();

  const Plan& plan() const { return plan_; }
  int poll_fd() const { return epoll_.get(); }
  size_t ring_bytes() const { return ring_bytes_; }
  size_t rings() const { return active_.rings.size(); }
  const absl::Status& shrunk() const { return shrunk_; }
  bool user_only(size_t event) const;

 private:
  // The event and thread that write under an id.
  struct Writer {
    uint32_t event = RingEvent::kTracking;
    pid_t tid = 0;
    uint64_t id = 0;
    uint64_t rate = 0;    // Current rate: a period, or a frequency in Hz.
    SampleWeight weight;  // What each of its samples represents.
    bool retired = false;
    bool stackless = false;  // Its samples have no stack because of the budget.
  };
  // The interval in which events were replaced and both sets were enabled. Samples of the old set count before `at_ns`,
  // samples of the new set from `at_ns` on.
  struct Overlap {
    uint64_t from_ns = UINT64_MAX, at_ns = 0, to_ns = 0;

    bool Has(uint64_t time_ns) const { return from_ns <= time_ns && time_ns <= to_ns; }
  };
  struct Retired {
    uint64_t id = 0;
    Writer writer;
    uint64_t until_ns = 0;  // it writes no records after this time
  };

  absl::Status OpenAll();
  absl::Status OpenLive();
  // Returns the maximum for the kernel's rings, and for those of live stacks: memory_bytes, or half of it with live
  // stacks.
  size_t RingMemory() const;
  absl::StatusOr<StackRings::Shape> ShapeOfStacks() const;
  absl::Status ChooseSize(size_t places);
  absl::Status OpenRings(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  absl::Status OpenRingsOnce(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  size_t ring_sets() const { return plan_.options().mode == RingMode::kOverwrite ? 2 : 1; }
  // `tracking`: with the side band; else only threads that have rings.
  absl::Status AttachThreads(bool tracking = true);
  absl::Status AttachOne(pid_t tid, bool tracking);
  absl::Status AttachToRingSets(pid_t tid, bool tracking);
  absl::Status AddLateRings(pid_t tid);
  absl::Status AddRingsOf(pid_t tid, size_t bytes);
  void DropRingsOf(pid_t tid);
  absl::Status ExplainDescriptors(const absl::Status& status, size_t threads, size_t cpus) const;
  absl::Status OpenPoll();
  absl::Status Poll(const RingSlot& slot);
  // Makes ids, writers and the merge those of the set's rings and events. New writers write from `since_ns` on.
  void Index(uint64_t since_ns);

  absl::Status CheckHere() const;
  // Brings all events to the rates of the plan. `on`: the set's events are switched on.
  absl::Status ApplyRates(bool on);
  absl::Status ApplyRate(RingEvent& ring_event, bool on);
  absl::Status OpenAtNewRates();
  bool HasRecords();
  absl::Status PauseRings(bool pause) const;
  // What each sample of `ring_event` represents.
  uint64_t WeightNow(const RingEvent& ring_event) const;
  void ForgetWeights(uint64_t drained_ns);

  // These return false if max_records was reached before the end.
  bool DeliverState(Visit visit, size_t max_records);
  bool DrainUntil(uint64_t horizon_ns, Visit visit, size_t max_records = SIZE_MAX);
  RingSlot& SlotOf(size_t ring);
  // These return how many records were read.
  uint64_t DrainOne(Visit visit, size_t max_records);
  uint64_t DrainMany(uint64_t horizon_ns, Visit visit, size_t max_records = SIZE_MAX);
  size_t EndDrain(uint64_t begun_cpu_ns);
  // Returns true if all records that the rings of samples held at the last drain have been read.
  bool DrainOverwritten(Visit visit);
  void DrainBackwards(RingSet& set, Visit visit);
  template <class Each>
  void ForEachSlot(Each&& each);
  template <class Each>
  void ForEachEvent(Each&& each);
  template <class Each>
  void ForEachInheritanceMap(Each&& each);
  void Deliver(const RawRecord& raw, RingSlot& slot, Visit visit);
  void DeliverSample(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit);
  void DeliverOther(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit);
  SamplerRecord ToPublic(const RawRecord& raw, uint32_t event) const;
  void DeliverStack(const RawRecord& raw, Visit visit);
  // Returns the time up to which all records have been written, except those of running handlers.
  uint64_t Horizon() const;
  void IndexStacks();
  bool IsOfLastSample(const RawRecord& raw, uint32_t number) const;
  void GiveBackStackRings();
  void FillStackAccounting(size_t event, EventAccounting& accounting) const;
  void TakeTask(const RawRecord& raw);
  // Rings::kPerThread: rings for threads that were born, none for those that have ended.
  // `drained`: all records that the rings held at the last drain have been read.
  void FollowThreads(bool drained);
  bool follows_threads() const { return plan_.many_threads() && !plan_.per_cpu_rings(); }
  void AttachNewcomers();
  void CountMissed();
  bool AttachListed();
  bool AttachNewcomer(pid_t tid);
  absl::Status SetUpRingsOf(pid_t tid);
  void Leave(pid_t tid);
  void FindEnded();
  void RetireEnded();
  void ForgetTasks();
  void TakeLoss(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns);
  // Returns IdTable::kNone if it is no event of this sampler. Sets `foreign` if the sample was prepared for another
  // sampler's event.
  uint32_t WriterOf(const RawRecord& sample, bool& foreign) const;
  uint32_t ForeignWriterOf(const RawRecord& sample) const;
  std::optional<uint64_t> TimeOf(const RawRecord& raw) const;
  InheritanceMap& InheritanceOf(const Writer& writer);
  bool Counts(const RawRecord& raw, const Writer& writer);
  // Returns how many events (of a clock: nanoseconds) a delivered sample represents.
  uint64_t PeriodOf(const RawRecord& sample) const;
  uint64_t WeightOf(const Writer& writer, uint64_t time_ns, bool foreign) const;
  bool CountsOnce(const RawRecord& sample, const Writer& writer, RingSlot& slot, uint64_t time_ns, bool foreign);
  void DropHungUp();
  void DropHungUp(int fd);

  // Adds the losses since the last call to the accounting.
  void SettleLosses(uint64_t EventAccounting::*into);
  void SettleEvent(RingEvent& ring_event, uint64_t EventAccounting::*into);
  // Returns what losses since the last settlement count as.
  uint64_t EventAccounting::*LossesNow() const;
  // Adds the counts of an event that is about to be closed to the accounting.
  void SettleClosed(RingEvent& ring_event);
  // Returns false if the count could not be read and its last known value was added.
  bool AddCount(RingEvent& ring_event, EventAccounting& event) const;
  void SettleBeforeDrain();
  void SettleAtEnd();

  // Called after each drain: measures the cost, and carries out a decision.
  void EnforceBudget(Visit visit, size_t max_records);
  void AdoptStack(Visit visit, size_t max_records);
  void AdoptRates(Visit visit, size_t max_records);
  void SwitchOnStuck();
  void BeginWindow();
  void AddKernelCost();
  void CarryOut(SamplerDecision& decision, Visit visit, size_t max_records);
  bool NeedsAnew(const SamplingLevel& level) const;
  absl::Status Change(const SamplingLevel& level, SamplerDecision& decision, Visit visit, size_t max_records);
  absl::Status ChangeRates(const SamplingLevel& level);
  absl::Status OpenAnew(const SamplingLevel& level);
  absl::Status ReplaceEvents();
  void TakeOver(const SamplingLevel& level, uint64_t since_ns);
  void Retire(RingSet& set, std::vector<RingEvent>& fresh);

  void OnForkedChild();

  Plan plan_;
  OverheadController overhead_;
  SamplingLevel level_;  // in force
  // Declared before the event sets: destroyed after the events that send signals.
  LiveStackHandler::Owner live_handler_;
  IdTable numbers_;  // of signals: to writers
  uint64_t without_ring_ = 0;
  // Where signals do not say that they are stale: where the last sample was, by the number of its signal, and how many
  // stacks were of threads that had gone on since, by event.
  std::unordered_map<uint32_t, uint64_t> last_ips_;
  std::vector<uint64_t> gone_on_;
  RingSet active_;  // what is being written
  RingSet spare_;   // kOverwrite: what takes over at the next snapshot, or holds the last one
  RingSet side_{RingSet::Role::kSideBand};
  IdTable ids_;
  std::vector<Writer> writers_;
  // Who has written samples under an id that is not ours, if only one event can have.
  uint32_t stand_in_ = IdTable::kNone;
  uint64_t latest_ns_ = UINT64_MAX;  // no record of this drain can be later
  InheritanceMap inheritance_;       // whose events are whose own
  InheritanceMap side_inheritance_;  // whose side band: events are opened anew now and then, the side band is not
  Accounting accounting_;
  std::vector<RingEvent> fresh_, fresh_spare_;  // opened anew, to take over
  InheritanceMap fresh_inheritance_;
  std::vector<Retired> retired_;  // writers that were replaced, oldest first; rings may still hold their records
  uint64_t drained_ns_ = 0;       // all records before this time have been read
  InheritanceMap retired_inheritance_;
  Overlap overlap_;
  uint32_t wanted_stack_ = 0;  // bytes of a dump, when that is to change
  // Events are to be opened anew: threads that have inherited them still go by the old rate, or whose they are is no
  // longer known.
  bool anew_due_ = false;
  uint64_t window_begun_ns_ = 0, window_cpu_ns_ = 0, window_lost_ = 0;
  std::vector<uint64_t> costed_;  // samples that are in kernel_cpu_ns, by event
  uint64_t costed_lost_ = 0;
  ring::TimeMerge merge_;
  sys::OwnedFd epoll_;
  size_t ring_bytes_ = 0;
  absl::Status shrunk_;
  std::vector<pid_t> born_;     // threads, since the last drain
  bool rescan_ = false;         // there may be others, of which no record tells
  std::vector<pid_t> refused_;  // could not be attached
  std::vector<pid_t> ending_;   // have ended in this drain: their rings may still hold something
  std::vector<pid_t> ended_;    // in the one before
  uint64_t threads_missed_ = 0;
  std::vector<std::byte> state_;  // at the start, as records that are still to be delivered
  size_t state_given_ = 0;        // bytes of them that have been
  uint64_t snapshot_ns_ = 0;      // when spare_ was taken over from, and is to be drained; 0: it is not
  size_t given_ = 0;              // records that the drain under way has handed out
  bool running_ = false;
  bool paused_ = false;
  bool in_forked_child_ = false;  // This is a forked child's copy.
  bool paused_since_ = false;  // since losses were settled: some of them are `paused`
  bool full_since_ = false;    // since then: some may be real ones
  sys::ForkListener fork_listener_;  // declared last: registered only after everything that it releases exists
};

// Of all ring sets. Rings in the order in which they are numbered: LossInterval::ring.
template <class Each>
void SamplerImpl::ForEachSlot(Each&& each) {
  for (RingSet* const set : {&active_, &side_, &spare_}) {
    for (const std::unique_ptr<RingSlot>& slot : set->rings) each(*slot);
  }
}

template <class Each>
void SamplerImpl::ForEachEvent(Each&& each) {
  for (RingSet* const set : {&active_, &spare_, &side_}) {
    for (RingEvent& ring_event : set->events) each(ring_event);
  }
}

// Includes the inheritance maps of events that are about to replace others, and of those that were replaced.
template <class Each>
void SamplerImpl::ForEachInheritanceMap(Each&& each) {
  each(inheritance_);
  each(side_inheritance_);
  each(retired_inheritance_);
  if (!fresh_.empty()) each(fresh_inheritance_);
}

}  // namespace perfkit::sample
