// Visits the table, sysfs and tracefs.
#include "src/event/catalog.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "src/event/event_table.h"
#include "src/event/pmu.h"
#include "src/event/tracepoint.h"

namespace perfkit::event {
namespace {

using Visit = absl::FunctionRef<void(const KnownEvent&)>;

// The table is the same on every machine; only opening an event shows whether this CPU counts it.
void VisitTable(Visit visit) {
  for (const TableEvent& event : AllTableEvents()) {
    visit({.name = event.type.name,
           .alias = event.aliases[0],
           .category = event.category,
           .unit = event.unit,
           .group = {},
           .kernel_side = event.kernel_side,
           .cpu_wide_only = false});
  }
}

// An unreadable file hides its own event only.
void VisitPmu(const Pmu& pmu, Visit visit) {
  for (const std::string& event : EventNames(pmu)) {
    const absl::StatusOr<NamedEvent> named = LoadNamedEvent(pmu, event);
    if (!named.ok()) continue;
    const std::string name = absl::StrFormat("%s/%s/", pmu.name, event);
    visit({.name = name,
           .alias = {},
           .category = EventCategory::kPmu,
           .unit = named->unit,
           .group = pmu.name,
           .kernel_side = false,
           .cpu_wide_only = pmu.cpu_wide});
  }
}

// A usual kernel has thousands: only one name exists at a time.
void VisitTracepoints(const std::string& tracefs, Visit visit) {
  for (const std::string& group : TracepointGroups(tracefs)) {
    for (const std::string& event : TracepointNames(tracefs, group)) {
      const std::string name = absl::StrFormat("%s:%s", group, event);
      visit({.name = name,
             .alias = {},
             .category = EventCategory::kTracepoint,
             .unit = {},
             .group = group,
             .kernel_side = IsKernelSideGroup(group),
             .cpu_wide_only = false});
    }
  }
}

}  // namespace

void ForEachKnownEvent(const EventRoots& roots, Visit visit) {
  VisitTable(visit);
  for (const std::string& name : PmuNames(roots)) {
    const absl::StatusOr<Pmu> pmu = LoadPmu(roots, name);
    if (pmu.ok()) VisitPmu(*pmu, visit);
  }
  const absl::StatusOr<std::string> tracefs = TracefsFolder(roots);
  if (tracefs.ok()) VisitTracepoints(*tracefs, visit);
}

void ForEachKnownPmu(const EventRoots& roots, absl::FunctionRef<void(const KnownPmu&)> visit) {
  for (const std::string& name : PmuNames(roots)) {
    const absl::StatusOr<Pmu> pmu = LoadPmu(roots, name);
    if (!pmu.ok()) continue;
    visit({.name = pmu->name,
           .type = pmu->type,
           .core = pmu->core,
           .cpu_wide_only = pmu->cpu_wide,
           .terms = FormatNames(*pmu),
           .events = EventNames(*pmu)});
  }
}

}  // namespace perfkit::event
