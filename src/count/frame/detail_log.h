// Owns the two detail rings (detail_ring.h) of the marking thread, from which HitchWatch explains a late frame.
#pragma once

#include <optional>

#include "src/count/frame/detail_ring.h"
#include "src/open/live_ring.h"

namespace perfkit::count {

// For the marking thread only.
class DetailLog {
 public:
  // Opens both rings for the calling thread. Never fails: if a ring can't be opened, its view is not known(), and
  // HitchWatch explains less.
  void Open();
  void Close();

  DetailRing switches() const { return View(switches_); }
  DetailRing faults() const { return View(faults_); }

  // Called in a forked child by FrameCounterImpl, which listens to forks.
  void OnForkedChild();

 private:
  static DetailRing View(const std::optional<open::LiveRing>& ring);

  std::optional<open::LiveRing> switches_, faults_;
};

}  // namespace perfkit::count
