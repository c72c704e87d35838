// What is kept: slow frames only, or what no earlier profile has.
//
// A frame is decided once all logs have been read up to its end, because reasons may be in the logs of other threads.
// What no frame keeps is dropped only when it has become a large share of all, so that each zone is checked only a few
// times.
#include <algorithm>
#include <utility>

#include "src/session/zone_timeline.h"

namespace perfkit::session {
namespace {

// A frame is explained in about 1 ms. If slow frames come faster than that, each call would take longer than the last
// one without this limit.
constexpr size_t kMaxHandedOver = 64;

template <class Entries>
size_t Drop(Entries& entries, size_t count) {
  entries.erase(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

}  // namespace

// A frame begins at the clock reading at which the last one ends. But times are exact only to some nanoseconds, so the
// next frame may seem to begin before the last one ends.
bool ZoneTimeline::IsIn(const KeptTimes& times, const FrameSpan& frame) const {
  const uint64_t rounding_ns = std::min<uint64_t>(100, (frame.to_ns - frame.from_ns) / 2);
  return times.Overlaps(threads_[frame.thread].index, frame.from_ns + rounding_ns, frame.to_ns - rounding_ns);
}

EndedFrame ZoneTimeline::EndedOf(const FrameSpan& frame) const {
  return {.thread = frame.thread,
          .sequence = frame.sequence_id,
          .from_ns = frame.from_ns,
          .to_ns = frame.to_ns,
          .is_over_budget = frame.is_over_budget || !frame.cause.empty(),
          .has_reason = !frame.reason.empty(),
          .numbers = frame.numbers};
}

// Requires that the zones of the frame were added: they come before it in the thread's log.
std::vector<uint64_t> ZoneTimeline::NumbersOf(const Thread& thread, const count::FrameEvent& event) {
  if (!keeping_ || keeping_->ranks.size() == 0) return {};
  std::vector<uint64_t> numbers = keeping_->ranks.Counts(event.values, event.missing);
  auto change = std::upper_bound(thread.changes.begin(), thread.changes.end(), event.from_ns,
                                 [](uint64_t at_ns, const Change& one) { return at_ns < one.ns; });
  if (change != thread.changes.begin()) --change;
  for (; change != thread.changes.end() && change->ns < event.to_ns; ++change) {
    const auto next = change + 1;
    const uint64_t from_ns = std::max(change->ns, event.from_ns);
    const uint64_t to_ns = next == thread.changes.end() ? event.to_ns : std::min(next->ns, event.to_ns);
    if (from_ns < to_ns) keeping_->ranks.AddTime(change->label, to_ns - from_ns, numbers);
  }
  return numbers;
}

std::string ZoneTimeline::WorstByOf(const FrameSpan& frame) const {
  return keeping_ ? keeping_->ranks.Names(keeping_->keeper.WorstBy(EndedOf(frame))) : "";
}

std::vector<std::string> ZoneTimeline::UnusedRanks() const {
  return keeping_ ? keeping_->ranks.Unused() : std::vector<std::string>{};
}

FrameTextTarget ZoneTimeline::TextsOf(FrameSpan& frame) {
  return {frame.thread, frame.sequence_id, frame.from_ns, frame.to_ns, frame.reason, frame.state};
}

// For a session that keeps everything: nothing else is to be decided.
void ZoneTimeline::TakeTextsOfOthers() {
  for (size_t i = deciding_.frames; i < frames_.size(); ++i) {
    FrameSpan& frame = frames_[i];
    if (frame.is_decided || frame.to_ns > read_until_ns_) continue;
    const size_t bytes = frame.state.size();
    deciding_.texts.TakeOthers(TextsOf(frame));
    bytes_ += frame.state.size() - bytes;
    frame.is_decided = true;
  }
  while (deciding_.frames < frames_.size() && frames_[deciding_.frames].is_decided) ++deciding_.frames;
}

size_t ZoneTimeline::Decide(uint64_t until_ns, absl::FunctionRef<void(const EndedFrame& frame)> on_slow) {
  if (!keeping_) return 0;
  const bool is_last = until_ns == UINT64_MAX;
  std::vector<EndedFrame> slow;
  uint64_t decided_ns = is_last ? until_ns : std::min(until_ns, read_until_ns_);
  for (size_t i = deciding_.frames; i < frames_.size(); ++i) {
    FrameSpan& frame = frames_[i];
    if (frame.is_decided) continue;
    const bool is_known = threads_[frame.thread].index != kNoThread && frame.to_ns <= decided_ns;
    if (!is_known && !is_last) {
      decided_ns = std::min(decided_ns, frame.from_ns);
      continue;
    }
    const size_t bytes = frame.state.size();
    deciding_.texts.TakeOthers(TextsOf(frame));
    bytes_ += frame.state.size() - bytes;
    frame.is_decided = true;
    keeping_->keeper.Add(EndedOf(frame));
    if (EndedOf(frame).is_slow()) slow.push_back(EndedOf(frame));
  }
  while (deciding_.frames < frames_.size() && frames_[deciding_.frames].is_decided) ++deciding_.frames;
  keeping_->keeper.DecideUntil(decided_ns);
  // If there are too many, hands over those with a reason and then the longest, in the order of their ends.
  const size_t all = slow.size();
  if (all > kMaxHandedOver) {
    const auto comes_first = [](const EndedFrame& a, const EndedFrame& b) {
      return std::pair(a.has_reason, a.duration_ns()) > std::pair(b.has_reason, b.duration_ns());
    };
    std::nth_element(slow.begin(), slow.begin() + kMaxHandedOver, slow.end(), comes_first);
    slow.resize(kMaxHandedOver);
    std::sort(slow.begin(), slow.end(), [](const EndedFrame& a, const EndedFrame& b) { return a.to_ns < b.to_ns; });
  }
  for (const EndedFrame& frame : slow) on_slow(frame);
  return all - slow.size();
}

KeptTimes ZoneTimeline::Times() const {
  if (keeping_) return keeping_->keeper.Times([this](uint32_t thread) { return threads_[thread].index; });
  KeptTimes all;
  all.Add(0, UINT64_MAX);
  all.Join();
  return all;
}

KeptTimes ZoneTimeline::TimesOf(const EndedFrame& frame) const {
  return keeping_->keeper.TimesOf(frame, [this](uint32_t thread) { return threads_[thread].index; });
}

std::vector<uint64_t> ZoneTimeline::ZonesKnownFrom(size_t count) const {
  std::vector<uint64_t> known_ns(count);
  for (const Thread& thread : threads_) {
    if (thread.index >= count) continue;  // not known yet
    known_ns[thread.index] = std::max(known_ns[thread.index], thread.zones_known_ns);
  }
  return known_ns;
}

void ZoneTimeline::Retire(std::span<const uint32_t> renamed) {
  std::vector<bool> is_retired(threads_.size());
  for (size_t i = 0; i < threads_.size(); ++i) {
    const uint32_t index = threads_[i].index;
    if (index == kNoThread || index >= renamed.size() || renamed[index] == index) continue;
    is_retired[i] = true;
    if (keeping_) keeping_->keeper.Forget(static_cast<uint32_t>(i));
    threads_[i] = {};
    free_.push_back(i);
  }
  std::erase_if(by_serial_, [&](const auto& entry) { return is_retired[entry.second]; });
  losses_.of_ended += std::erase_if(zones_, [&](const Span& zone) { return is_retired[zone.thread]; });
  losses_.of_ended += std::erase_if(frames_, [&](const FrameSpan& frame) { return is_retired[frame.thread]; });
  deciding_.frames = 0;
  std::erase_if(tracks_, [&](const auto& entry) { return is_retired[entry.second.thread]; });
}

void ZoneTimeline::ThinIfFull() {
  if (bytes_ <= keeping_->thin_at_bytes) return;
  Label(builder_.profile().samples);
  Thin();
  while (bytes_ > max_bytes_ && keeping_->keeper.released_ns() < read_until_ns_) {
    MakeRoom();
    Thin();
  }
  keeping_->thin_at_bytes = bytes_ + std::max(bytes_ / 2, max_bytes_ / kThinDivisor);
}

// Gives up what is kept or what is not released, whichever is more.
void ZoneTimeline::MakeRoom() {
  FrameKeeper& keeper = keeping_->keeper;
  std::vector<uint64_t> unreleased_ns;
  for (const Span& zone : zones_) {
    if (zone.to_ns > keeper.released_ns()) unreleased_ns.push_back(zone.to_ns);
  }
  if (unreleased_ns.size() * 2 < zones_.size() && keeper.DropHalf()) return;
  if (unreleased_ns.empty()) return keeper.ReleaseUntil(read_until_ns_);
  const auto middle = unreleased_ns.begin() + static_cast<ptrdiff_t>(unreleased_ns.size() / 2);
  std::nth_element(unreleased_ns.begin(), middle, unreleased_ns.end());
  keeper.ReleaseUntil(*middle);
}

// Drops what no frame keeps. The last change of each thread before the released time stays: it says in which zone the
// thread is.
void ZoneTimeline::Thin() {
  const uint64_t until_ns = keeping_->keeper.Release();
  const KeptTimes times = Times();
  const auto is_gone = [&](uint32_t thread, uint64_t from_ns, uint64_t to_ns) {
    return to_ns <= until_ns && !times.Overlaps(threads_[thread].index, from_ns, to_ns);
  };
  losses_.forgotten +=
      std::erase_if(zones_, [&](const Span& zone) { return is_gone(zone.thread, zone.from_ns, zone.to_ns); });
  losses_.forgotten += std::erase_if(frames_, [&](const FrameSpan& frame) {
    return frame.is_decided && frame.to_ns <= until_ns && !IsIn(times, frame);
  });
  deciding_.frames = 0;
  for (auto& entry : tracks_) {
    Track& track = entry.second;
    std::erase_if(track.counter.points, [&](const auto& point) {
      return point.time_ns < until_ns && is_gone(track.thread, point.time_ns, point.time_ns);
    });
  }
  for (Thread& thread : threads_) {
    const auto next = std::upper_bound(thread.changes.begin(), thread.changes.end(), until_ns,
                                       [](uint64_t at_ns, const Change& change) { return at_ns < change.ns; });
    if (next == thread.changes.begin()) continue;
    thread.changes.erase(thread.changes.begin(), next - 1);
    thread.known_from_ns = thread.changes[0].ns;
  }
  CountBytes();
}

void ZoneTimeline::Restart(uint64_t from_ns, uint64_t to_ns) {
  std::erase_if(zones_, [&](const Span& zone) {
    if (zone.to_ns > to_ns) return false;
    ForgetZone(zone);
    return true;
  });
  deciding_.frames = 0;
  std::erase_if(frames_, [&](const FrameSpan& frame) { return frame.to_ns <= to_ns; });
  for (auto& [key, track] : tracks_) {
    std::erase_if(track.counter.points, [&](const ProfileCounter::Point& point) { return point.time_ns < to_ns; });
  }
  for (Thread& thread : threads_) {
    const auto later = std::ranges::upper_bound(thread.changes, from_ns, {}, &Change::ns);
    if (later != thread.changes.begin()) ForgetChanges(thread, static_cast<size_t>(later - thread.changes.begin()) - 1);
  }
  CountBytes();
  losses_ = {.since_ns = from_ns};
}

void ZoneTimeline::ForgetZone(const Span& zone) {
  uint64_t& known_ns = threads_[zone.thread].zones_known_ns;
  known_ns = std::max(known_ns, zone.to_ns);
}

void ZoneTimeline::ForgetChanges(Thread& thread, size_t count) {
  Drop(thread.changes, count);
  thread.known_from_ns = thread.changes[0].ns;
}

// Forgets the oldest 1/`divisor` of everything. The last change of each thread stays: it says in which zone the thread
// is.
size_t ZoneTimeline::Forget(size_t divisor) {
  for (const Span& zone : std::span(zones_).first(zones_.size() / divisor)) ForgetZone(zone);
  deciding_.frames = 0;
  const size_t dropped = Drop(zones_, zones_.size() / divisor) + Drop(frames_, frames_.size() / divisor);
  for (auto& [key, track] : tracks_) Drop(track.counter.points, track.counter.points.size() / divisor);
  for (Thread& thread : threads_) {
    if (thread.changes.empty()) continue;
    ForgetChanges(thread, std::min(thread.changes.size() / divisor, thread.changes.size() - 1));
  }
  CountBytes();
  return dropped;
}

}  // namespace perfkit::session
