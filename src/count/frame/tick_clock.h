// When a tick of the machine's counter was, by CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

namespace perfkit::count {

// Follows CLOCK_MONOTONIC, whose rate changes a little with time, by pairs of readings of both. Not thread-safe.
class TickClock {
 public:
  // `ns_per_tick_q32`: nanoseconds a tick in 2^-32, to begin with.
  explicit TickClock(uint64_t ns_per_tick_q32);

  // Reads both clocks. ToNs is exact, to some 100 ns, between the last two calls; earlier it goes on in a straight
  // line.
  void Read();
  uint64_t ToNs(uint64_t ticks) const;

 private:
  struct Pair {
    uint64_t ticks = 0, ns = 0;
  };
  static Pair ReadPair();

  Pair base_;
  double ns_per_tick_;
};

}  // namespace perfkit::count
