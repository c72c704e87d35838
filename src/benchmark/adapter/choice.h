// The events of a benchmark: turns names into a set that can be opened, with a reason for each that cannot.
//
// A name that is wrong, or that this machine lacks, does not affect the others: it stays in the choice, with its
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event.h"
#include "perfkit/metric.h"

namespace perfkit::adapter {

struct Wanted {
  std::string name;
  std::string why_not;       // In a few words; "" if the event can be counted, as far as is known without opening it.
  size_t index = 0;          // Its index in the set that `groups` opens.
  bool for_metrics = false;  // Has no column: only metrics need it.
};

struct WantedMetric {
  std::string name;
  std::optional<Metric> metric;
  std::string why_not;  // Why there is no metric; "" if there is one.
};

struct Choice {
  std::vector<Wanted> wanted;  // In the order in which they were written.
  std::vector<std::vector<EventConfig>> groups;
  std::vector<WantedMetric> metrics;
  std::string wrong;  // The complete message about the first name that has no meaning on any machine; or "".
};

// Accepts at most kMaxEvents, and refuses the others by name.
Choice Choose(std::string_view list);
Choice Choose(std::span<const EventSpec> events);

// Adds metrics and sets of metrics, separated by semicolons, and the events that they need and that are not in `choice`
// yet. Refuses a metric that has the name of a column; one that is written twice is added once.
void AddMetrics(Choice& choice, std::string_view list);

}  // namespace perfkit::adapter
