// Formats counts as text: tables with unit, coverage and metrics, and the reason for each missing count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/metric.h"
#include "perfkit/scope.h"

namespace perfkit {

// Returns one line for each event: its value (marked if it is scaled), unit, coverage and metric (below), or "n/a" with
// its reason; then one line for each of `metrics`. `wall_ns` is the elapsed time of the region, by which rates are
// computed; 0 means unknown. Allocates; for reports, not for hot paths.
std::string FormatTable(const CounterSet& set, const ScopeTotals& total, uint64_t wall_ns = 0,
                        std::span<const Metric> metrics = {});

// A line of such a table. TableRows makes the lines of a set. Callers may fill in others, e.g. sums over several sets
// or means of several runs.
struct TableRow {
  std::string name{};
  Count count{};
  std::string unit{};    // "" for plain events.
  double scale = 1;      // Value of one count, in `unit`.
  std::string reason{};  // Why there is no count; "" if there is one.
  std::string note{};    // Printed at the end of the line, in brackets.
};
// Returns one row for each event of `set`.
std::vector<TableRow> TableRows(const CounterSet& set, const ScopeTotals& total);

// Returns the counts of `rows` as the input of a metric: views, valid as long as `rows`.
std::vector<NamedCount> NamedCounts(std::span<const TableRow> rows);

// Returns the table of `rows`. `wall_ns` and `metrics` as in FormatTable.
std::string FormatRows(std::span<const TableRow> rows, uint64_t wall_ns = 0, std::span<const Metric> metrics = {});

// Returns in a few words, for tables, why `event` was not counted: "no PMU", "this process may not watch the kernel".
// `reason` is the Status of CounterSet::reason or Open, which says more and has the remedy. Returns "" for OK. May read
// sysfs.
std::string FormatReason(const EventConfig& event, const absl::Status& reason);

// Returns one line about this machine: "Linux 6.18.5, no PMU, perf_event_paranoid 2, uid 1000". Reads /proc and sysfs.
std::string FormatMachine(const EventRoots& roots = {});

// Returns "1,234,567" for 1234567.
std::string FormatNumber(uint64_t value);

// Built-in metrics, as `simpleperf stat` and `perf stat` print them beside each count: instructions per cycle, clock
// rate, miss ratios, CPUs used, and for all other events a rate per second.

// Returns the built-in metric of `counts[i]`. Its formula uses this count, and may use others of `counts` that have the
// same modifiers. `wall_ns` is the elapsed time of the region; 0 means unknown, and gives no rates. Returns nullopt if
// there is no metric with a value.
std::optional<MetricValue> MetricFor(std::span<const NamedCount> counts, size_t i, uint64_t wall_ns);

// Returns the value as text: "1.84 insn/cycle", "0.93 CPUs used", "2.10 K/s". Requires that it has a value.
std::string FormatMetric(const MetricValue& metric);

}  // namespace perfkit
