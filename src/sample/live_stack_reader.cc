// The reader's side of live stacks. Opening chooses as many rings, as large, as memory permits. A stack's record names
// the signal, not the event's id: Take replaces one by the other, so that a stack has the id of its sample, and leaves
// out the stacks whose sample is a duplicate. What became of all other signals is known from the handler's counts.
#include "src/sample/live_stack_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/live_stack.h"
#include "src/proc/threads.h"
#include "src/sample/live_record.h"
#include "src/sample/sampler_rings.h"
#include "src/sys/clock.h"
#include "src/sys/files.h"

namespace perfkit::sample {

// One ring for each existing thread, and as many again. If memory is short, rings become smaller first, then fewer.
absl::StatusOr<StackRings::Shape> LiveStackReader::ChooseShape() const {
  constexpr size_t kMinRings = 64, kTrailerBytes = 8 * detail::kTrailer.size();
  const uint32_t depth = plan_.FullLevel().stack;
  // A ring holds at least two records of full depth.
  const size_t least = std::max(StackRings::kMinBytes, std::bit_ceil(2 * LiveRecord::Bytes(depth, kTrailerBytes)));
  StackRings::Shape shape{
      .rings = 2, .ring_bytes = StackRings::kDefaultBytes, .depth = depth, .outer = plan_.OuterDepth()};
  if (plan_.many_threads()) {
    const absl::StatusOr<std::vector<pid_t>> threads = proc::ListThreads(0);
    if (!threads.ok()) return sys::WithDescriptorRemedy(threads.status());
    shape.rings = std::bit_ceil(std::max(kMinRings, 2 * threads->size()));
  }
  const size_t most = SamplerRings::Memory(plan_);
  while (shape.rings * shape.ring_bytes > most && shape.ring_bytes > least) shape.ring_bytes /= 2;
  while (shape.rings * shape.ring_bytes > most && shape.rings > 2) shape.rings /= 2;
  if (shape.rings * shape.ring_bytes <= most) return shape;
  return absl::Status(absl::StatusCode::kResourceExhausted,
                      absl::StrFormat("rings for live stacks of %d calls take %d bytes at least, half of "
                                      "SamplerOptions::memory_bytes is %d. Remedy: raise it, or ask for fewer calls.",
                                      depth, shape.rings * shape.ring_bytes, most));
}

absl::Status LiveStackReader::Open(Plan& plan) {
  if (!plan_.live()) return absl::OkStatus();
  absl::StatusOr<StackRings::Shape> shape = ChooseShape();
  if (!shape.ok()) return shape.status();
  std::unique_ptr<unwind::LiveWalker> walker = plan_.options().stack.stacks();
  if (walker == nullptr) return absl::InvalidArgumentError("CallStack::stacks returned no code that walks live stacks");
  if (absl::Status status = walker->MaintainBriefly(); !status.ok()) return status;
  absl::StatusOr<LiveStackHandler::Owner> handler = LiveStackHandler::Make(
      std::move(walker), {plan_.options().clock_id, plan_.events().size(), plan_.layout(), *shape});
  if (!handler.ok()) return handler.status();
  handler_ = *std::move(handler);
  gone_on_.resize(plan_.events().size());
  plan.SetSignals(handler_->SigData(), handler_->switches());
  if (const uint64_t signal_ns = handler_->MeasureSignalNs(); signal_ns != 0) plan.SetSignalCost(signal_ns);
  return absl::OkStatus();
}

// A signal's number has the thread that its event was opened for, but not the CPU. The first writer of that event and
// thread stands for all of them.
void LiveStackReader::Index(const std::vector<Writer>& writers, ring::TimeMerge& merge) {
  if (!is_open()) return;
  // The merge was made anew and has none of the rings of stacks yet; the numbers refer to `writers`, which is new as
  // well.
  numbers_.Clear();
  for (uint32_t i = 0; i < writers.size(); ++i) {
    if (writers[i].event == RingEvent::kTracking) continue;
    const uint32_t number = SignalNumber::Of(writers[i].event, writers[i].tid);
    if (numbers_.Find(number) == base::IdTable::kNone) numbers_.Add(number, i);
  }
  for (RingReader& reader : handler_->rings().readers()) merge.Add(reader);
}

// A stack's record has the time at which its walk began, so that it precedes the thread's later records, but it is
// written when the walk ends. A handler marks its ring as in use before it takes that time. So if no ring is in use, no
// record with an earlier time will follow.
uint64_t LiveStackReader::Horizon(uint64_t now_ns) {
  const uint64_t written = now_ns - ring::kMergeWindowNs;
  return is_open() ? std::min(written, handler_->rings().OldestUnderWay(now_ns) - 1) : written;
}

void LiveStackReader::NoteSample(const RawRecord& sample, const Writer& writer) {
  if (!plan_.signals_by_descriptor()) return;
  last_ips_[SignalNumber::Of(writer.event, writer.tid)] =
      detail::Load<uint64_t>(sample.body().data() + plan_.layout().early_offset(Field::kIp));
}

std::optional<uint32_t> LiveStackReader::Take(const RawRecord& raw, const std::vector<Writer>& writers,
                                              DuplicateFilter& duplicates, Accounting& accounting) {
  const auto number = static_cast<uint32_t>(plan_.layout().IdOf(raw).value_or(0));
  const uint32_t event = SignalNumber::EventOf(number);
  if (event >= plan_.events().size()) return std::nullopt;
  const uint32_t found = numbers_.Find(number);
  const uint64_t id = found != base::IdTable::kNone ? writers[found].id : 0;
  for (const Field field : {Field::kId, Field::kStreamId, Field::kIdentifier}) {
    const size_t back = plan_.layout().trailer_offset(field);
    if (back != 0) std::memcpy(StackRings::Writable(raw) + raw.size - back, &id, sizeof(id));
  }
  if (found != base::IdTable::kNone && !duplicates.Counts(raw, writers[found])) {
    ++accounting.event(event).stacks.duplicates;
    return std::nullopt;
  }
  if (plan_.signals_by_descriptor() && !IsOfLastSample(raw, number)) {
    ++gone_on_[event];
    return std::nullopt;
  }
  ++accounting.event(event).stacks.delivered;
  return event;
}

// A signal by a descriptor does not say that the thread has continued since the sample. The first pc of the stack does.
bool LiveStackReader::IsOfLastSample(const RawRecord& raw, uint32_t number) const {
  const std::optional<LiveStack> stack = LiveStack::Parse(raw, plan_.layout());
  const auto last = last_ips_.find(number);
  return stack && stack->size() > 0 && last != last_ips_.end() && stack->pcs[0] == last->second;
}

void LiveStackReader::PrepareRings() {
  if (!is_open()) return;
  uint64_t without = 0;
  for (size_t i = 0; i < plan_.events().size(); ++i) without += handler_->skipped(i, StackSkip::kNoRing);
  // Signals have found no ring since the last drain: rings that are merely idle are given back, too.
  const bool scarce = without != std::exchange(without_ring_, without);
  handler_->rings().GiveBack(scarce, sys::ClockNs(plan_.options().clock_id));
  handler_->rings().PopulateAhead();
}

// The rest are samples whose signals were merged: no handler has seen them.
void LiveStackReader::FillAccounting(size_t event, EventAccounting& accounting) const {
  if (!is_open() || !plan_.events()[event].stack) return;
  StackAccounting& stacks = accounting.stacks;
  stacks.stale = handler_->skipped(event, StackSkip::kStale) + gone_on_[event];
  stacks.walk_limit = handler_->skipped(event, StackSkip::kWalkLimit);
  stacks.no_ring = handler_->skipped(event, StackSkip::kNoRing);
  stacks.ring_full = handler_->skipped(event, StackSkip::kRingFull);
  stacks.paused = handler_->skipped(event, StackSkip::kPaused);
  const uint64_t taken = accounting.accounted();
  // A signal that was pending when its event was closed, and whose descriptor an event of this sampler then got, has no
  // sample here. Take has counted it as stale, because its pc is not that of a sample.
  const uint64_t excess = stacks.accounted() - std::min(taken, stacks.accounted());
  stacks.stale -= std::min({excess, stacks.stale, handler_->reused_descriptors()});
  stacks.coalesced = taken - std::min(taken, stacks.accounted());
}

void LiveStackReader::Ended(pid_t tid) {
  if (is_open()) handler_->rings().Ended(tid);
}

void LiveStackReader::Forget(pid_t tid) {
  std::erase_if(last_ips_, [tid](const auto& last) { return SignalNumber::OwnerOf(last.first) == tid; });
}

// On an error, walks end at unknown code.
void LiveStackReader::Maintain() {
  if (is_open()) (void)handler_->Maintain();
}

void LiveStackReader::MaintainBriefly() {
  if (is_open()) (void)handler_->MaintainBriefly();
}

void LiveStackReader::Pause(bool pause) {
  if (is_open()) handler_->Pause(pause);
}

void LiveStackReader::Limit(uint32_t frames) {
  if (is_open() && frames != 0) handler_->Limit(frames);
}

uint64_t LiveStackReader::SwitchedOffSince() {
  const uint64_t since_ns = is_open() ? handler_->TakeSwitchedOffNs() : 0;
  if (switched_off_ns_ == 0) switched_off_ns_ = since_ns;
  return switched_off_ns_;
}

void LiveStackReader::OnForkedChild() {
  if (is_open()) handler_->OnForkedChild();
}

}  // namespace perfkit::sample
