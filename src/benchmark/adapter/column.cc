// Composes names and reasons from the events of a set. What limits a number is in the name of its column, since files
// of results keep nothing else beside the number.
#include "src/benchmark/adapter/column.h"

#include "perfkit/format.h"

namespace perfkit::adapter {

std::string ColumnName(const EventConfig& event, Validity fixed_flags) {
  std::string name = event.name;
  if (fixed_flags.has(Validity::kUserOnly) && !event.privilege_given) name += ":u";
  if (!event.unit.empty()) name += "[" + event.unit + "]";
  return name;
}

std::string WhyNot(const CounterSet& set, size_t i, const Count& count) {
  const std::string reason = FormatReason(set.event(i), set.reason(i));
  if (!reason.empty()) return reason;
  if (count.validity.counted()) return "never was on a counter";
  return "reading failed";
}

}  // namespace perfkit::adapter
