// Arithmetic of counters: scaling of multiplexed counts.
//
// It stands apart from everything that opens or reads a counter, so that it can be tested with plain numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace perfkit::base {

// What a counter that ran for `running` of `enabled` nanoseconds would have counted, had it run throughout:
// value * enabled / running, in 128 bits (64 overflow after 4.3 s at one event a nanosecond), rounded to nearest.
// Nothing when it never ran: there is no estimate of what was not looked at. Saturates at 2^64 - 1.
constexpr std::optional<uint64_t> Scale(uint64_t value, uint64_t enabled, uint64_t running) {
  if (running >= enabled) return enabled == 0 || running > 0 ? std::optional(value) : std::nullopt;
  if (running == 0) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = (Wide{value} * enabled + running / 2) / running;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return scaled > kMax ? kMax : static_cast<uint64_t>(scaled);
}

}  // namespace perfkit::base
