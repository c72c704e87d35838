// The table of sets. All but top-down are generic events, which the kernel maps to each CPU's own. Events that are
// divided by each other are in one group, so that they are counted at the same times and their ratio holds even if the
// groups are multiplexed.
#include "src/count/metric/set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/metric_set.h"
#include "src/event/parse_error.h"

namespace perfkit {
namespace {

// Groups are small, because a PMU may have as few as four counters for programs.
struct GenericSet {
  std::string_view name, events;
  std::array<std::string_view, 3> metrics;  // "" for none.
};

constexpr GenericSet kGenericSets[] = {
    {"ipc",
     "{cycles,instructions},task-clock",
     {"ipc = instructions / cycles [insn/cycle]", "clock-rate = cycles / task-clock [GHz]"}},
    {"branch",
     "{instructions,branches,branch-misses}",
     {"branch-miss-rate = 100 * branch-misses / branches [% of branches]",
      "branch-mpki = 1000 * branch-misses / instructions [misses/1000 insn]"}},
    {"cache",
     "{L1-dcache-loads,L1-dcache-load-misses},{cache-references,cache-misses,instructions}",
     {"l1d-miss-rate = 100 * L1-dcache-load-misses / L1-dcache-loads [% of L1-dcache loads]",
      "cache-miss-rate = 100 * cache-misses / cache-references [% of cache references]",
      "cache-mpki = 1000 * cache-misses / instructions [misses/1000 insn]"}},
    {"tlb",
     "{dTLB-loads,dTLB-load-misses},{iTLB-load-misses,instructions}",
     {"dtlb-miss-rate = 100 * dTLB-load-misses / dTLB-loads [% of dTLB loads]",
      "itlb-mpki = 1000 * iTLB-load-misses / instructions [misses/1000 insn]"}},
};

constexpr std::string_view kTopdown = "topdown-l1";
constexpr std::array<std::string_view, 5> kNames = {kGenericSets[0].name, kGenericSets[1].name, kGenericSets[2].name,
                                                    kGenericSets[3].name, kTopdown};

std::vector<event::Pmu> CorePmus(const EventRoots& roots) {
  std::vector<event::Pmu> cores;
  for (const std::string& name : event::PmuNames(roots)) {
    absl::StatusOr<event::Pmu> pmu = event::LoadPmu(roots, name);
    if (pmu.ok() && pmu->core) cores.push_back(*std::move(pmu));
  }
  return cores;
}

count::MetricTexts TextsOf(const GenericSet& set) {
  count::MetricTexts texts{std::string(set.events), {}};
  for (const std::string_view metric : set.metrics) {
    if (!metric.empty()) texts.metrics.emplace_back(metric);
  }
  return texts;
}

absl::Status UnknownSet(std::string_view name) {
  std::string names;
  for (const std::string_view known : kNames) absl::StrAppendFormat(&names, "%s'%s'", names.empty() ? "" : ", ", known);
  return absl::InvalidArgumentError(
      absl::StrFormat("no set of metrics is called '%s'; there are %s", event::Printable(name), names));
}

}  // namespace

std::span<const std::string_view> MetricSetNames() { return kNames; }

absl::StatusOr<MetricSet> FindMetricSet(std::string_view name, const EventRoots& roots) {
  if (std::ranges::find(kNames, name) == kNames.end()) return UnknownSet(name);
  const std::vector<event::Pmu> cores = CorePmus(roots);
  if (cores.empty()) {
    return absl::UnavailableError(absl::StrFormat("metrics '%s': this machine has no PMU", name));
  }
  const auto* const generic = std::ranges::find(kGenericSets, name, &GenericSet::name);
  absl::StatusOr<count::MetricTexts> texts =
      generic != std::end(kGenericSets) ? TextsOf(*generic) : count::TopdownLevel1(cores, roots);
  if (!texts.ok()) return texts.status();
  MetricSet set{std::string(name), std::move(texts->events), {}};
  for (const std::string& text : texts->metrics) {
    absl::StatusOr<Metric> metric = Metric::Parse(text, roots);
    if (!metric.ok()) return absl::UnavailableError(std::string(metric.status().message()));
    set.metrics.push_back(*std::move(metric));
  }
  return set;
}

}  // namespace perfkit
