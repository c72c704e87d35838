// Sets of metrics by name, with the events that they need on this CPU.
//
//   const auto set = perfkit::FindMetricSet("topdown-l1");
//   const auto events = perfkit::ParseEventList(set->events);
//   const auto counters = perfkit::CounterSet::Open(*events, perfkit::Target::ThisThread(), {.require_all = false});
//   ...
//   fputs(perfkit::FormatTable(*counters, total, 0, set->metrics).c_str(), stdout);
//
//   ipc         instructions for each cycle, and the clock rate
//   branch      mispredicted branches
//   cache       misses of the L1 data cache and of the last-level cache
//   tlb         misses of the data TLB and the instruction TLB
//   topdown-l1  what the pipeline's slots were used for: retiring, bad speculation, frontend bound, backend bound; on
//               Intel since Ice Lake, AMD Zen 4 and 5, Arm Neoverse V1, N2 and V2
#pragma once

#include "perfkit/detail/library_only.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/metric.h"

namespace perfkit {

struct MetricSet {
  std::string name{};
  // A list for ParseEventList or FrameOptions::events. The events of a group in braces are counted together, so that
  // their ratios refer to the same time; the first event of a group is its leader.
  std::string events{};
  std::vector<Metric> metrics{};
};

// Returns the names above.
std::span<const std::string_view> MetricSetNames();

// Returns the set for this CPU. On hybrid CPUs, topdown-l1 counts on Intel's P cores only, and is Unavailable on Arm;
// the other sets count on all kinds of core. Reads sysfs and /proc/cpuinfo; opens no event. Thread-safe. Errors:
// InvalidArgument for an unknown name, with all names; Unavailable, with the reason, if this CPU has no PMU, lacks the
// events, or has no published formula.
absl::StatusOr<MetricSet> FindMetricSet(std::string_view name, const EventRoots& roots = {});

}  // namespace perfkit
