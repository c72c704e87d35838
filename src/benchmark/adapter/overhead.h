// The cost of counting a loop, measured with the same counters that will count it.
//
//   counted = body * iterations + per_round * iterations + per_segment * segments
//             ^ the result         ^ subtract, jump          ^ the end of one read and the begin of the next
#pragma once

#include <array>
#include <cstdint>

#include "perfkit/count.h"
#include "perfkit/counter.h"

namespace perfkit::adapter {

struct Overhead {
  std::array<double, kMaxEvents> per_segment{};
  std::array<double, kMaxEvents> per_round{};

  // Returns the `value` of event i over `rounds` of the loop, which pauses have cut into `segments`, minus the loop's own cost. Never
  // negative: that cost is a minimum of noisy numbers, and a body without cost may count less.
  double Without(double value, size_t i, uint64_t segments, int64_t rounds) const;
};

// Measures on the calling thread, with a set that counts it: about 10,000 rounds of `empty_loop`, or if that is
// nullptr, of a loop as an optimising compiler makes it. Uses minima, because noise only adds.
Overhead MeasureOverhead(const CounterSet& set, void (*empty_loop)(int64_t rounds) = nullptr);

}  // namespace perfkit::adapter
