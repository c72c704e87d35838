// One neighbour alone proves little: the first wait of a zone may be for a file, and all that follow for a lock.
#include "src/profile/wait_neighbours.h"

#include <algorithm>

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;

constexpr size_t kNeeded = 2;

// What a wait is for that is probably one for a disk.
bool IsOfDisk(Kind kind) { return kind == Kind::kIo || kind == Kind::kPageFaults || kind == Kind::kSystemCall; }

}  // namespace

bool WasExamined(const Profile& profile, const WaitPiece& piece) {
  const uint32_t wait = profile.samples[piece.sample].wait;
  return wait != ProfileSample::kNoWait && profile.waits[wait].examined_ns != 0;
}

WaitNeighbours::WaitNeighbours(const Profile& profile, uint32_t thread, std::span<const WaitPiece> waits)
    : profile_(profile), thread_(thread) {
  for (const WaitPiece& piece : waits) {
    if (WasExamined(profile, piece)) examined_.push_back(piece);
  }
  std::ranges::stable_sort(examined_, {}, [](const WaitPiece& piece) { return piece.from_ns; });
}

std::vector<const WaitPiece*> WaitNeighbours::Nearest(const WaitPiece& piece) const {
  const uint32_t label = profile_.samples[piece.sample].label;
  const auto is_in_zone = [&](const WaitPiece& one) { return profile_.samples[one.sample].label == label; };
  const auto middle =
      std::ranges::lower_bound(examined_, piece.from_ns, {}, [](const WaitPiece& one) { return one.from_ns; });
  std::vector<const WaitPiece*> before, after;
  for (auto one = middle; one != examined_.begin() && before.size() < kNeeded && is_in_zone(*std::prev(one));) {
    before.push_back(&*--one);
  }
  for (auto one = middle; one != examined_.end() && after.size() < kNeeded && is_in_zone(*one); ++one) {
    after.push_back(&*one);
  }
  if (before.empty()) return after;
  if (after.empty()) return before;
  return {before.front(), after.front()};
}

std::optional<FrameCause> WaitNeighbours::CauseLike(const WaitPiece& piece, const FrameCause& own) const {
  const uint32_t wait = profile_.samples[piece.sample].wait;
  const bool has_wait = wait != ProfileSample::kNoWait;
  // Its neighbours may have waited for threads of this one.
  if (has_wait && profile_.strings[profile_.waits[wait].waker].ends_with(ProfileWait::kOfOtherProgram)) {
    return std::nullopt;
  }
  const std::vector<const WaitPiece*> nearest = Nearest(piece);
  if (nearest.size() < kNeeded) return std::nullopt;
  FrameCause first = CauseOfWait(profile_, thread_, *nearest.front(), false).cause;
  const FrameCause last = CauseOfWait(profile_, thread_, *nearest.back(), false).cause;
  if (first.kind == Kind::kUnknown || first.kind != last.kind || first.what != last.what ||
      first.thread != last.thread)
    return std::nullopt;
  const bool same_thread = own.kind == Kind::kUnknown || own.thread == first.thread;
  if (!same_thread || (own.kind == Kind::kIo && !IsOfDisk(first.kind))) return std::nullopt;
  first.confidence = FrameCause::Confidence::kLikely;
  return first;
}

}  // namespace perfkit::profile
