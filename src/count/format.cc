// The table of a set: names, units and reasons come from the set, the layout from table.h.
#include "perfkit/format.h"

#include <vector>

#include "src/count/table.h"
#include "src/sys/perf_error.h"

namespace perfkit {

std::string FormatTable(const CounterSet& set, const ScopeTotals& total, uint64_t wall_ns) {
  std::vector<count::TableRow> rows;
  for (size_t i = 0; i < set.size(); ++i) {
    rows.push_back(
        {set.name(i), total.count(set, i), set.event(i).unit, set.event(i).scale, sys::CauseOf(set.reason(i))});
  }
  return count::FormatRows(rows, wall_ns);
}

}  // namespace perfkit
