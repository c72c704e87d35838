// What counts mean together: instructions a cycle, clock rate, miss ratios, rates a second, CPUs used.
//
// The comments that simpleperf stat and perf stat print behind a count, as values. A metric needs every count that it
// is made of: where one was not counted there is no metric, and where one was multiplexed its scaled value is taken and
// the lowest coverage is carried along.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perfkit/count.h"

namespace perfkit {

// A count with the event's canonical name, as the input of a metric.
struct NamedCount {
  std::string_view name;
  Count count;
};

// "1.84 instructions per cycle", with the coverage of its weakest part.
struct Metric {
  double value = 0;
  std::string_view unit;
  double coverage = 0;
};

// The metric that belongs behind `counts[i]`, from that count and the others. `wall_ns` is how long the region took on
// the clock on the wall; 0: unknown, then nothing is related to it. Nothing where no metric applies.
std::optional<Metric> MetricFor(std::span<const NamedCount> counts, size_t i, uint64_t wall_ns);

// The metric as text: "1.84 insn/cycle", "0.93 CPUs used", "2.10 K/s".
std::string FormatMetric(const Metric& metric);

}  // namespace perfkit
