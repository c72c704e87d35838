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
  // A writer whose event was replaced. Rings may still hold its records.
  struct Retired {
    uint64_t id = 0;
    Writer writer;
    uint64_t until_ns = 0;  // Its event was closed at this time.
  };

  // The steps of Open: sampler_impl.cc and sampler_live.cc.
  absl::Status OpenAll();
  absl::Status OpenLive();
  // Returns the maximum for the kernel's rings, and for those of live stacks: memory_bytes, or half of it with live
  // stacks.
  size_t RingMemory() const;
  absl::StatusOr<StackRings::Shape> ShapeOfStacks() const;
  // Chooses ring_bytes_ for `places` rings in each set.
  absl::Status ChooseSize(size_t places);
  absl::Status OpenRings(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  absl::Status OpenRingsOnce(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  size_t ring_sets() const { return plan_.options().mode == RingMode::kOverwrite ? 2 : 1; }
  // `tracking`: with the side band; otherwise only threads that have rings.
  absl::Status AttachThreads(bool tracking = true);
  absl::Status AttachOne(pid_t tid, bool tracking);
  absl::Status AttachToRingSets(pid_t tid, bool tracking);
  absl::Status AddLateRings(pid_t tid);
  absl::Status AddRingsOf(pid_t tid, size_t bytes);
  void DropRingsOf(pid_t tid);
  absl::Status ExplainDescriptors(const absl::Status& status, size_t threads, size_t cpus) const;
  absl::Status OpenPoll();
  absl::Status Poll(const RingSlot& slot);
  // Rebuilds ids, writers and the merge from the sets' rings and events. New writers write from `since_ns` on.
  void Index(uint64_t since_ns);

  // Returns FailedPrecondition in a forked child.
  absl::Status CheckHere() const;
  // Applies the plan's rates to all events. `on`: the events of active_ are enabled.
  absl::Status ApplyRates(bool on);
  absl::Status ApplyRate(RingEvent& ring_event, bool on);
  absl::Status OpenAtNewRates();
  bool HasRecords();
  absl::Status PauseRings(bool pause) const;
  // What each sample of `ring_event` represents.
  uint64_t WeightNow(const RingEvent& ring_event) const;
  // Forgets the weights of samples up to `drained_ns`, which have all been read.
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
  // Adds the rings of live stacks to the merge.
  void IndexStacks();
  // Returns true if the stack belongs to the latest sample with this number.
  bool IsOfLastSample(const RawRecord& raw, uint32_t number) const;
  void GiveBackStackRings();
  void FillStackAccounting(size_t event, EventAccounting& accounting) const;
  // Notes a FORK or EXIT record.
  void TakeTask(const RawRecord& raw);
  // Rings::kPerThread: opens rings for new threads and closes those of ended ones. `drained`: all records that the
  // rings held at the last drain have been read.
  void FollowThreads(bool drained);
  bool follows_threads() const { return plan_.many_threads() && !plan_.per_cpu_rings(); }
  // The steps of FollowThreads: sampler_threads.cc.
  void AttachNewcomers();
  void CountMissed();
  bool AttachListed();
  bool AttachNewcomer(pid_t tid);
  absl::Status SetUpRingsOf(pid_t tid);
  void Leave(pid_t tid);
  void FindEnded();
  void RetireEnded();
  void ForgetTasks();
  // Notes a LOST record.
  void TakeLoss(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns);
  // Returns the index of the sample's writer, or IdTable::kNone if no event of this sampler wrote it. Sets `foreign` if
  // the sample was prepared for another sampler's event.
  uint32_t WriterOf(const RawRecord& sample, bool& foreign) const;
  uint32_t ForeignWriterOf(const RawRecord& sample) const;
  std::optional<uint64_t> TimeOf(const RawRecord& raw) const;
  InheritanceMap& InheritanceOf(const Writer& writer);
  // Returns false if the record is a duplicate.
  bool Counts(const RawRecord& raw, const Writer& writer);
  // Returns how many events (of a clock: nanoseconds) a delivered sample represents.
  uint64_t PeriodOf(const RawRecord& sample) const;
  uint64_t WeightOf(const Writer& writer, uint64_t time_ns, bool foreign) const;
  // Returns false if the sample is a duplicate, also one of an overlap.
  bool CountsOnce(const RawRecord& sample, const Writer& writer, RingSlot& slot, uint64_t time_ns, bool foreign);
  // Removes rings whose owner has ended from epoll_.
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
  // SettleBeforeDrain is called at the start of a drain, SettleAtEnd for the statistics.
  void SettleBeforeDrain();
  void SettleAtEnd();

  // Called after each drain: measures the cost, and carries out a decision.
  void EnforceBudget(Visit visit, size_t max_records);
  // Carry out SetStackBytes and SetRate.
  void AdoptStack(Visit visit, size_t max_records);
  void AdoptRates(Visit visit, size_t max_records);
  // Enables events that could not be enabled before.
  void SwitchOnStuck();
  void BeginWindow();
  void AddKernelCost();
  // The ways to carry out a decision: sampler_overhead.cc.
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
  SamplingLevel level_;  // The current level.
  // Declared before the event sets: destroyed after the events that send signals.
  LiveStackHandler::Owner live_handler_;
  IdTable numbers_;            // From the numbers of signals to indices of writers.
  uint64_t without_ring_ = 0;  // Signals without a ring, as of the last drain.
  // Signals by descriptors do not say whether they are stale. So, by signal number, the ip of the last sample; and by
  // event, the number of stacks whose thread had continued since its sample.
  std::unordered_map<uint32_t, uint64_t> last_ips_;
  std::vector<uint64_t> gone_on_;
  RingSet active_;  // The set that is being written.
  RingSet spare_;   // kOverwrite: the set that takes over at the next snapshot, or holds the last one.
  RingSet side_{RingSet::Role::kSideBand};
  IdTable ids_;
  std::vector<Writer> writers_;
  // The only writer that can have written samples with a foreign id; kNone if there are several.
  uint32_t stand_in_ = IdTable::kNone;
  uint64_t latest_ns_ = UINT64_MAX;  // Maximum time of records in this drain.
  InheritanceMap inheritance_;       // Owners of events.
  InheritanceMap side_inheritance_;  // Owners of side-band events, which are not replaced when the others are.
  Accounting accounting_;
  std::vector<RingEvent> fresh_, fresh_spare_;  // New events that are about to take over.
  InheritanceMap fresh_inheritance_;
  std::vector<Retired> retired_;  // Oldest first.
  uint64_t drained_ns_ = 0;       // All records before this time have been read.
  InheritanceMap retired_inheritance_;
  Overlap overlap_;
  uint32_t wanted_stack_ = 0;  // Requested bytes of a dump; 0 means no request.
  // Events are to be replaced: threads that have inherited them still have the old rate, or their owners are no longer
  // known.
  bool anew_due_ = false;
  uint64_t window_begun_ns_ = 0, window_cpu_ns_ = 0, window_lost_ = 0;
  std::vector<uint64_t> costed_;  // By event: samples that kernel_cpu_ns includes.
  uint64_t costed_lost_ = 0;
  ring::TimeMerge merge_;
  sys::OwnedFd epoll_;
  size_t ring_bytes_ = 0;
  absl::Status shrunk_;
  std::vector<pid_t> born_;     // Threads that started since the last drain.
  bool rescan_ = false;         // There may be other new threads, without a record.
  std::vector<pid_t> refused_;  // Threads that could not be attached.
  std::vector<pid_t> ending_;   // Threads that ended in this drain; their rings may still hold records.
  std::vector<pid_t> ended_;    // Threads that ended in the drain before.
  uint64_t threads_missed_ = 0;
  std::vector<std::byte> state_;  // Synthesized records that are still to be delivered.
  size_t state_given_ = 0;        // Bytes of state_ that were delivered.
  uint64_t snapshot_ns_ = 0;      // Time of the last snapshot, if it is still to be drained; else 0.
  size_t given_ = 0;              // Number of records that this drain has delivered.
  bool running_ = false;
  bool paused_ = false;
  bool in_forked_child_ = false;     // The object is a forked child's copy.
  bool paused_since_ = false;        // There was a pause since losses were settled: some of them count as `paused`.
  bool full_since_ = false;          // A ring was nearly full since then: some losses may be real.
  sys::ForkListener fork_listener_;  // Declared last: registered only after everything that it releases exists.
};

// Visits the slots of all ring sets, in the order of their numbers: LossInterval::ring.
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
