// The metrics that need no text: one table in the language of metrics.
//
// The formulas are those of simpleperf stat (system/extras/simpleperf/cmd_stat.cpp,
// CounterSummaries::GetCommentForSummary and GetRateComment) and perf stat (tools/perf/util/stat-shadow.c), so that
// results can be compared. They differ in two points: simpleperf prints cycles per instruction, perf instructions per
// cycle; perf divides by CPU time, simpleperf by the time that the counter ran. Here a clock rate is per CPU time if
// that was counted; all other rates are per elapsed time.
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/count/metric/evaluator.h"
#include "src/count/metric/parser.h"

namespace perfkit {
namespace {

// Each is of the row of its first event; the first one that has a value applies.
constexpr std::string_view kRowMetrics[] = {
    "cycles / task-clock [GHz]",
    "cycles / cpu-clock [GHz]",
    "cycles / duration_time [GHz of wall time]",
    "instructions / cycles [insn/cycle]",
    "100 * stalled-cycles-frontend / cycles [% of cycles stalled in front end]",
    "100 * stalled-cycles-backend / cycles [% of cycles stalled in back end]",
    "100 * cache-misses / cache-references [% of cache references]",
    "100 * branch-misses / branches [% of branches]",
    "100 * L1-dcache-load-misses / L1-dcache-loads [% of L1-dcache loads]",
    "100 * L1-dcache-store-misses / L1-dcache-stores [% of L1-dcache stores]",
    "100 * L1-icache-load-misses / L1-icache-loads [% of L1-icache loads]",
    "100 * LLC-load-misses / LLC-loads [% of LLC loads]",
    "100 * LLC-store-misses / LLC-stores [% of LLC stores]",
    "100 * dTLB-load-misses / dTLB-loads [% of dTLB loads]",
    "100 * dTLB-store-misses / dTLB-stores [% of dTLB stores]",
    "100 * iTLB-load-misses / iTLB-loads [% of iTLB loads]",
    "100 * branch-load-misses / branch-loads [% of branch loads]",
    "100 * node-load-misses / node-loads [% of node loads]",
    "100 * node-store-misses / node-stores [% of node stores]",
    "100 * minor-faults / page-faults [% of page faults]",
    "100 * major-faults / page-faults [% of page faults]",
    "task-clock / duration_time [CPUs used]",
    "cpu-clock / duration_time [CPUs used]",
};

// For the rows of all other events, and of those above whose other events are not counted.
constexpr std::string_view kRate = "events / seconds [/s]";

// Made once; immutable. Never destroyed: reports may be printed while a program ends.
const std::vector<Metric>& RowMetrics() {
  static const std::vector<Metric>& metrics = *[] {
    auto* const parsed = new std::vector<Metric>;
    for (const std::string_view text : kRowMetrics) parsed->push_back(count::ParseOwnMetric(text));
    return parsed;
  }();
  return metrics;
}

// The rate's formula names an event "events", which stands for any: the row's part is given that name.
MetricValue RateOf(const NamedCount& counted, uint64_t wall_ns) {
  static const Metric& rate = *new Metric(count::ParseOwnMetric(kRate));
  MetricPart part(counted);
  part.name = rate.events().front();
  return rate.Evaluate({&part, 1}, wall_ns);
}

// Returns three significant digits of a small number, else two decimals.
std::string FormatDecimals(double value) {
  const bool small = value > -0.1 && value < 0.1 && value != 0;
  return small ? absl::StrFormat("%.3g", value) : absl::StrFormat("%.2f", value);
}

}  // namespace

std::optional<MetricValue> MetricFor(std::span<const NamedCount> counts, size_t i, uint64_t wall_ns) {
  if (i >= counts.size() || !counts[i].count.validity.counted()) return std::nullopt;
  std::vector<MetricPart> parts = {counts[i]};  // In front: another row may have the same name.
  parts.insert(parts.end(), counts.begin(), counts.end());
  const count::EventName row(counts[i].name);
  for (const Metric& metric : RowMetrics()) {
    if (metric.events().front() != row.word) continue;
    MetricValue value = count::MetricEvaluator(metric, parts, row.modifiers).Evaluate(wall_ns);
    if (value.has_value()) return value;
  }
  MetricValue rate = RateOf(counts[i], wall_ns);
  if (!rate.has_value()) return std::nullopt;
  return rate;
}

std::string FormatMetric(const MetricValue& metric) {
  if (metric.unit != "/s") return FormatDecimals(metric.value) + (metric.unit.empty() ? "" : " " + metric.unit);
  if (metric.value >= 1e9) return absl::StrFormat("%.2f G/s", metric.value / 1e9);
  if (metric.value >= 1e6) return absl::StrFormat("%.2f M/s", metric.value / 1e6);
  if (metric.value >= 1e3) return absl::StrFormat("%.2f K/s", metric.value / 1e3);
  return FormatDecimals(metric.value) + " /s";
}

}  // namespace perfkit
