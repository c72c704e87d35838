// Reads the rings and delivers each record to the visitor or adds it to the accounting. Records of several rings are
// merged by time up to a horizon (Horizon); a single ring is already in order; overwriting rings are read backwards,
// one after the other, after the side band. For each sample the writer is found by the id in the record. The sample is
// then unattributed, malformed, a duplicate or delivered. All state is updated before the visitor is called, because
// the visitor may throw.

#include <algorithm>
#include <array>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "src/ring/record_fields.h"
#include "src/sample/sampler_impl.h"
#include "src/sys/kernel.h"

namespace perfkit::sample {
namespace {

using ring::Is;

// Exceeds the time from the beginning of a drain until its last read of a ring.
constexpr uint64_t kDrainNs = 1'000'000'000;

// Exceeds the size of two FORK, EXIT or LOST records.
constexpr size_t kTaskRecordBytes = 256;

// Requires that the record is long enough.
uint32_t TidOf(const RawRecord& raw, const SampleLayout& layout) {
  const std::byte* const task = Is(raw, RecordType::kSample) ? raw.body().data() + layout.early_offset(Field::kTid)
                                                             : raw.data + raw.size - layout.trailer_offset(Field::kTid);
  return detail::Load<uint32_t>(task + sizeof(uint32_t));  // pid, tid
}

}  // namespace

size_t SamplerImpl::Drain(Visit visit, size_t max_records) {
  if (in_forked_child_) return 0;
  const uint64_t begun = Now(CLOCK_THREAD_CPUTIME_ID);
  if (live_handler_ != nullptr && running_) (void)live_handler_->Maintain();
  SettleBeforeDrain();
  // A LOST record is written only together with the next record, which may never come.
  if (side_.IsNearlyFull(kTaskRecordBytes)) ForgetTasks();
  given_ = 0;
  if (!DeliverState(visit, max_records)) return given_;
  const bool writing = running_ && !paused_;
  bool drained = true;
  if (plan_.options().mode != RingMode::kStream) {
    drained = DrainOverwritten(visit);
  } else {
    const uint64_t now = Now(plan_.options().clock_id), horizon = writing ? Horizon() : UINT64_MAX;
    const bool all = DrainUntil(horizon, visit, max_records - given_);
    if (!all) return EndDrain(begun);  // The rest requires empty rings: the next drain does it.
    drained_ns_ = std::min(now, horizon);
    ForgetWeights(horizon);
  }
  if (live_handler_ != nullptr) GiveBackStackRings();
  if (given_ == 0) DropHungUp();
  if (follows_threads()) FollowThreads(drained);
  EndDrain(begun);
  EnforceBudget(visit, max_records - std::min(max_records, given_));
  return given_;
}

size_t SamplerImpl::EndDrain(uint64_t begun_cpu_ns) {
  accounting_.own_cpu_ns += Now(CLOCK_THREAD_CPUTIME_ID) - begun_cpu_ns;
  return given_;
}

// A single ring is in order.
bool SamplerImpl::DrainUntil(uint64_t horizon_ns, Visit visit, size_t max_records) {
  latest_ns_ = Now(plan_.options().clock_id) + kDrainNs;
  const bool streams = plan_.options().mode == RingMode::kStream;
  const bool one = streams && merge_.size() == 1 && active_.rings.size() == 1;
  const uint64_t records = one ? DrainOne(visit, max_records) : DrainMany(horizon_ns, visit, max_records);
  return records < max_records;
}

// Rings have the same order as in the merge.
RingSlot& SamplerImpl::SlotOf(size_t ring) {
  const size_t side = side_.rings.size();
  return ring < side ? *side_.rings[ring] : *active_.rings[ring - side];
}

// Counts a record as delivered before the visitor is called, which may throw.
bool SamplerImpl::DeliverState(Visit visit, size_t max_records) {
  for (LinearReader reader(Bytes(state_).subspan(state_given_)); given_ < max_records;) {
    RawRecord raw;
    if (!reader.Next(raw)) {
      state_.clear();
      state_given_ = 0;
      return true;
    }
    state_given_ += raw.size;
    ++given_;
    visit(SamplerRecord{raw, SamplerRecord::kNoEvent, true});
  }
  return false;
}

// Uses the reader's own accounting, which has the dropped bytes even if the visitor throws.
uint64_t SamplerImpl::DrainOne(Visit visit, size_t max_records) {
  RingSlot& slot = *active_.rings.front();
  RingReader& reader = slot.ring.reader();
  const absl::Cleanup account = [&, before = reader.stats().malformed_bytes] {
    accounting_.malformed_bytes += reader.stats().malformed_bytes - before;
  };
  return reader.Drain([&](const RawRecord& raw) { Deliver(raw, slot, visit); }, max_records).records;
}

uint64_t SamplerImpl::DrainMany(uint64_t horizon_ns, Visit visit, size_t max_records) {
  const size_t kernels = side_.rings.size() + active_.rings.size();  // The rings of live stacks come after these.
  const ring::MergeStats stats = merge_.Drain(
      horizon_ns, [&](const RawRecord& raw, size_t) { return TimeOf(raw); },
      [&](const RawRecord& raw, size_t ring) {
        ring < kernels ? Deliver(raw, SlotOf(ring), visit) : DeliverStack(raw, visit);
      },
      max_records);
  accounting_.malformed_bytes += stats.rings.malformed_bytes;
  accounting_.late += stats.late;
  return stats.rings.records;
}

void SamplerImpl::ForgetWeights(uint64_t drained_ns) {
  for (Writer& writer : writers_) writer.weight.Forget(drained_ns);
  for (Retired& old : retired_) old.writer.weight.Forget(drained_ns);
}

// Reads the rings of the last snapshot and, if the sampler is stopped, those that are left. The side band comes first,
// but only up to the snapshot: what is mapped later at the same address must not name its samples.
bool SamplerImpl::DrainOverwritten(Visit visit) {
  const bool snapshot = snapshot_ns_ != 0;
  latest_ns_ = Now(plan_.options().clock_id) + kDrainNs;
  if (snapshot_ns_ != 0) {
    DrainMany(snapshot_ns_, visit);
    DrainBackwards(spare_, visit);
    snapshot_ns_ = 0;  // Not earlier: the visitor may throw.
  }
  DrainMany(running_ ? Horizon() : UINT64_MAX, visit);
  if (running_) return snapshot;
  DrainBackwards(active_, visit);
  ForgetWeights(UINT64_MAX);
  return true;
}

void SamplerImpl::DrainBackwards(RingSet& set, Visit visit) {
  for (const std::unique_ptr<RingSlot>& slot : set.rings) {
    RingReader& reader = slot->ring.reader();
    const absl::Cleanup account = [&, before = reader.stats()] {
      const DrainStats& now = reader.stats();
      accounting_.malformed_bytes += now.malformed_bytes - before.malformed_bytes;
      accounting_.overwritten_bytes += now.overwritten_bytes - before.overwritten_bytes;
      accounting_.overwritten_bytes += now.skipped_bytes - before.skipped_bytes;  // By a visitor that threw.
    };
    reader.Drain([&](const RawRecord& raw) { Deliver(raw, *slot, visit); });
  }
}

void SamplerImpl::Deliver(const RawRecord& raw, RingSlot& slot, Visit visit) {
  const uint64_t time = TimeOf(raw).value_or(slot.last_time_ns);
  slot.previous_time_ns = std::exchange(slot.last_time_ns, time);  // Before the visitor, which may throw.
  if (Is(raw, RecordType::kSample)) [[likely]] {
    DeliverSample(raw, slot, time, visit);
  } else {
    DeliverOther(raw, slot, time, visit);
  }
}

InheritanceMap& SamplerImpl::InheritanceOf(const Writer& writer) {
  if (writer.event == RingEvent::kTracking) return side_inheritance_;
  return writer.retired ? retired_inheritance_ : inheritance_;
}

bool SamplerImpl::Counts(const RawRecord& raw, const Writer& writer) {
  InheritanceMap& inheritance = InheritanceOf(writer);
  if (!inheritance.expects_duplicates()) return true;
  return inheritance.Counts(static_cast<pid_t>(TidOf(raw, plan_.layout())), writer.tid);
}

// Linux prepares a software event's sample once for all its events on a thread, including the id (do_perf_sw_event, 6.2
// to 6.18 at least). If a thread has two copies of an event, both samples have the id of the copy that was served
// first. So of two samples at the same time, exactly one counts, no matter which.
bool SamplerImpl::CountsOnce(const RawRecord& sample, const Writer& writer, RingSlot& slot, uint64_t time_ns,
                             bool foreign) {
  const bool both = overlap_.Has(time_ns);
  if (!both && !InheritanceOf(writer).expects_duplicates()) return true;
  slot.last.resize(plan_.events().size());
  RingSlot::Last& last = slot.last[writer.event];
  const uint32_t tid = TidOf(sample, plan_.layout());
  const bool twin = last.time_ns == time_ns && last.tid == tid;
  // A foreign id does not tell whether the old event or the new one wrote the sample.
  const bool in_time = !both || foreign || (time_ns < overlap_.at_ns) == writer.retired;
  const bool counts = twin ? !last.given : in_time && Counts(sample, writer);
  last = {time_ns, tid, counts || (twin && last.given)};
  return counts;
}

// While both sets were on, a sample may carry the id of the other set (CountsOnce). Writers of the new set have the
// weights of the old one (Index). A sample with a foreign id may be of either set: the smaller weight is safe.
uint64_t SamplerImpl::WeightOf(const Writer& writer, uint64_t time_ns, bool foreign) const {
  if (!overlap_.Has(time_ns)) return writer.weight.At(time_ns);
  const auto current = std::ranges::find_if(
      writers_, [&](const Writer& other) { return !other.retired && other.event == writer.event; });
  const SampleWeight& weight = current != writers_.end() ? current->weight : writer.weight;
  return foreign ? std::min(weight.At(overlap_.from_ns), weight.At(overlap_.to_ns)) : weight.At(time_ns);
}

// Another sampler of the same software event on this thread may have been served first. Then the sample in this
// sampler's ring has that sampler's id, time and stack (do_perf_sw_event). Only this sampler's events write to its
// rings; if there are several, the sample's counts identify the event.
uint32_t SamplerImpl::WriterOf(const RawRecord& sample, bool& foreign) const {
  const std::optional<uint64_t> id = plan_.layout().IdOf(sample);
  const uint32_t found = id ? ids_.Find(*id) : IdTable::kNone;
  foreign = found == IdTable::kNone;
  return foreign ? ForeignWriterOf(sample) : found;
}

uint32_t SamplerImpl::ForeignWriterOf(const RawRecord& sample) const {
  if (stand_in_ != IdTable::kNone || !plan_.layout().has(Field::kRead)) return stand_in_;
  const std::optional<Sample> parsed = Sample::Parse(sample, plan_.layout());
  const std::optional<ReadValues> values = parsed ? parsed->read() : std::nullopt;
  if (!values || values->size() == 0) return IdTable::kNone;
  return ids_.Find((*values)[0].id.value_or(0));
}

// A time in the future is from another sampler's clock. The record then has the time of the one before it.
std::optional<uint64_t> SamplerImpl::TimeOf(const RawRecord& raw) const {
  const std::optional<uint64_t> time = plan_.layout().TimeOf(raw);
  return time && *time <= latest_ns_ ? time : std::nullopt;
}

SamplerRecord SamplerImpl::ToPublic(const RawRecord& raw, uint32_t event) const {
  const auto asked = static_cast<uint32_t>(plan_.asked());
  const bool full = event >= asked && event != SamplerRecord::kNoEvent;
  return {raw, full ? event - asked : event, false, full};
}

// For events at a Frequency, the kernel chooses the period and writes it to each sample.
uint64_t SamplerImpl::PeriodOf(const RawRecord& sample) const {
  if (!plan_.layout().has(Field::kPeriod)) return 1;
  return detail::Load<uint64_t>(sample.body().data() + plan_.layout().early_offset(Field::kPeriod));
}

void SamplerImpl::DeliverSample(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit) {
  bool foreign = false;
  const uint32_t found = WriterOf(raw, foreign);
  if (found == IdTable::kNone) {
    ++accounting_.unattributed;
    return;
  }
  const Writer& writer = writers_[found];
  if (writer.event == RingEvent::kTracking) return;  // A dummy never samples.
  if (live_handler_ != nullptr && writer.stackless) ++accounting_.event(writer.event).stacks.given_up;
  if (raw.body().size() < plan_.layout().early_bytes()) {
    ++accounting_.event(writer.event).malformed;
    return;
  }
  if (plan_.signals_by_descriptor()) {
    last_ips_[SignalNumber::Of(writer.event, writer.tid)] =
        detail::Load<uint64_t>(raw.body().data() + plan_.layout().early_offset(Field::kIp));
  }
  if (!CountsOnce(raw, writer, slot, time_ns, foreign)) {
    ++accounting_.event(writer.event).duplicates;
    return;
  }
  // The time of a foreign sample may be from another clock. It is used if it fits the order of this ring's records.
  const bool backwards = plan_.options().mode == RingMode::kOverwrite;
  const bool dated = !foreign || backwards || time_ns >= slot.previous_time_ns;
  const uint64_t weight = WeightOf(writer, dated ? time_ns : slot.previous_time_ns, foreign);
  accounting_.Delivered(writer.event, weight);
  accounting_.event(writer.event).foreign += foreign ? 1 : 0;
  ++given_;
  SamplerRecord record = ToPublic(raw, writer.event);
  record.foreign = foreign;
  record.weight = weight != 0 ? weight : PeriodOf(raw);
  visit(record);
}

void SamplerImpl::DeliverOther(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit) {
  const std::optional<uint64_t> id = plan_.layout().IdOf(raw);
  const uint32_t found = id ? ids_.Find(*id) : IdTable::kNone;
  const uint32_t event = found != IdTable::kNone ? writers_[found].event : SamplerRecord::kNoEvent;
  if (Is(raw, RecordType::kLost)) {
    TakeLoss(raw, slot, time_ns);
  } else if (found != IdTable::kNone && raw.body().size() >= plan_.layout().trailer_bytes() &&
             !Counts(raw, writers_[found])) {
    return;
  }
  if (Is(raw, RecordType::kThrottle) && event != SamplerRecord::kNoEvent) ++accounting_.event(event).throttled;
  if (Is(raw, RecordType::kFork) || Is(raw, RecordType::kExit)) {
    TakeTask(raw);
    if (live_handler_ != nullptr && Is(raw, RecordType::kExit)) {
      if (const auto exit = ExitRecord::Parse(raw, plan_.layout())) {
        live_handler_->rings().Ended(static_cast<pid_t>(exit->tid));
      }
    }
    if (!plan_.options().side_band && !plan_.options().switches) return;
  }
  ++given_;
  visit(ToPublic(raw, event));
}

// The record has the number of lost records, and is written once there is room again. It does not say whose records
// they were.
void SamplerImpl::TakeLoss(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns) {
  const std::optional<LostRecord> lost = LostRecord::Parse(raw, plan_.layout());
  if (!lost) return;
  uint32_t ring = 0, count = 0;
  ForEachSlot([&](const RingSlot& other) {
    if (&other == &slot) ring = count;
    ++count;
  });
  accounting_.AddLoss({.from_ns = slot.previous_time_ns, .to_ns = time_ns, .lost = lost->lost, .ring = ring});
  if (ring < active_.rings.size()) {
    accounting_.told_lost += lost->lost;
  } else {
    ForgetTasks();
  }
  if (plan_.counts_lost()) return;
  const uint32_t found = ids_.Find(lost->id);
  const uint32_t event = found != IdTable::kNone ? writers_[found].event : RingEvent::kTracking;
  if (event == RingEvent::kTracking) {
    accounting_.side_band_lost += lost->lost;
  } else {
    (paused_since_ ? accounting_.event(event).paused : accounting_.event(event).lost) += lost->lost;
    if (plan_.events()[event].clock)
      accounting_.Missed(event, lost->lost * writers_[found].weight.At(slot.previous_time_ns));
  }
}

// If the owner of a ring has ended, each wait returns at once, with a hang-up. Checked only after a drain without
// records, or if an EXIT record may have been lost.
void SamplerImpl::DropHungUp() {
  std::array<epoll_event, 16> events;
  // epoll returns ready descriptors in turns, so this sees all of them.
  for (size_t seen = 0; seen <= active_.rings.size() + side_.rings.size(); seen += events.size()) {
    const int ready = sys::kernel().epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if ((event.events & EPOLLHUP) != 0) DropHungUp(event.data.fd);
    }
  }
}

void SamplerImpl::DropHungUp(int fd) {
  sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  ForEachSlot([fd](RingSlot& slot) { slot.hung_up = slot.hung_up || slot.ring.fd() == fd; });
}

}  // namespace perfkit::sample
