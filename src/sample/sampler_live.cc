// Live stacks: the rings that the threads write, merged with the kernel's.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/proc/threads.h"
#include "src/sample/live_record.h"
#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

size_t SamplerImpl::RingMemory() const { return plan_.options().memory_bytes / (plan_.live() ? 2 : 1); }

// One ring for each existing thread, and as many again. If memory is short, rings become smaller first, then fewer.
absl::StatusOr<StackRings::Shape> SamplerImpl::ShapeOfStacks() const {
  constexpr size_t kMinRings = 64, kTrailerBytes = 8 * detail::kTrailer.size();
  const uint32_t depth = plan_.FullLevel().stack;
  const size_t least = std::max(StackRings::kMinBytes, std::bit_ceil(2 * LiveRecord::Bytes(depth, kTrailerBytes)));
  StackRings::Shape shape{.rings = 2, .ring_bytes = StackRings::kDefaultBytes, .depth = depth};
  if (plan_.many_threads()) {
    const absl::StatusOr<std::vector<pid_t>> threads = proc::ListThreads(0);
    if (!threads.ok()) return threads.status();
    shape.rings = std::bit_ceil(std::max(kMinRings, 2 * threads->size()));
  }
  const size_t most = RingMemory();
  while (shape.rings * shape.ring_bytes > most && shape.ring_bytes > least) shape.ring_bytes /= 2;
  while (shape.rings * shape.ring_bytes > most && shape.rings > 2) shape.rings /= 2;
  if (shape.rings * shape.ring_bytes <= most) return shape;
  return absl::Status(absl::StatusCode::kResourceExhausted,
                      absl::StrFormat("rings for live stacks of %d calls take %d bytes at least, half of "
                                      "SamplerOptions::memory_bytes is %d. Remedy: raise it, or ask for fewer calls.",
                                      depth, shape.rings * shape.ring_bytes, most));
}

absl::Status SamplerImpl::OpenLive() {
  if (!plan_.live()) return absl::OkStatus();
  absl::StatusOr<StackRings::Shape> shape = ShapeOfStacks();
  if (!shape.ok()) return shape.status();
  std::unique_ptr<unwind::LiveWalker> walker = plan_.options().stack.stacks();
  if (walker == nullptr) return absl::InvalidArgumentError("CallStack::stacks returned no code that walks live stacks");
  if (absl::Status status = walker->MaintainBriefly(); !status.ok()) return status;
  absl::StatusOr<LiveStackHandler::Owner> handler = LiveStackHandler::Make(
      std::move(walker), {plan_.options().clock_id, plan_.events().size(), plan_.layout(), *shape});
  if (!handler.ok()) return handler.status();
  live_handler_ = *std::move(handler);
  gone_on_.resize(plan_.events().size());
  plan_.SetSignals(live_handler_->SigData());
  return absl::OkStatus();
}

// A signal's number has the thread that its event was opened for, but not the CPU. The first writer of that event and
// thread stands for all of them.
void SamplerImpl::IndexStacks() {
  numbers_.Clear();
  for (uint32_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i].event == RingEvent::kTracking) continue;
    const uint32_t number = SignalNumber::Of(writers_[i].event, writers_[i].tid);
    if (numbers_.Find(number) == IdTable::kNone) numbers_.Add(number, i);
  }
  for (RingReader& reader : live_handler_->rings().readers()) merge_.Add(reader);
}

// A stack's record has the time at which its walk began, so that it precedes the thread's later records, but it is
// written when the walk ends. A handler marks its ring as in use before it takes that time. So if no ring is in use, no
// record with an earlier time will follow.
uint64_t SamplerImpl::Horizon() const {
  const uint64_t now = Now(plan_.options().clock_id);
  const uint64_t written = now - ring::kMergeWindowNs;
  return live_handler_ == nullptr ? written : std::min(written, live_handler_->rings().OldestUnderWay(now) - 1);
}

void SamplerImpl::DeliverStack(const RawRecord& raw, Visit visit) {
  const auto number = static_cast<uint32_t>(plan_.layout().IdOf(raw).value_or(0));
  const uint32_t event = SignalNumber::EventOf(number);
  if (event >= plan_.events().size()) return;
  const uint32_t found = numbers_.Find(number);
  const uint64_t id = found != IdTable::kNone ? writers_[found].id : 0;
  for (const Field field : {Field::kId, Field::kStreamId, Field::kIdentifier}) {
    const size_t back = plan_.layout().trailer_offset(field);
    if (back != 0) std::memcpy(StackRings::Writable(raw) + raw.size - back, &id, sizeof(id));
  }
  if (found != IdTable::kNone && !Counts(raw, writers_[found])) {
    ++accounting_.event(event).stacks.duplicates;
    return;
  }
  if (plan_.signals_by_descriptor() && !IsOfLastSample(raw, number)) {
    ++gone_on_[event];
    return;
  }
  ++accounting_.event(event).stacks.delivered;
  ++given_;
  visit(SamplerRecord{raw, event, false});
}

// A signal by a descriptor does not say that the thread has continued since the sample. The first pc of the stack does.
bool SamplerImpl::IsOfLastSample(const RawRecord& raw, uint32_t number) const {
  const std::optional<LiveStack> stack = LiveStack::Parse(raw, plan_.layout());
  const auto last = last_ips_.find(number);
  return stack && stack->size() > 0 && last != last_ips_.end() && stack->pcs[0] == last->second;
}

void SamplerImpl::GiveBackStackRings() {
  uint64_t without = 0;
  for (size_t i = 0; i < plan_.events().size(); ++i) without += live_handler_->skipped(i, StackSkip::kNoRing);
  const bool scarce = without != std::exchange(without_ring_, without);
  live_handler_->rings().GiveBack(scarce, Now(plan_.options().clock_id));
}

// The rest are samples whose signals were merged: no handler has seen them.
void SamplerImpl::FillStackAccounting(size_t event, EventAccounting& accounting) const {
  StackAccounting& stacks = accounting.stacks;
  stacks.stale = live_handler_->skipped(event, StackSkip::kStale) + gone_on_[event];
  stacks.budget = live_handler_->skipped(event, StackSkip::kBudget);
  stacks.no_ring = live_handler_->skipped(event, StackSkip::kNoRing);
  stacks.ring_full = live_handler_->skipped(event, StackSkip::kRingFull);
  stacks.paused = live_handler_->skipped(event, StackSkip::kPaused);
  const uint64_t taken = accounting.accounted();
  stacks.coalesced = taken - std::min(taken, stacks.accounted());
}

}  // namespace perfkit::sample
