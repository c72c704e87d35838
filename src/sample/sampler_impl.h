// The implementation of Sampler: which part does what, in which order.
//
//   Plan ──> LiveStackReader, SamplerRings, ThreadAttacher             Open
//   SamplerRings ──RingDrain──> WriterIndex ──> DuplicateFilter ──> visitor, Accounting             Drain: each record
//   ThreadTracker, LossAccounting, SamplingBudget ──> EventReplacer                                 around each drain
//
// sampler_impl.cc opens, switches and pauses; sampler_drain.cc reads, and carries out what the reading leads to.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "perfkit/sampler.h"
#include "src/sample/accounting.h"
#include "src/sample/duplicate_filter.h"
#include "src/sample/event_replacer.h"
#include "src/sample/live_stack_reader.h"
#include "src/sample/loss_accounting.h"
#include "src/sample/plan.h"
#include "src/sample/ring_drain.h"
#include "src/sample/sampler_rings.h"
#include "src/sample/sampling_budget.h"
#include "src/sample/synthesis.h"
#include "src/sample/thread_attacher.h"
#include "src/sample/thread_tracker.h"
#include "src/sample/writer_index.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sample {

using Visit = absl::FunctionRef<void(const SamplerRecord&)>;

class SamplerImpl {
 public:
  static absl::StatusOr<std::unique_ptr<SamplerImpl>> Open(const SamplerOptions& options, const Target& target);
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
  std::vector<SamplerCount> Counts();

  const Plan& plan() const { return plan_; }
  int poll_fd() const { return rings_.poll_fd(); }
  size_t ring_bytes() const { return rings_.ring_bytes(); }
  size_t rings() const { return rings_.active.rings.size(); }
  const absl::Status& ring_status() const { return rings_.ring_status(); }
  bool target_ended() const { return rings_.target_ended(); }
  bool user_only(size_t event) const;

 private:
  enum class State : uint8_t { kStopped, kRunning, kInForkedChild };

  bool is_running() const { return state_ == State::kRunning; }
  uint64_t Now() const;
  // Returns FailedPrecondition in a forked child.
  absl::Status CheckHere() const;
  static absl::StatusOr<std::unique_ptr<SamplerImpl>> OpenAs(const SamplerOptions& options, const Target& target);
  static absl::StatusOr<std::unique_ptr<SamplerImpl>> OpenSparing(const SamplerOptions& options, const Target& target);
  absl::Status OpenAll();
  // Rebuilds the index and the merge from the sets' rings and events. New writers write from `since_ns` on.
  void Index(uint64_t since_ns);
  // Applies the plan's rates to all events. `on`: the events of the active set are enabled.
  absl::Status ApplyRates(bool on);
  absl::Status ApplyRate(RingEvent& ring_event, bool on);
  absl::Status OpenAtNewRates();
  void OnForkedChild();

  // These return false if max_records was reached before the end.
  bool DeliverStates(uint64_t horizon_ns, Visit visit, size_t max_records);
  bool DrainUntil(uint64_t horizon_ns, Visit visit, size_t max_records = SIZE_MAX);
  size_t EndDrain(uint64_t begun_cpu_ns);
  void DrainOverwritten(Visit visit);
  void DrainBackwards(RingSet& set, Visit visit);
  void Deliver(const RawRecord& raw, RingSlot& slot, Visit visit);
  void DeliverSample(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, bool has_own_time, Visit visit);
  void DeliverOther(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit);
  void DeliverStack(const RawRecord& raw, Visit visit);
  SamplerRecord ToPublic(const RawRecord& raw, uint32_t event, uint64_t time_ns) const;
  // Returns how many events (of a clock: nanoseconds) a delivered sample represents.
  uint64_t PeriodOf(const RawRecord& sample) const;
  // Note a FORK or EXIT record; and that some were lost.
  void TakeTask(const RawRecord& raw);
  void ForgetTasks();

  // Rings::kPerThread: opens rings for new threads and closes those of ended ones.
  bool follows_threads() const { return plan_.many_threads() && !plan_.per_cpu_rings(); }
  void FollowThreads();
  void AttachNewcomers();
  // Removes everything of thread `tid`, except its counts.
  void Leave(pid_t tid);
  void FindEnded();

  // Called after each drain: measures the cost, and carries out a decision.
  void EnforceBudget(Visit visit, size_t max_records);
  // Lowers the rate if a handler has disabled events, because a thread did not advance.
  void LetThreadsAdvance(Visit visit, size_t max_records);
  // Carry out SetStackBytes and SetRate.
  void AdoptStack(Visit visit, size_t max_records);
  void AdoptRates(Visit visit, size_t max_records);
  // Returns true if it succeeded.
  bool CarryOut(SamplerDecision& decision, Visit visit, size_t max_records);
  bool NeedsAnew(const SamplingLevel& level) const;
  absl::Status Change(const SamplingLevel& level, SamplerDecision& decision, Visit visit, size_t max_records);
  absl::Status ChangeRates(const SamplingLevel& level);
  absl::Status ReplaceEvents();
  void TakeOver(const SamplingLevel& level, uint64_t since_ns);

  Plan plan_;
  SamplingLevel level_;   // The current level.
  LiveStackReader live_;  // Declared before the rings: destroyed after the events that send signals.
  SamplerRings rings_;
  WriterIndex writers_;
  DuplicateFilter duplicates_;
  ThreadAttacher attacher_;
  ThreadTracker threads_;
  Accounting accounting_;
  LossAccounting losses_;
  SamplingBudget budget_;
  EventReplacer replacer_;
  RingDrain drain_;
  std::deque<SynthesizedRecords> states_;  // What existed at each start; the last one, and those that were not given.
  uint32_t wanted_stack_ = 0;              // Requested bytes of a dump; 0 means no request.
  // Events are to be replaced: threads that have inherited them still have the old rate, or their owners are no longer
  // known.
  bool anew_due_ = false;
  uint64_t snapshot_ns_ = 0;  // Time of the last snapshot, if it is still to be drained; else 0.
  size_t given_ = 0;          // Number of records that this drain has delivered.
  State state_ = State::kStopped;
  sys::ForkListener fork_listener_;  // Declared last: registered only after everything that it releases exists.
};

}  // namespace perfkit::sample
