// When threads are looked at again sooner than usual. Of a frame that waits often, and briefly each time, few waits
// would be examined. But looks cost time: a program that always waits so has a few more of them, not four times as
// many.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perfkit::session {

// Not thread-safe.
class LookPace {
 public:
  // A frame's thread has waited so long without being examined.
  void AddMissed(uint64_t ns) { missed_ns_ += ns; }
  // A round of looks has ended: decides about the next one.
  void EndRound(uint64_t now_ns) {
    const uint64_t passed_ns = now_ns - std::min(now_ns, last_ns_);
    saved_ns_ = std::min(saved_ns_ + passed_ns, kMaxEarly * kNsAnEarlyRound);
    hurries_ = missed_ns_ >= passed_ns / 4 && missed_ns_ != 0 && saved_ns_ >= kNsAnEarlyRound;
    if (hurries_) saved_ns_ -= kNsAnEarlyRound;
    missed_ns_ = 0;
    last_ns_ = now_ns;
  }
  // Whether the next round should come early.
  bool hurries() const { return hurries_; }

 private:
  static constexpr uint64_t kNsAnEarlyRound = 12'500'000;  // on average
  static constexpr uint64_t kMaxEarly = 8;                 // in a row

  uint64_t missed_ns_ = 0, last_ns_ = 0;
  uint64_t saved_ns_ = 0;
  bool hurries_ = false;
};

}  // namespace perfkit::session
