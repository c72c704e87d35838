// The table of a set: the set has names, units and reasons; table.cc has the layout.
#include "perfkit/format.h"

#include <string>
#include <utility>
#include <vector>

#include "src/count/paths.h"
#include "src/sys/perf_error.h"

namespace perfkit {

std::vector<TableRow> TableRows(const CounterSet& set, const ScopeTotals& total) {
  std::vector<TableRow> rows;
  for (size_t i = 0; i < set.size(); ++i) {
    const EventConfig& event = set.event(i);
    const absl::Status reason = set.reason(i);
    std::string why = sys::CauseOf(reason);
    if (reason.ok() && total.scopes() == 0 && total.cross_thread() == 0) why = "no scope has ended yet";
    rows.push_back({std::string(set.name(i)), total.count(set, i), event.unit, event.scale, std::move(why),
                    reason.ok() && count::IsEnergy(event) ? "of the machine" : ""});
  }
  return rows;
}

std::string FormatTable(const CounterSet& set, const ScopeTotals& total, uint64_t wall_ns,
                        std::span<const Metric> metrics) {
  return FormatRows(TableRows(set, total), wall_ns, metrics);
}

}  // namespace perfkit
