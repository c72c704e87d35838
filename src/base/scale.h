// Scales multiplexed counts. Pure arithmetic, apart from all code that opens or reads a counter.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace perfkit::base {

// Estimates the count of a counter that ran for `running` of `enabled` nanoseconds: value * enabled / running, rounded
// to nearest, saturating at 2^64 - 1. Computes in 128 bits: 64 would overflow after 4.3 s at one event a nanosecond.
// Returns nullopt if the counter never ran while it was enabled.
constexpr std::optional<uint64_t> Scale(uint64_t value, uint64_t enabled, uint64_t running) {
  if (running >= enabled) return value;  // Never enabled too: its 0 is exact.
  if (running == 0) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = (Wide{value} * enabled + running / 2) / running;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return scaled > kMax ? kMax : static_cast<uint64_t>(scaled);
}

}  // namespace perfkit::base
