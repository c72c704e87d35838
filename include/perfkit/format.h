// Numbers as people read them: a table of counts with unit, coverage, metrics and, for what is missing, the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/scope.h"

namespace perfkit {

// One line an event: value (scaled where it was multiplexed, and then said so), unit, coverage, the metric that goes
// with it (below), or "n/a" with its reason. `wall_ns` is how long it all took on the clock on the wall; with 0,
// unknown, nothing is related to that. Allocates; for reports, not for hot paths.
std::string FormatTable(const CounterSet& set, const ScopeTotals& total, uint64_t wall_ns = 0);

// A line of such a table. Those of a set come from TableRows; sums over several sets, or means of several runs, are
// filled in by hand.
struct TableRow {
  std::string name{};
  Count count{};
  std::string unit{};    // "" for plain events
  double scale = 1;      // what one count stands for, in `unit`
  std::string reason{};  // why there is no number
  std::string note{};    // printed at the end of the line, in brackets
};
std::vector<TableRow> TableRows(const CounterSet& set, const ScopeTotals& total);

// The table of `rows`; `wall_ns` as in FormatTable.
std::string FormatRows(std::span<const TableRow> rows, uint64_t wall_ns = 0);

// Why `event` has no number, in a few words, from the Status that CounterSet::reason or Open gave: "no PMU", "this
// process may not watch that much". "" for OK. For tables; the Status itself says more, and the remedy. May read sysfs.
std::string FormatReason(const EventConfig& event, const absl::Status& reason);

// Where the numbers come from, in one line: "Linux 6.18.5, no PMU, perf_event_paranoid 2, uid 1000". Reads /proc,
// sysfs.
std::string FormatMachine(const EventRoots& roots = {});

// 1234567 -> "1,234,567".
std::string FormatNumber(uint64_t value);

// Metrics, the comments that simpleperf stat and perf stat print after a count, as values: instructions a cycle, clock
// rate, miss ratios, rates a second, CPUs used. A metric needs every count that it is made of: where one was not
// counted there is no metric, and where one was multiplexed its scaled value is taken and the lowest coverage is
// carried along.

// A count with the event's canonical name, as the input of a metric.
struct NamedCount {
  std::string_view name{};
  Count count{};
};

// "1.84 instructions per cycle", with the coverage of its weakest part.
struct Metric {
  double value = 0;
  std::string_view unit;
  double coverage = 0;
};

// The metric that belongs after `counts[i]`, from that count and the others. `wall_ns` is how long the region took on
// the clock on the wall; 0: unknown, then nothing is related to it. Nothing where no metric applies.
std::optional<Metric> MetricFor(std::span<const NamedCount> counts, size_t i, uint64_t wall_ns);

// The metric as text: "1.84 insn/cycle", "0.93 CPUs used", "2.10 K/s".
std::string FormatMetric(const Metric& metric);

}  // namespace perfkit
