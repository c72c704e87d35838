// Your own formulas over the counts of a region, and the sets of metrics that this CPU has.
#include <chrono>
#include <cstdio>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/metric_set.h"
#include "perfkit/scope.h"

namespace {

// Touches fresh memory, then works on it.
uint64_t Work() {
  std::vector<uint64_t> numbers(1 << 21, 1);  // 16 MiB
  uint64_t sum = 0;
  for (int round = 0; round < 20; ++round) {
    for (const uint64_t number : numbers) sum = sum * 31 + number;
  }
  return sum;
}

uint64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

int main() {
  std::vector<perfkit::Metric> metrics;
  for (const char* text :
       {"faults-per-ms = 1e6 * page-faults / task-clock [/ms]", "1000 * page-faults / instructions [faults/1000 insn]",
        "busy = 100 * task-clock / duration_time [%]"}) {
    auto metric = perfkit::Metric::Parse(text);
    if (!metric.ok()) return fprintf(stderr, "%s\n", metric.status().ToString().c_str()), 1;
    metrics.push_back(*metric);
  }

  auto set = perfkit::CounterSet::Open({"task-clock", "page-faults", "instructions"}, perfkit::Target::ThisThread(),
                                       {.require_all = false});
  if (!set.ok()) return fprintf(stderr, "%s\n", set.status().ToString().c_str()), 1;
  perfkit::ScopeTotals total;
  const uint64_t start = NowNs();
  uint64_t result = 0;
  {
    perfkit::CounterScope scope(*set, total);
    result = Work();
  }
  fputs(perfkit::FormatTable(*set, total, NowNs() - start, metrics).c_str(), stdout);

  for (const std::string_view name : perfkit::MetricSetNames()) {
    const auto known = perfkit::FindMetricSet(name);
    const std::string text = known.ok() ? known->events : std::string(known.status().message());
    printf("%-11s %s\n", std::string(name).c_str(), text.c_str());
  }
  return result == 0 ? 1 : 0;
}
