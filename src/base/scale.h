// Arithmetic of counters: sign extension of raw PMU values and scaling of multiplexed counts.
//
// It stands apart from everything that opens or reads a counter, so that it can be tested with plain numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace perfkit::base {

// `value` as a signed number of `width` bits (perf_event_mmap_page.pmc_width), widened to 64.
// A width of 0 (no PMU behind the page) has no bits to keep: the result is 0. Widths above 64 count as 64.
constexpr int64_t SignExtend(uint64_t value, unsigned width) {
  if (width == 0) return 0;
  if (width >= 64) return static_cast<int64_t>(value);
  const unsigned unused = 64 - width;
  return static_cast<int64_t>(value << unused) >> unused;
}

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
