// What counting a loop costs by itself, measured with the very counters that will count it.
//
//   counted = body * iterations + per_round * iterations + per_segment * segments
//             ^ what is wanted     ^ subtract, jump          ^ the end of one read and the begin of the next
#pragma once

#include <array>
#include <cstdint>

#include "perfkit/count.h"
#include "perfkit/counter.h"

namespace perfkit::adapter {

struct Overhead {
  std::array<double, kMaxEvents> per_segment{};
  std::array<double, kMaxEvents> per_round{};

  // `value` of event i over `rounds` of the loop in `segments` pieces, without the loop's own part. Never below 0: the
  // part is a minimum of noisy numbers, and a body that costs nothing may undercut it.
  double Without(double value, size_t i, uint64_t segments, int64_t rounds) const;
};

// On the calling thread, with a set that counts it: about 10,000 rounds of an empty loop, `empty_loop` or, if that is
// null, one as an optimising compiler makes it. Minima, since noise only adds.
Overhead MeasureOverhead(const CounterSet& set, void (*empty_loop)(int64_t rounds) = nullptr);

}  // namespace perfkit::adapter
