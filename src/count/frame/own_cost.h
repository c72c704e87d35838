// What perfkit's zones and marks cost in each counter: measured once, on empty zones, and subtracted in reports.
//
// Two empty zones alternate, so that each has to be found among its siblings, as in a real frame.
//
//   outer zone   |-----------------------------------|
//   empty zones     [..]  [..]  [..]  [..]  [..]         within: what an empty zone itself counts
//                 ^^    ^^    ^^    ^^    ^^             around: what it adds to its parent besides
//
// Measured in a tight loop, with warm caches: the cost in a real frame is rather higher.
#pragma once

#include <array>
#include <cstdint>

#include "src/count/frame/frame_thread.h"

namespace perfkit::count {

struct OwnCost {
  // Index 0 is the wall in ns, 1 + i is event i; per zone.
  std::array<double, 1 + kMaxEvents> within{}, around{};
  // By how much a second calibration differs, per zone: the error of the subtraction.
  std::array<double, 1 + kMaxEvents> residue{};
  double mark_ns = 0;

  double zone_ns() const { return within[0] + around[0]; }
};

// Requires that the thread's events are open. Replaces the thread's tree by an empty one of the same shape.
OwnCost MeasureOwnCost(FrameThread& thread, uint64_t ns_per_tick_q32);

}  // namespace perfkit::count
