// Visits the catalog and tries each event; then tries one example of each form without a list.
//
// Tracepoints are the exception: a kernel has one or two thousand, and the first open of one patches kernel code, which
// takes milliseconds. So they are only judged by rights and format unless ListOptions::probe_tracepoints asks for more.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/capabilities.h"
#include "src/doctor/examples.h"
#include "src/doctor/expectation.h"
#include "src/doctor/try_event.h"
#include "src/event/catalog.h"
#include "src/sys/perf_error.h"
#include "src/sys/rights.h"

namespace perfkit {
namespace {

using Visit = absl::FunctionRef<void(const EventInfo&)>;

constexpr std::string_view kUsabilityNames[] = {"counts", "opens", "silent", "refused", "not tried"};

// A copy of the catalog's views, which are valid during the visit only. The event is opened later, so that the walk
// through sysfs does not keep folders open meanwhile.
struct Listed {
  std::string name, alias, unit, group;
  EventCategory category;
};

bool IsWanted(const ListOptions& options, EventCategory category) {
  const std::vector<EventCategory>& wanted = options.categories;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), category) != wanted.end();
}

// If tracefs is out of reach, no tracepoint is known: the reason is that of one that every kernel has.
constexpr std::string_view kTracepointEverywhere = "sched:sched_switch";

std::vector<Listed> CollectKnown(const ListOptions& options) {
  std::vector<Listed> all;
  bool has_tracepoints = false;
  event::ForEachKnownEvent(options.roots, [&](const event::KnownEvent& known) {
    if (!IsWanted(options, known.category)) return;
    all.push_back({std::string(known.name), std::string(known.alias), std::string(known.unit), std::string(known.group),
                   known.category});
    has_tracepoints |= known.category == EventCategory::kTracepoint;
  });
  if (!has_tracepoints && IsWanted(options, EventCategory::kTracepoint)) {
    all.push_back({std::string(kTracepointEverywhere), "GROUP:NAME", {}, "sched", EventCategory::kTracepoint});
  }
  return all;
}

// Judges a tracepoint without opening it: ParseEvent has found that it exists, and the rights are read.
doctor::Verdict CheckTracepoint(const std::string& name, const EventRoots& roots, const sys::Rights& rights) {
  doctor::Verdict verdict{.usability = Usability::kRefused, .usable = {}, .value = 0, .path = {}};
  const absl::StatusOr<EventConfig> event = ParseEvent(name, roots);
  if (!event.ok()) {
    verdict.usable = event.status();
  } else if (event->kernel_side && !rights.may_count_kernel()) {
    verdict.usable = absl::PermissionDeniedError(absl::StrFormat(
        "tracepoint '%s': it is raised in kernel code, which this user may not watch (%s). Remedy: lower "
        "kernel.perf_event_paranoid to 1, or grant CAP_PERFMON.",
        name, sys::DescribeRights(rights)));
  } else {
    verdict.usability = Usability::kNotTried;
  }
  return verdict;
}

EventInfo Describe(const Listed& event, doctor::Work raised_by, const doctor::Verdict& verdict) {
  return {.name = event.name,
          .alias = event.alias,
          .category = event.category,
          .unit = event.unit,
          .group = event.group,
          .raised_by = doctor::WorkName(raised_by),
          .usability = verdict.usability,
          .usable = verdict.usable,
          .cause = sys::CauseOf(verdict.usable),
          .value = verdict.value,
          .path = verdict.path};
}

}  // namespace

std::string_view UsabilityName(Usability usability) { return kUsabilityNames[static_cast<size_t>(usability)]; }

void ListEvents(Visit visit, const ListOptions& options) {
  const sys::Rights rights = sys::ReadRights(options.roots.proc);
  const std::vector<Listed> known = CollectKnown(options);
  doctor::Workload workload;
  size_t tracepoints = 0, done = 0;
  for (const Listed& event : known) tracepoints += event.category == EventCategory::kTracepoint ? 1 : 0;
  for (const Listed& event : known) {
    const doctor::Work raised_by = doctor::WorkThatRaises(event.category, event.name);
    const bool is_tracepoint = event.category == EventCategory::kTracepoint;
    if (is_tracepoint && options.probe_tracepoints && options.progress) options.progress(done++, tracepoints);
    const bool look_only = is_tracepoint && !options.probe_tracepoints;
    visit(Describe(event, raised_by,
                   look_only ? CheckTracepoint(event.name, options.roots, rights)
                             : doctor::TryEvent(event.name, raised_by, workload, options.roots)));
  }
  for (const doctor::Example& example : doctor::ExamplesHere(workload)) {
    if (!IsWanted(options, example.category)) continue;
    const Listed event{example.name, std::string(example.form), {}, {}, example.category};
    const doctor::Work raised_by = doctor::WorkThatRaises(example.category, example.name);
    visit(Describe(event, raised_by, doctor::TryEvent(example.name, raised_by, workload, options.roots)));
  }
}

}  // namespace perfkit
