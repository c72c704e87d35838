// How long to wait before looking again for what handlers have missed: longer and longer while it is nowhere.
#pragma once

#include <algorithm>
#include <atomic>

namespace perfkit::unwind {

class Backoff {
 public:
  // Whether it is time to look, for `missed` was set; takes it back then. Called now and then.
  bool IsOver(std::atomic<bool>& missed) {
    if (!missed.load(std::memory_order_relaxed)) return false;
    if (left_ > 0) return --left_, false;
    missed.store(false, std::memory_order_relaxed);
    return true;
  }
  void Found(bool any) { left_ = last_ = any ? 0 : std::min(kMax, 2 * last_ + 1); }

 private:
  static constexpr unsigned kMax = 1023;

  unsigned left_ = 0, last_ = 0;  // calls
};

}  // namespace perfkit::unwind
