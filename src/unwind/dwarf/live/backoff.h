// Decides when to look again for something that signal handlers have missed: less and less often while it is not found.
#pragma once

#include <algorithm>
#include <atomic>

namespace perfkit::unwind {

// Counts calls of IsOver. Not thread-safe, except for the flag.
class Backoff {
 public:
  // Returns true if `missed` is set and it is time to look; clears `missed` then.
  bool IsOver(std::atomic<bool>& missed) {
    if (!missed.load(std::memory_order_relaxed)) return false;
    if (left_ > 0) return --left_, false;
    missed.store(false, std::memory_order_relaxed);
    return true;
  }
  // Reports the result of a look. Until something is found, the number of calls that are skipped doubles each time.
  void Found(bool any) { left_ = last_ = any ? 0 : std::min(kMax, 2 * last_ + 1); }

 private:
  static constexpr unsigned kMax = 1023;  // Maximum of skipped calls.

  unsigned left_ = 0, last_ = 0;  // In calls: still to skip, and skipped the last time.
};

}  // namespace perfkit::unwind
