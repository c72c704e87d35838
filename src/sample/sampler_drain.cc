// Delivers each record to the visitor or adds it to the accounting, follows threads that come and go, and carries out
// changes of events.
//
// For each sample the writer is found by the id in the record. The sample is then unattributed, malformed, a duplicate
// or delivered. All state is updated before the visitor is called, because the visitor may throw.
//
// A change of what a sample contains, or of a period that threads have inherited, replaces the events (EventReplacer).
// Opening the new ones takes long, while the old ones stay enabled. Then, in some microseconds, the old ones are
// disabled, the rings drained, the accounting settled, and the new ones enabled. If the level does not change, the new
// events are enabled first, except with live stacks or rings that are overwritten. For that moment threads have two
// copies of an event, and DuplicateFilter decides which one counts.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "src/ring/record_fields.h"
#include "src/sample/sampler_impl.h"
#include "src/sys/clock.h"

namespace perfkit::sample {
namespace {

using ring::Is;

// Exceeds the size of two FORK, EXIT or LOST records.
constexpr size_t kTaskRecordBytes = 256;

uint64_t CpuNow() { return sys::ClockNs(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace

size_t SamplerImpl::Drain(Visit visit, size_t max_records) {
  if (state_ == State::kInForkedChild) return 0;
  const uint64_t begun = CpuNow();
  if (is_running()) live_.Maintain();
  const bool is_full = losses_.SettleBeforeDrain(), is_side_full = rings_.side.IsNearlyFull(kTaskRecordBytes);
  accounting_.drains_of_full_rings += is_full || is_side_full ? 1 : 0;
  replacer_.CloseReplaced();
  // A LOST record is written only together with the next record, which may never come.
  if (is_side_full) ForgetTasks();
  given_ = 0;
  const bool writing = is_running() && !losses_.is_paused(), streams = plan_.options().mode == RingMode::kStream;
  const uint64_t now = Now(), horizon = streams && writing ? live_.Horizon(now) : UINT64_MAX;
  // What existed at a start comes before all later records, whatever max_records is.
  if (!DeliverStates(horizon, visit, max_records)) return EndDrain(begun);
  if (!streams) {
    DrainOverwritten(visit);
  } else {
    const bool all = DrainUntil(horizon, visit, max_records - given_);
    if (!all) return EndDrain(begun);  // The rest requires empty rings: the next drain does it.
    drain_.SetDrained(std::min(now, horizon));
    writers_.ForgetWeights(horizon);
  }
  live_.PrepareRings();
  if (given_ == 0) rings_.DropHungUp();
  if (follows_threads()) FollowThreads();
  rings_.CheckEnd(is_running());
  if (!states_.empty() && writing) states_.back().ReadMore();
  EndDrain(begun);
  EnforceBudget(visit, max_records - std::min(max_records, given_));
  return given_;
}

size_t SamplerImpl::EndDrain(uint64_t begun_cpu_ns) {
  accounting_.own_cpu_ns += CpuNow() - begun_cpu_ns;
  return given_;
}

// A state comes after the records of before its start, which other mappings name. If samples are overwritten, it comes
// before all of them. What is read later comes after the records of before its reading, which may be those of another
// drain. Counts a record as delivered before the visitor is called, which may throw.
bool SamplerImpl::DeliverStates(uint64_t horizon_ns, Visit visit, size_t max_records) {
  const bool streams = plan_.options().mode == RingMode::kStream;
  for (SynthesizedRecords& state : states_) {
    while (state.has_next()) {
      if (state.is_late() && state.time_ns() > horizon_ns) return true;
      const uint64_t before_ns = std::min(state.time_ns() - 1, horizon_ns);
      if (streams && !DrainUntil(before_ns, visit, max_records - given_)) return false;
      while (given_ < max_records) {
        const std::optional<RawRecord> raw = state.Next();
        if (!raw) break;
        ++given_;
        visit(SamplerRecord{*raw, SamplerRecord::kNoEvent, true});
      }
      if (given_ >= max_records) return false;
    }
  }
  while (states_.size() > 1) states_.pop_front();
  return true;
}

bool SamplerImpl::DrainUntil(uint64_t horizon_ns, Visit visit, size_t max_records) {
  drain_.Begin(Now());
  return drain_.DrainUntil(
      horizon_ns, max_records, [&](const RawRecord& raw, RingSlot& slot) { Deliver(raw, slot, visit); },
      [&](const RawRecord& raw) { DeliverStack(raw, visit); });
}

// Reads the rings of the last snapshot and, if the sampler is stopped, those that are left. The side band comes first,
// but only up to the snapshot: what is mapped later at the same address must not name its samples.
void SamplerImpl::DrainOverwritten(Visit visit) {
  if (snapshot_ns_ != 0) {
    DrainUntil(snapshot_ns_, visit);
    DrainBackwards(rings_.spare, visit);
    snapshot_ns_ = 0;  // Not earlier: the visitor may throw.
  }
  DrainUntil(is_running() ? live_.Horizon(Now()) : UINT64_MAX, visit);
  if (is_running()) return;
  DrainBackwards(rings_.active, visit);
  writers_.ForgetWeights(UINT64_MAX);
}

void SamplerImpl::DrainBackwards(RingSet& set, Visit visit) {
  losses_.WillRead(set);
  drain_.DrainBackwards(set, [&](const RawRecord& raw, RingSlot& slot) { Deliver(raw, slot, visit); });
}

// A record whose time is that of another sampler's clock has the time of the one before it.
void SamplerImpl::Deliver(const RawRecord& raw, RingSlot& slot, Visit visit) {
  const std::optional<uint64_t> own_time = drain_.TimeOf(raw);
  const uint64_t time = own_time.value_or(slot.last_time_ns);
  slot.previous_time_ns = std::exchange(slot.last_time_ns, time);  // Before the visitor, which may throw.
  if (Is(raw, RecordType::kSample)) [[likely]] {
    DeliverSample(raw, slot, time, own_time.has_value(), visit);
  } else {
    DeliverOther(raw, slot, time, visit);
  }
}

SamplerRecord SamplerImpl::ToPublic(const RawRecord& raw, uint32_t event, uint64_t time_ns) const {
  const auto asked = static_cast<uint32_t>(plan_.asked());
  const bool full = event >= asked && event != SamplerRecord::kNoEvent;
  return {raw, full ? event - asked : event, false, full, false, 0, time_ns};
}

// For events at a Frequency, and those that count several at once, the kernel writes the period to each sample.
uint64_t SamplerImpl::PeriodOf(const RawRecord& sample) const {
  if (!plan_.layout().has(Field::kPeriod)) return 1;
  return detail::Load<uint64_t>(sample.body().data() + plan_.layout().early_offset(Field::kPeriod));
}

// If a sample was prepared for a foreign event that asked for no id, it has this event's: then only its time may tell.
void SamplerImpl::DeliverSample(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, bool has_own_time,
                                Visit visit) {
  bool foreign = false;
  const Writer* const writer = writers_.WriterOf(raw, foreign);
  if (writer == nullptr) {
    ++accounting_.unattributed;
    return;
  }
  if (writer->event == RingEvent::kTracking) return;  // A dummy never samples.
  EventAccounting& event = accounting_.event(writer->event);
  if (live_.is_open() && writer->stackless) ++event.stacks.given_up;
  if (raw.body().size() < plan_.layout().early_bytes()) {
    ++event.malformed;
    return;
  }
  const bool in_kernel = (raw.misc & kMiscCpuMode) == static_cast<uint16_t>(CpuMode::kKernel);
  if (in_kernel && plan_.has_kernel_chain() && level_.stack != 0) accounting_.kernel_cpu_ns += Plan::kKernelChainNs;
  live_.NoteSample(raw, *writer);
  if (!duplicates_.CountsOnce(raw, *writer, slot.last, time_ns, foreign)) {
    ++event.duplicates;
    return;
  }
  // The time of a foreign sample may be from another clock. It is used if it fits the order of this ring's records.
  const bool backwards = plan_.options().mode == RingMode::kOverwrite;
  const bool is_dated = has_own_time && (!foreign || backwards || time_ns >= slot.previous_time_ns);
  const uint64_t weight = is_dated ? writers_.WeightOf(*writer, time_ns, foreign)
                                   : writers_.LeastWeightSince(*writer, backwards ? 0 : slot.previous_time_ns);
  accounting_.Delivered(writer->event, weight);
  foreign = foreign || !has_own_time;
  event.foreign += foreign ? 1 : 0;
  ++given_;
  SamplerRecord record = ToPublic(raw, writer->event, time_ns);
  record.foreign = foreign;
  record.weight = weight != 0 ? weight : PeriodOf(raw);
  visit(record);
}

void SamplerImpl::DeliverOther(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit) {
  const Writer* const writer = writers_.WriterOf(raw);
  const uint32_t event = writer != nullptr ? writer->event : SamplerRecord::kNoEvent;
  if (Is(raw, RecordType::kLost)) {
    if (losses_.Add(raw, slot, time_ns)) ForgetTasks();
  } else if (writer != nullptr && raw.body().size() >= plan_.layout().trailer_bytes() &&
             !duplicates_.Counts(raw, *writer)) {
    return;
  }
  if (Is(raw, RecordType::kThrottle) && event != SamplerRecord::kNoEvent) ++accounting_.event(event).throttled;
  // The sampler itself asked for these; a visitor gets them only if it has asked for them as well.
  if (Is(raw, RecordType::kFork) || Is(raw, RecordType::kExit)) {
    TakeTask(raw);
    if (!plan_.options().side_band && !plan_.options().switches) return;
  }
  ++given_;
  visit(ToPublic(raw, event, time_ns));
}

void SamplerImpl::DeliverStack(const RawRecord& raw, Visit visit) {
  const std::optional<uint32_t> event = live_.Take(raw, writers_.writers(), duplicates_, accounting_);
  if (!event) return;
  ++given_;
  visit(SamplerRecord{raw, *event, false});
}

void SamplerImpl::TakeTask(const RawRecord& raw) {
  const bool follows = follows_threads(), duplicates = !follows && duplicates_.NeedsTasks();
  if (const auto fork = ForkRecord::Parse(raw, plan_.layout())) {
    const auto tid = static_cast<pid_t>(fork->tid);
    if (follows && fork->pid == fork->parent_pid) threads_.Born(tid);
    if (duplicates) duplicates_.Born(tid, static_cast<pid_t>(fork->parent_tid), fork->time_ns);
  }
  if (const auto exit = ExitRecord::Parse(raw, plan_.layout())) {
    const auto tid = static_cast<pid_t>(exit->tid);
    live_.Ended(tid);
    rings_.SawExit();
    if (follows) threads_.Ending(tid);
    if (duplicates) duplicates_.Ended(tid, exit->time_ns);
  }
}

// FORK or EXIT records were lost, so a tid may belong to another thread by now.
void SamplerImpl::ForgetTasks() {
  threads_.Rescan();
  rings_.SawExit();
  if (duplicates_.expects_duplicates()) anew_due_ = true;
  duplicates_.ForgetSideBand();
}

// A thread that ended before the last drain writes no more. Its rings may still hold records: overwriting rings are
// read only after a snapshot, and after Stop.
void SamplerImpl::FollowThreads() {
  const bool changed = threads_.has_changes();
  if (changed) {
    const sys::ForkBlocker fork_blocker;
    const std::vector<pid_t> unread = rings_.ThreadsWithRecords();
    threads_.CloseEnded([&unread](pid_t tid) { return !std::ranges::binary_search(unread, tid); },
                        [this](pid_t tid) {
                          Leave(tid);
                          live_.Forget(tid);
                        });
    if (is_running()) AttachNewcomers();
    threads_.CountMissed([this](pid_t tid) { return duplicates_.IsAttached(tid); });
  }
  threads_.EndDrain();
  if (changed) Index(Now());
}

// Also attaches threads without a FORK record: they started before Start, or by a thread that was not attached yet.
void SamplerImpl::AttachNewcomers() {
  if (threads_.TakeRescan()) FindEnded();
  threads_.AttachNewcomers([this] { return ThreadsNow(plan_); },
                           [this](pid_t tid) { return duplicates_.IsAttached(tid); },
                           [this](pid_t tid) {
                             const absl::Status status = attacher_.AttachNewcomer(tid, level_, losses_.is_paused());
                             if (!status.ok()) Leave(tid);
                             return status;
                           });
}

void SamplerImpl::Leave(pid_t tid) {
  for (RingSet* const set : {&rings_.active, &rings_.spare, &rings_.side}) {
    for (RingEvent& ring_event : set->events) {
      if (ring_event.tid == tid) losses_.SettleClosed(ring_event);
    }
    std::erase_if(set->events, [tid](const RingEvent& ring_event) { return ring_event.tid == tid; });
  }
  rings_.DropRingsOf(tid);
  duplicates_.Ended(tid, UINT64_MAX);
}

// The rings of a thread that has ended hang up. They may still hold records.
void SamplerImpl::FindEnded() {
  rings_.DropHungUp();
  rings_.ForEachSlot([this](const RingSlot& slot) {
    if (slot.hung_up) threads_.FoundEnded(slot.tid);
  });
}

void SamplerImpl::EnforceBudget(Visit visit, size_t max_records) {
  if (losses_.is_paused()) return;
  if (!is_running()) return AdoptRates(visit, max_records);
  rings_.SwitchOnStuck();
  LetThreadsAdvance(visit, max_records);
  AdoptStack(visit, max_records);
  AdoptRates(visit, max_records);
  if (!budget_.is_due()) return;
  budget_.AddCosts(level_, live_.TakeHandlersNs());
  std::optional<SamplerDecision> decision = budget_.Judge();
  if (decision) CarryOut(*decision, visit, max_records);
  budget_.BeginWindow();  // Afterwards, so that the cost of a decision does not lead to the next one.
}

// The budget begins anew, because its decisions were about the old size.
void SamplerImpl::AdoptStack(Visit visit, size_t max_records) {
  const uint32_t wanted = wanted_stack_, before = plan_.options().stack.stack_bytes;
  if (wanted == 0) return;
  const absl::Cleanup account = [this, begun = CpuNow()] { accounting_.own_cpu_ns += CpuNow() - begun; };
  SamplerDecision unasked;
  // Until the next drain, which tries again. Also if the visitor throws.
  absl::Cleanup restore = [&] { (void)plan_.SetStackBytes(before); };
  if (plan_.SetStackBytes(wanted).ok() && Change(plan_.FullLevel(), unasked, visit, max_records).ok()) {
    std::move(restore).Cancel();
    wanted_stack_ = 0;
    return budget_.Restart();
  }
  ++accounting_.decisions_refused;
}

// If it fails or the visitor throws, the next drain tries again.
void SamplerImpl::AdoptRates(Visit visit, size_t max_records) {
  if (!std::exchange(anew_due_, false)) return;
  const absl::Cleanup account = [this, begun = CpuNow()] { accounting_.own_cpu_ns += CpuNow() - begun; };
  absl::Cleanup again = [this] { anew_due_ = true; };
  SamplerDecision unasked;
  const bool gapless = !live_.is_open() && plan_.options().mode == RingMode::kStream;
  absl::Status status;
  if (!is_running()) {
    status = OpenAtNewRates();
  } else if (gapless) {
    status = ReplaceEvents();
  } else {
    status = Change(level_, unasked, visit, max_records);
  }
  if (status.ok()) {
    std::move(again).Cancel();
  } else {
    ++accounting_.decisions_refused;
  }
}

bool SamplerImpl::CarryOut(SamplerDecision& decision, Visit visit, size_t max_records) {
  const uint64_t begun = CpuNow();
  absl::Cleanup undo = [&] { budget_.Undo(decision); };  // If the visitor throws.
  const absl::Status status = Change(budget_.level(), decision, visit, max_records);
  std::move(undo).Cancel();
  if (status.ok()) {
    accounting_.AddDecision(decision);
  } else {
    ++accounting_.decisions_refused;
    budget_.Refused(decision);
  }
  accounting_.own_cpu_ns += CpuNow() - begun;
  return status.ok();
}

// The handler makes live stacks shorter, so the events stay.
bool SamplerImpl::NeedsAnew(const SamplingLevel& level) const {
  const bool shorter = level.stack != level_.stack && level.slower == level_.slower;
  if (live_.is_open() && shorter && level.stack != 0 && level_.stack != 0) return false;
  return level.stack != level_.stack || plan_.inherits();
}

// The old events stay enabled while the new ones are opened.
absl::Status SamplerImpl::Change(const SamplingLevel& level, SamplerDecision& decision, Visit visit,
                                 size_t max_records) {
  const bool anew = NeedsAnew(level);
  if (anew) {
    if (absl::Status status = replacer_.Open(level); !status.ok()) return status;
  }
  RingSet& active = rings_.active;
  if (decision.from_ns == 0) decision.from_ns = Now();
  // An event that can't be disabled at the second try either continues until it is closed.
  if (!active.SwitchEvents(false, plan_.inherits()).ok()) (void)active.SwitchEvents(false, plan_.inherits());
  absl::Cleanup go_on = [&] {  // If the visitor throws.
    replacer_.Drop();
    (void)active.SwitchEvents(true, plan_.inherits());
  };
  // Opening events takes milliseconds, in which the rings fill. Ids stay known, because max_records may leave records.
  if (max_records > 0) (void)DrainUntil(Now(), visit, max_records);
  std::move(go_on).Cancel();
  budget_.AddCosts(level_, live_.TakeHandlersNs());
  absl::Status status;
  if (anew) {
    TakeOver(level, Now());
  } else {
    status = ChangeRates(level);
  }
  live_.Limit(level_.stack);
  (void)active.SwitchEvents(true, plan_.inherits());  // SamplerRings::SwitchOnStuck tries again.
  decision.to_ns = Now();
  return status;
}

// Leaves no gap: the new events are enabled before the old ones are disabled.
absl::Status SamplerImpl::ReplaceEvents() {
  if (absl::Status status = replacer_.Open(level_); !status.ok()) return status;
  TakeOver(level_, replacer_.SwitchOver());
  return absl::OkStatus();
}

void SamplerImpl::TakeOver(const SamplingLevel& level, uint64_t since_ns) {
  const sys::ForkBlocker fork_blocker;
  replacer_.TakeOver(drain_.drained_ns());
  level_ = level;
  Index(since_ns);
}

}  // namespace perfkit::sample
