// Converts ticks of the CPU's tick counter to times of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfkit::count {

// The rate of CLOCK_MONOTONIC changes a little over time, so pairs of readings of both clocks follow it. Not
// thread-safe.
class TickClock {
 public:
  // `ns_per_tick_q32`: initial nanoseconds per tick, in units of 2^-32.
  explicit TickClock(uint64_t ns_per_tick_q32);

  // Reads both clocks, unless the last reading is less than 100 us old.
  void Read();
  // Returns the time of a tick, exact to some 100 ns. The time of a tick between two of the last kMaxPairs readings is
  // the same at each call: the order of records does not depend on when they are read.
  uint64_t ToNs(uint64_t ticks) const;

  static constexpr size_t kMaxPairs = 64;

 private:
  struct Pair {
    uint64_t ticks = 0, ns = 0;
  };
  static Pair ReadPair();
  static double RateOf(const Pair& from, const Pair& to);

  std::vector<Pair> pairs_;  // The oldest first; never empty.
  double ns_per_tick_;       // From the oldest pair to the latest.
};

}  // namespace perfkit::count
