// The table of metrics, and the division that computes them.
//
// The formulas are those of simpleperf stat (system/extras/simpleperf/cmd_stat.cpp,
// CounterSummaries::GetCommentForSummary and GetRateComment) and perf stat (tools/perf/util/stat-shadow.c), so that
// results can be compared. They differ in two points: simpleperf prints cycles per instruction, perf instructions per
// cycle; perf divides by CPU time, simpleperf by the time that the counter ran. Here a clock rate is per CPU time if
// that was counted; all other rates are per elapsed time.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/scale.h"

namespace perfkit {
namespace {

// `numerator` / `denominator` * `factor` is in `unit`. An empty denominator means elapsed time in ns.
struct Rule {
  std::string_view numerator;
  std::string_view denominator;
  double factor;
  std::string_view unit;
};

// The first rule whose denominator was counted applies. kAliases has the aliases of perf and simpleperf.
constexpr auto kRules = std::to_array<Rule>({
    {"cycles", "task-clock", 1, "GHz"},
    {"cycles", "cpu-clock", 1, "GHz"},
    {"cycles", "", 1, "GHz of wall time"},
    {"instructions", "cycles", 1, "insn/cycle"},
    {"stalled-cycles-frontend", "cycles", 100, "% of cycles stalled in front end"},
    {"stalled-cycles-backend", "cycles", 100, "% of cycles stalled in back end"},
    {"cache-misses", "cache-references", 100, "% of cache references"},
    {"branch-misses", "branches", 100, "% of branches"},
    {"L1-dcache-load-misses", "L1-dcache-loads", 100, "% of L1-dcache loads"},
    {"L1-dcache-store-misses", "L1-dcache-stores", 100, "% of L1-dcache stores"},
    {"L1-icache-load-misses", "L1-icache-loads", 100, "% of L1-icache loads"},
    {"LLC-load-misses", "LLC-loads", 100, "% of LLC loads"},
    {"LLC-store-misses", "LLC-stores", 100, "% of LLC stores"},
    {"dTLB-load-misses", "dTLB-loads", 100, "% of dTLB loads"},
    {"dTLB-store-misses", "dTLB-stores", 100, "% of dTLB stores"},
    {"iTLB-load-misses", "iTLB-loads", 100, "% of iTLB loads"},
    {"branch-load-misses", "branch-loads", 100, "% of branch loads"},
    {"node-load-misses", "node-loads", 100, "% of node loads"},
    {"node-store-misses", "node-stores", 100, "% of node stores"},
    {"minor-faults", "page-faults", 100, "% of page faults"},
    {"major-faults", "page-faults", 100, "% of page faults"},
    {"task-clock", "", 1, "CPUs used"},
    {"cpu-clock", "", 1, "CPUs used"},
});

// Other spellings of a name in the table.
struct Alias {
  std::string_view alias, name;
};
constexpr auto kAliases = std::to_array<Alias>({
    {"cpu-cycles", "cycles"},
    {"branch-instructions", "branches"},
    {"faults", "page-faults"},
    {"stalled-cycles-front", "stalled-cycles-frontend"},
    {"stalled-cycles-back", "stalled-cycles-backend"},
    {"idle-cycles-frontend", "stalled-cycles-frontend"},
    {"idle-cycles-backend", "stalled-cycles-backend"},
});

// Returns the name without modifiers, in the table's spelling. `modifiers` becomes the text after the colon.
std::string_view TableName(std::string_view name, std::string_view* modifiers) {
  const size_t colon = name.rfind(':');
  *modifiers = colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  name = name.substr(0, colon);
  for (const Alias& alias : kAliases) {
    if (alias.alias == name) return alias.name;
  }
  return name;
}

// Returns a count of the same modes only: user instructions over all cycles would be a wrong number, not a rough one.
const NamedCount* FindPartner(std::span<const NamedCount> counts, std::string_view name, const NamedCount& of) {
  std::string_view wanted_modifiers;
  TableName(of.name, &wanted_modifiers);
  for (const NamedCount& candidate : counts) {
    std::string_view modifiers;
    if (TableName(candidate.name, &modifiers) != name || modifiers != wanted_modifiers) continue;
    if (candidate.count.validity.has(Validity::kUserOnly) == of.count.validity.has(Validity::kUserOnly)) {
      return &candidate;
    }
  }
  return nullptr;
}

// Clocks count time, not work: user_only has no meaning for them.
const NamedCount* FindClock(std::span<const NamedCount> counts, std::string_view name) {
  for (const NamedCount& candidate : counts) {
    std::string_view modifiers;
    if (TableName(candidate.name, &modifiers) == name) return &candidate;
  }
  return nullptr;
}

std::optional<double> Estimate(const Count& count) {
  if (!count.validity.counted()) return std::nullopt;
  if (count.time_enabled_ns == 0) return static_cast<double>(count.value);  // A path that cannot multiplex.
  if (count.validity.has(Validity::kSomeCpus)) return static_cast<double>(count.value);
  const std::optional<uint64_t> scaled = base::Scale(count.value, count.time_enabled_ns, count.time_running_ns);
  if (!scaled) return std::nullopt;
  return static_cast<double>(*scaled);
}

std::optional<Metric> Ratio(const Rule& rule, const Count& top, const Count& bottom) {
  const std::optional<double> over = Estimate(top);
  const std::optional<double> under = Estimate(bottom);
  if (!over || !under || *under == 0) return std::nullopt;
  return Metric{*over * rule.factor / *under, rule.unit, std::min(top.coverage(), bottom.coverage())};
}

}  // namespace

std::optional<Metric> MetricFor(std::span<const NamedCount> counts, size_t i, uint64_t wall_ns) {
  if (i >= counts.size() || !counts[i].count.validity.counted()) return std::nullopt;
  std::string_view modifiers;
  const std::string_view name = TableName(counts[i].name, &modifiers);
  const Count wall{wall_ns, 0, 0, {}};
  for (const Rule& rule : kRules) {
    if (rule.numerator != name) continue;
    if (rule.denominator.empty()) return Ratio(rule, counts[i].count, wall);
    const bool of_clock = rule.denominator.ends_with("-clock");
    const NamedCount* const partner =
        of_clock ? FindClock(counts, rule.denominator) : FindPartner(counts, rule.denominator, counts[i]);
    if (partner == nullptr) continue;
    if (const std::optional<Metric> metric = Ratio(rule, counts[i].count, partner->count)) return metric;
  }
  return Ratio({name, "", 1e9, "/s"}, counts[i].count, wall);
}

std::string FormatMetric(const Metric& metric) {
  if (metric.unit != "/s") return absl::StrFormat("%.2f %s", metric.value, metric.unit);
  if (metric.value >= 1e9) return absl::StrFormat("%.2f G/s", metric.value / 1e9);
  if (metric.value >= 1e6) return absl::StrFormat("%.2f M/s", metric.value / 1e6);
  if (metric.value >= 1e3) return absl::StrFormat("%.2f K/s", metric.value / 1e3);
  return absl::StrFormat("%.2f /s", metric.value);
}

}  // namespace perfkit
