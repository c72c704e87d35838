// Collects the names on this machine and picks the nearest. Runs only after an error.
#include "src/event/suggest.h"

#include <algorithm>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "perfkit/measured_events.h"
#include "src/base/nearest.h"
#include "src/event/event_table.h"
#include "src/event/parse_error.h"
#include "src/event/pmu.h"
#include "src/event/tracepoint.h"

namespace perfkit::event {
namespace {

constexpr size_t kMaxListed = 8;

// 'a', 'b', 'c'
std::string Quoted(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += absl::StrFormat("%s'%s'", text.empty() ? "" : ", ", Printable(name));
  return text;
}

// Core PMUs of one machine share most names; keeps the first of each.
std::vector<std::string> WithoutRepeats(std::vector<std::string> names) {
  std::set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
  return names;
}

// Returns each word that may be an event by itself, and the full names of PMUs' events and tracepoints.
std::vector<std::string> AllNames(std::string_view typed, const EventRoots& roots) {
  std::vector<std::string> names;
  for (const TableEvent& event : AllTableEvents()) {
    names.emplace_back(event.type.name);
    if (!event.aliases[0].empty()) names.emplace_back(event.aliases[0]);
  }
  for (const std::string& name : PmuNames(roots)) {
    const absl::StatusOr<Pmu> pmu = LoadPmu(roots, name);
    if (!pmu.ok()) continue;
    names.push_back(name + "/");
    for (const std::string& event : EventNames(*pmu)) names.push_back(name + "/" + event + "/");
    for (const std::string& event : EventNames(*pmu)) names.push_back(event);
  }
  for (std::string& full : TracepointsNamed(typed, roots)) names.push_back(std::move(full));
  return WithoutRepeats(std::move(names));
}

// Returns true for events that perf's own tool answers without the kernel (tools/perf/util/tool_pmu.c).
bool IsToolEvent(std::string_view name) {
  return name == "duration_time" || name == "user_time" || name == "system_time";
}

}  // namespace

// Often returns "": a far guess would mislead.
std::string DidYouMean(std::string_view typed, std::span<const std::string> known) {
  const std::vector<std::string> nearest = base::Nearest(typed, known);
  return nearest.empty() ? "" : absl::StrFormat("; did you mean %s?", Quoted(nearest));
}

// If there are few names, listing them helps more than guessing.
std::string DidYouMeanOr(std::string_view typed, std::span<const std::string> known, std::string_view there) {
  const std::string nearest = DidYouMean(typed, known);
  if (!nearest.empty() || known.empty()) return nearest;
  const bool more = known.size() > kMaxListed;
  return absl::StrFormat("; %s %s%s", there, Quoted(known.subspan(0, std::min(known.size(), kMaxListed))),
                         more ? ", ..." : "");
}

// The likely mistakes: a typo, a PMU's bare name, or a clock of the perf tool.
absl::Status UnknownEvent(std::string_view whole, std::string_view name, const EventRoots& roots) {
  if (name.empty()) return WrongAt(whole, name, "no event is named here");
  if (IsToolEvent(name)) {
    return WrongAt(whole, name,
                   absl::StrFormat("'%s' is a clock of the perf tool, not an event; 'task-clock' counts the time on a CPU", name));
  }
  if (name == kSyscalls.name) {
    return WrongAt(whole, name, absl::StrFormat("only Measure counts '%s' (measure.h)", name));
  }
  if (const absl::StatusOr<Pmu> pmu = LoadPmu(roots, name); pmu.ok()) {
    const std::vector<std::string> events = EventNames(*pmu);
    const std::string example = events.empty() ? "config=1" : events.front();
    return WrongAt(whole, name,
                   absl::StrFormat("'%s' is a PMU, not an event; write one of its events, as in '%s/%s/'", name, name,
                                   Printable(example)));
  }
  return WrongAt(whole, name,
                 absl::StrFormat("no event or PMU is called '%s'%s (perf list shows them)", Printable(name),
                                 DidYouMean(name, AllNames(name, roots))));
}

}  // namespace perfkit::event
