// Numbers as people read them: a table of counts with unit, coverage, metrics and, for what is missing, the reason.
#pragma once

#include <cstdint>
#include <string>

#include "perfkit/counter.h"
#include "perfkit/scope.h"

namespace perfkit {

// One line an event: value (scaled where it was multiplexed, and then said so), unit, coverage, the metric that goes
// with it (metrics.h), or "n/a" with its reason. `wall_ns` is how long it all took on the clock on the wall; with 0,
// unknown, nothing is related to that. Allocates; for reports, not for hot paths.
std::string FormatTable(const CounterSet& set, const ScopeTotals& total, uint64_t wall_ns = 0);

// Why `event` has no number, in a few words, from the Status that CounterSet::reason or Open gave: "no PMU", "this
// process may not watch that much". "" for OK. For tables; the Status itself says more, and the remedy. May read sysfs.
std::string FormatReason(const EventConfig& event, const absl::Status& reason);

// Where the numbers come from, in one line: "Linux 6.18.5, no PMU, perf_event_paranoid 2, uid 1000". Reads /proc,
// sysfs.
std::string FormatMachine(const EventRoots& roots = {});

// 1234567 -> "1,234,567".
std::string FormatNumber(uint64_t value);

}  // namespace perfkit
