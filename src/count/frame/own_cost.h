// What a zone and a mark of ours cost, in every counter: measured once, on empty zones, and subtracted in reports.
//
// The empty zones are two that take turns, as zones of a frame do: each has to be found among its siblings.
//
//   outer zone   |-----------------------------------|
//   empty zones     [..]  [..]  [..]  [..]  [..]         within: what an empty zone itself counts
//                 ^^    ^^    ^^    ^^    ^^             around: what it adds to its parent besides
//
// Measured in a tight loop, with warm caches: in a real frame it is rather more, never less.
#pragma once

#include <array>
#include <cstdint>

#include "src/count/frame/frame_thread.h"

namespace perfkit::count {

struct OwnCost {
  // Index 0 is the wall in ns, 1 + i is event i; per zone.
  std::array<double, 1 + kMaxEvents> within{}, around{};
  // What is left per zone when the calibration is applied to a second, equal run: how good the subtraction is.
  std::array<double, 1 + kMaxEvents> residue{};
  double mark_ns = 0;

  double zone_ns() const { return within[0] + around[0]; }
};

// On an open thread, whose tree is replaced by an empty one of the same shape afterwards.
OwnCost MeasureOwnCost(FrameThread& thread, uint64_t ns_per_tick_q32);

}  // namespace perfkit::count
