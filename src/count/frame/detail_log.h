// The two detail rings of the marking thread, open: what HitchWatch looks into when a frame was late.
#pragma once

#include <optional>

#include "src/count/frame/detail_ring.h"
#include "src/open/live_ring.h"

namespace perfkit::count {

class DetailLog {
 public:
  // Opens both rings for the calling thread. Each may be missing: then HitchWatch says that the kernel does not tell.
  void Open();
  void Close();

  DetailRing switches() const { return View(switches_); }
  DetailRing faults() const { return View(faults_); }

  // In the child of a fork, by FrameCounterImpl's watch.
  void OnForkedChild();

 private:
  static DetailRing View(const std::optional<open::LiveRing>& ring);

  std::optional<open::LiveRing> switches_, faults_;
};

}  // namespace perfkit::count
