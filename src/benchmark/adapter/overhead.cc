// Measures empty segments and empty loops a few times each; the cost of an event is its minimum, because interrupts and
// other threads only add. The cost of a round is what many rounds take beyond an empty segment, divided by their
// number.
#include "src/benchmark/adapter/overhead.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace perfkit::adapter {
namespace {

constexpr int kTries = 5;
constexpr int64_t kRounds = 2048;

// Compiles to what benchmark.h's iterator compiles to: a count in a register, down to 0. The barrier keeps the compiler
// from dropping or unrolling the loop, as a body would.
void EmptyLoop(int64_t rounds) {
  for (int64_t left = rounds; left != 0; --left) asm volatile("" : "+r"(left));
}

using Costs = std::array<double, kMaxEvents>;

// Returns the minimum count of each event over `rounds` empty rounds; 0 if there is no count.
Costs MinOf(const CounterSet& set, void (*loop)(int64_t), int64_t rounds) {
  Costs least;
  least.fill(std::numeric_limits<double>::infinity());
  for (int t = 0; t < kTries; ++t) {
    Snapshot begin, end;
    set.Read(begin);
    if (rounds > 0) loop(rounds);
    set.Read(end);
    for (size_t i = 0; i < set.size(); ++i) {
      const std::optional<uint64_t> value = set.Difference(begin, end, i).scaled();
      if (value) least[i] = std::min(least[i], static_cast<double>(*value));
    }
  }
  for (double& cost : least) {
    if (cost == std::numeric_limits<double>::infinity()) cost = 0;
  }
  return least;
}

}  // namespace

double Overhead::Without(double value, size_t i, uint64_t segments, int64_t rounds) const {
  const double own = per_segment[i] * static_cast<double>(segments) + per_round[i] * static_cast<double>(rounds);
  return std::max(0.0, value - own);
}

Overhead MeasureOverhead(const CounterSet& set, void (*empty_loop)(int64_t rounds)) {
  if (empty_loop == nullptr) empty_loop = EmptyLoop;
  Overhead overhead;
  MinOf(set, empty_loop, 0);  // Warms up: the first read renews the clock's base.
  overhead.per_segment = MinOf(set, empty_loop, 0);
  const Costs loop = MinOf(set, empty_loop, kRounds);
  for (size_t i = 0; i < set.size(); ++i) {
    overhead.per_round[i] = std::max(0.0, loop[i] - overhead.per_segment[i]) / static_cast<double>(kRounds);
  }
  return overhead;
}

}  // namespace perfkit::adapter
