// What a short wait was probably for, by the examined waits beside it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "perfkit/slow_frames.h"
#include "src/profile/frame_causes.h"

namespace perfkit::profile {

// Returns true if the waiting thread was examined during the wait.
bool WasExamined(const Profile& profile, const WaitPiece& piece);

class WaitNeighbours {
 public:
  // `thread`: the one that waits in `waits`, which may have any order. `profile` must outlive this.
  WaitNeighbours(const Profile& profile, uint32_t thread, std::span<const WaitPiece> waits);

  // Many short waits in a row are probably for the same: what those before and after this one in its zone were for, if
  // that is no contradiction to `own`, which is known of this one. It takes two that agree: the one before and the one
  // after it, or, if there is none on one side, the two next ones on the other. Returns nullopt if they do not.
  std::optional<FrameCause> CauseLike(const WaitPiece& piece, const FrameCause& own) const;

 private:
  std::vector<const WaitPiece*> Nearest(const WaitPiece& piece) const;

  const Profile& profile_;
  const uint32_t thread_;
  std::vector<WaitPiece> examined_;  // in order of time
};

}  // namespace perfkit::profile
