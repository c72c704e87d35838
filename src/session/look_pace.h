// Decides when threads are examined again sooner than usual. If frames wait often and briefly, usual rounds miss most of
// these waits. But a round costs time, so early rounds have a budget: 80 a second on average, at most eight in a row.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perfkit::session {

// Not thread-safe.
class LookPace {
 public:
  // A thread that marks frames has waited for `ns` without being examined.
  void AddMissed(uint64_t ns) { missed_ns_ += ns; }
  // A round has ended: decides about the next one. It comes early if the missed waits of all such threads add up to a
  // quarter of the time since the last round, or more.
  void EndRound(uint64_t now_ns) {
    const uint64_t passed_ns = now_ns - std::min(now_ns, last_ns_);
    saved_ns_ = std::min(saved_ns_ + passed_ns, kMaxEarly * kNsAnEarlyRound);
    hurries_ = missed_ns_ >= passed_ns / 4 && missed_ns_ != 0 && saved_ns_ >= kNsAnEarlyRound;
    if (hurries_) saved_ns_ -= kNsAnEarlyRound;
    missed_ns_ = 0;
    last_ns_ = now_ns;
  }
  // No thread can be examined, so the next round does not come early.
  void GiveUp() {
    hurries_ = false;
    missed_ns_ = 0;
  }
  // Returns true if the next round should come early.
  bool hurries() const { return hurries_; }

 private:
  static constexpr uint64_t kNsAnEarlyRound = 12'500'000;  // time in which the budget grows by one early round
  static constexpr uint64_t kMaxEarly = 8;                 // in a row

  uint64_t missed_ns_ = 0;  // since the last round
  uint64_t last_ns_ = 0;    // of the last round
  uint64_t saved_ns_ = 0;   // unused time; each early round takes kNsAnEarlyRound of it
  bool hurries_ = false;
};

}  // namespace perfkit::session
