// Kept frames are in a list, the longest first. Each of them says for which numbers of KeepFrames::worst_by it is kept.
// References are a reservoir sample (Vitter's algorithm R): at any time, each frame of the run so far is among them
// with the same probability.
#include "src/session/frame_keeper.h"

#include <algorithm>

namespace perfkit::session {
namespace {

bool IsLonger(const EndedFrame& a, const EndedFrame& b) { return a.duration_ns() > b.duration_ns(); }

}  // namespace

uint64_t FrameKeeper::Random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void FrameKeeper::Add(const EndedFrame& frame) {
  Kind& kind = kinds_[{frame.thread, frame.sequence}];
  if (frame.from_ns > kind.end_ns + kFrameRoundingNs) kind.before.clear();
  const uint64_t before_ns = kind.before.empty() ? frame.from_ns : kind.before.front();
  if (frame.from_ns >= released_ns_) {
    AddReference(kind, frame);
    Keep(kind, {frame, std::max(before_ns, released_ns_)});
  } else if (frame.is_slow() || IsLongest(kind, frame) || WouldBeWorstBy(kind, frame) != 0) {
    ++dropped_;
  }
  kind.end_ns = frame.to_ns;
  kind.before.push_back(frame.from_ns);
  if (kind.before.size() > options_.before) kind.before.pop_front();
}

void FrameKeeper::AddReference(Kind& kind, const EndedFrame& frame) {
  if (frame.from_ns < start_ns_) return;
  const size_t room = std::min(options_.references, kind.max_references);
  if (kind.references.size() < room && kind.seen == kind.references.size()) {
    kind.references.push_back(frame);
  } else if (const uint64_t slot = Random() % (kind.seen + 1); slot < std::min(room, kind.references.size())) {
    kind.references[slot] = frame;
  }
  ++kind.seen;
}

bool FrameKeeper::IsLongest(const Kind& kind, const EndedFrame& frame) const {
  return options_.worst != 0 &&
         (kind.kept.size() < options_.worst || IsLonger(frame, kind.kept[options_.worst - 1].frame));
}

uint64_t FrameKeeper::WouldBeWorstBy(const Kind& kind, const EndedFrame& frame) const {
  uint64_t mask = 0;
  for (size_t i = 0; i < frame.numbers.size() && options_.worst != 0; ++i) {
    const uint64_t to_beat = i < kind.to_beat.size() ? kind.to_beat[i] : 0;
    if (frame.numbers[i] > to_beat) mask |= uint64_t{1} << i;
  }
  return mask;
}

// If more than `worst` frames are kept for this number, one with the smallest number is not kept for it any more: the
// latest of them.
void FrameKeeper::KeepWorstBy(Kind& kind, size_t number) const {
  const uint64_t bit = uint64_t{1} << number;
  std::vector<Kept*> worst;
  for (Kept& one : kind.kept) {
    if ((one.worst_by & bit) != 0) worst.push_back(&one);
  }
  std::sort(worst.begin(), worst.end(), [&](const Kept* a, const Kept* b) {
    return std::pair(b->frame.numbers[number], a->frame.from_ns) <
           std::pair(a->frame.numbers[number], b->frame.from_ns);
  });
  for (size_t i = options_.worst; i < worst.size(); ++i) worst[i]->worst_by &= ~bit;
  if (kind.to_beat.size() <= number) kind.to_beat.resize(number + 1);
  kind.to_beat[number] = worst.size() < options_.worst ? 0 : worst[options_.worst - 1]->frame.numbers[number];
}

void FrameKeeper::Keep(Kind& kind, Kept kept) {
  kept.worst_by = WouldBeWorstBy(kind, kept.frame);
  if (!IsLongest(kind, kept.frame) && kept.worst_by == 0 && !kept.frame.is_slow()) return;
  const auto at = std::upper_bound(kind.kept.begin(), kind.kept.end(), kept,
                                   [](const Kept& a, const Kept& b) { return IsLonger(a.frame, b.frame); });
  const uint64_t changed = kept.worst_by;
  kind.kept.insert(at, std::move(kept));
  for (size_t i = 0; i < options_.worst_by.size(); ++i) {
    if ((changed >> i & 1) != 0) KeepWorstBy(kind, i);
  }
  const auto is_longest = [&](const Kept& one) {
    return static_cast<size_t>(&one - kind.kept.data()) < options_.worst;
  };
  const size_t longest = std::min(kind.kept.size(), options_.worst);
  kind.kept.erase(std::remove_if(kind.kept.begin() + static_cast<ptrdiff_t>(longest), kind.kept.end(),
                                 [](const Kept& one) { return one.worst_by == 0 && !one.frame.is_slow(); }),
                  kind.kept.end());
  const auto worst = static_cast<size_t>(std::count_if(
      kind.kept.begin(), kind.kept.end(), [&](const Kept& one) { return is_longest(one) || one.worst_by != 0; }));
  while (kind.kept.size() > std::max(options_.max_frames, worst)) DropOne(kind);
}

// Drops none of the longest frames, and none that is kept for a number.
void FrameKeeper::DropOne(Kind& kind) {
  const auto first = kind.kept.begin() + static_cast<ptrdiff_t>(options_.worst);
  const auto dropped = std::min_element(first, kind.kept.end(), [](const Kept& a, const Kept& b) {
    if ((a.worst_by != 0) != (b.worst_by != 0)) return a.worst_by == 0;
    if (a.frame.has_reason != b.frame.has_reason) return !a.frame.has_reason;
    return a.frame.has_reason ? a.frame.from_ns < b.frame.from_ns : IsLonger(b.frame, a.frame);
  });
  kind.kept.erase(dropped);
  ++dropped_;
}

void FrameKeeper::EndThread(uint32_t thread) { ended_.insert(thread); }

void FrameKeeper::Forget(uint32_t thread) {
  ended_.erase(thread);
  std::erase_if(kinds_, [&](const auto& entry) {
    if (entry.first.first != thread) return false;
    dropped_ += entry.second.kept.size();
    return true;
  });
}

// Releases nothing before the first frame, because that one may be slow.
uint64_t FrameKeeper::Release() {
  if (kinds_.empty() && decided_ns_ != UINT64_MAX) return released_ns_;
  uint64_t until_ns = decided_ns_;
  for (const auto& [key, kind] : kinds_) {
    if (ended_.contains(key.first) || decided_ns_ == UINT64_MAX) continue;
    until_ns = std::min(until_ns, kind.before.empty() ? kind.end_ns : kind.before.front());
  }
  ReleaseUntil(until_ns);
  return released_ns_;
}

void FrameKeeper::ReleaseUntil(uint64_t until_ns) { released_ns_ = std::max(released_ns_, until_ns); }

bool FrameKeeper::DropHalf() {
  std::vector<EndedFrame> kept;
  bool any_dropped = false;
  for (auto& [key, kind] : kinds_) {
    for (const Kept& one : kind.kept) kept.push_back(one.frame);
    any_dropped = any_dropped || !kind.references.empty();
    kind.max_references = kind.references.size() / 2;
    // A random half: references are in the order in which they were added until the room for them is used up.
    for (size_t i = 0; i < kind.max_references; ++i) {
      std::swap(kind.references[i], kind.references[i + Random() % (kind.references.size() - i)]);
    }
    kind.references.resize(kind.max_references);
  }
  if (kept.empty()) return any_dropped;
  const auto is_less = [](const EndedFrame& a, const EndedFrame& b) {
    if (a.has_reason != b.has_reason) return b.has_reason;
    return std::pair(a.duration_ns(), a.from_ns) < std::pair(b.duration_ns(), b.from_ns);
  };
  const auto middle = kept.begin() + static_cast<ptrdiff_t>((kept.size() - 1) / 2);
  std::nth_element(kept.begin(), middle, kept.end(), is_less);
  for (auto& [key, kind] : kinds_) {
    dropped_ += std::erase_if(kind.kept, [&](const Kept& one) { return !is_less(*middle, one.frame); });
    for (size_t i = 0; i < kind.to_beat.size(); ++i) KeepWorstBy(kind, i);
  }
  return true;
}

bool FrameKeeper::IsReference(const EndedFrame& frame) const {
  const auto kind = kinds_.find({frame.thread, frame.sequence});
  return kind != kinds_.end() && std::any_of(kind->second.references.begin(), kind->second.references.end(),
                                             [&](const EndedFrame& one) { return one.from_ns == frame.from_ns; });
}

uint64_t FrameKeeper::WorstBy(const EndedFrame& frame) const {
  const auto kind = kinds_.find({frame.thread, frame.sequence});
  if (kind == kinds_.end()) return 0;
  for (const Kept& one : kind->second.kept) {
    if (one.frame.from_ns == frame.from_ns) return one.worst_by;
  }
  return 0;
}

KeptTimes FrameKeeper::Times(absl::FunctionRef<uint32_t(uint32_t thread)> index_of) const {
  KeptTimes times;
  times.Add(released_ns_, UINT64_MAX);
  for (const auto& [key, kind] : kinds_) {
    for (const Kept& kept : kind.kept) times.Add(kept.kept_from_ns, kept.frame.to_ns);
    for (const EndedFrame& frame : kind.references) times.Add(frame.from_ns, frame.to_ns, index_of(key.first));
  }
  times.Join();
  return times;
}

KeptTimes FrameKeeper::TimesOf(const EndedFrame& frame, absl::FunctionRef<uint32_t(uint32_t thread)> index_of) const {
  KeptTimes times;
  const auto kind = kinds_.find({frame.thread, frame.sequence});
  if (kind == kinds_.end() || frame.from_ns < released_ns_) return times;
  times.Add(frame.from_ns, frame.to_ns);  // although there may be no room to keep it
  for (const Kept& kept : kind->second.kept) {
    if (kept.frame.from_ns == frame.from_ns) times.Add(kept.kept_from_ns, frame.to_ns);
  }
  for (const EndedFrame& one : kind->second.references) times.Add(one.from_ns, one.to_ns, index_of(one.thread));
  times.Join();
  return times;
}

}  // namespace perfkit::session
