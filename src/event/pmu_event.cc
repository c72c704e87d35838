// Finds the PMUs of an event, and builds its part on each.
#include "src/event/pmu_event.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/event/event_table.h"
#include "src/event/parse_error.h"
#include "src/event/pmu.h"
#include "src/event/pmu_part.h"
#include "src/event/suggest.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

constexpr std::string_view kUncore = "uncore_";

// Returns "uncore_imc" for "uncore_imc_1": the name without the instance's number.
std::string_view KindOf(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == name.size() || name[last] != '_') return name;
  return name.substr(0, last);
}

// Returns true if PMU `name` is an instance of `written` (perf's perf_pmu__match and perf_pmu__match_ignoring_suffix).
bool IsInstance(std::string_view name, std::string_view written) {
  const std::string_view kind = KindOf(name);
  return kind == written || (kind.starts_with(kUncore) && kind.substr(kUncore.size()) == written) ||
         (name.starts_with(kUncore) && name.substr(kUncore.size()) == written);
}

// A wrong name and a machine without that PMU can't be told apart, so the error lists the PMUs of this machine.
absl::Status NoSuchPmu(std::string_view whole, std::string_view name, const EventRoots& roots) {
  return MissingAt(whole, name,
                   absl::StrFormat("this machine has no PMU called '%s' (%s/bus/event_source/devices)%s",
                                   Printable(name), roots.sysfs, DidYouMeanOr(name, PmuNames(roots), "it has")));
}

// Returns the PMU of that name, or else all its instances.
absl::StatusOr<std::vector<Pmu>> FindPmus(std::string_view whole, std::string_view name, const EventRoots& roots) {
  std::vector<Pmu> found;
  absl::StatusOr<Pmu> exact = LoadPmu(roots, name);
  if (exact.ok()) {
    found.push_back(*std::move(exact));
    return found;
  }
  if (!absl::IsNotFound(exact.status())) {
    return ErrorAt(exact.status().code(), whole, name, std::string(exact.status().message()));
  }
  for (const std::string& known : PmuNames(roots)) {
    // `exact` is an error here. An instance whose files are malformed is left out too.
    absl::StatusOr<Pmu> pmu = IsInstance(known, name) ? LoadPmu(roots, known) : exact;
    if (pmu.ok()) found.push_back(*std::move(pmu));
  }
  if (found.empty()) return NoSuchPmu(whole, name, roots);
  return found;
}

// Refuses PMUs whose events need more than numbers.
absl::Status CheckPmu(std::string_view whole, std::string_view name, const Pmu& pmu) {
  if (pmu.type == sys::kTypeBreakpoint) return WrongAt(whole, name, "write a breakpoint as 'mem:0x601040/8:rw'");
  if (pmu.name == "uprobe") return WrongAt(whole, name, "write a uprobe as 'uprobe:/lib/x.so:malloc'");
  if (pmu.name == "kprobe") return WrongAt(whole, name, "perfkit sets no probes in the kernel; see its tracepoints");
  return absl::OkStatus();
}

// Parts are summed, so they must have one unit.
absl::Status AddPart(std::string_view whole, const PmuPart& part, EventConfig& config) {
  if (!config.parts.empty() && (config.scale != part.scale() || config.unit != part.unit())) {
    return ErrorAt(absl::StatusCode::kFailedPrecondition, whole, whole,
                   absl::StrFormat("PMUs '%s' and '%s' give it different scales or units: count them one by one",
                                   config.parts.front().pmu, part.part().pmu));
  }
  config.scale = part.scale();
  config.unit = part.unit();
  if (!part.given_name().empty()) config.name = Printable(part.given_name());
  config.parts.push_back(part.part());
  return absl::OkStatus();
}

// Adds the meaning of known numbers: "software/config=3/" is context-switches.
void AddMeaning(EventConfig& config) {
  const EventConfig::Part& part = config.parts.front();
  const TableEvent* const known = FindTableEvent(EventType{part.type, part.config, part.config1, part.config2, ""});
  config.kernel_side = part.type == sys::kTypeTracepoint || (known != nullptr && known->kernel_side);
  if (known != nullptr && config.unit.empty()) config.unit = known->unit;
}

// Applies the same terms on each PMU, with that PMU's formats.
absl::Status FillOn(std::string_view whole, const std::vector<Pmu>& pmus, std::string_view terms_text,
                    const EventRoots& roots, EventConfig& config) {
  const absl::StatusOr<std::vector<Term>> terms = SplitTerms(whole, terms_text);
  if (!terms.ok()) return terms.status();
  // Looks for further kinds of core only if that matters: it opens a file of each PMU.
  const bool any_core = std::ranges::any_of(pmus, &Pmu::core);
  const bool hybrid = any_core && !HybridCorePmus(roots).empty();
  for (const Pmu& pmu : pmus) {
    PmuPart part(whole, pmu, hybrid && pmu.core);
    if (absl::Status applied = part.Apply(*terms); !applied.ok()) return applied;
    if (absl::Status added = AddPart(whole, part, config); !added.ok()) return added;
  }
  config.cpu_wide_only = std::ranges::any_of(pmus, &Pmu::cpu_wide);
  AddMeaning(config);
  return absl::OkStatus();
}

bool SameKind(const Pmu& a, const Pmu& b) { return (a.core && b.core) || KindOf(a.name) == KindOf(b.name); }

}  // namespace

// All instances are of one kind, so the checks look at the first.
absl::Status FillPmuEvent(std::string_view whole, std::string_view name, std::string_view terms,
                          const EventRoots& roots, EventConfig& config) {
  const absl::StatusOr<std::vector<Pmu>> pmus = FindPmus(whole, name, roots);
  if (!pmus.ok()) return pmus.status();
  if (absl::Status checked = CheckPmu(whole, name, pmus->front()); !checked.ok()) return checked;
  return FillOn(whole, *pmus, terms, roots, config);
}

// Looks for the name on every PMU, as perf does. Refuses to add up events of different kinds, which perf does.
absl::StatusOr<bool> FillNamedEvent(std::string_view whole, std::string_view name, const EventRoots& roots,
                                    EventConfig& config) {
  std::vector<Pmu> having;
  for (const std::string& known : PmuNames(roots)) {
    absl::StatusOr<Pmu> pmu = LoadPmu(roots, known);
    if (pmu.ok() && LoadNamedEvent(*pmu, name).ok()) having.push_back(*std::move(pmu));
  }
  if (having.empty()) return false;
  for (const Pmu& pmu : having) {
    if (SameKind(pmu, having.front())) continue;
    return WrongAt(whole, name,
                   absl::StrFormat("PMUs of different kinds have an event '%s'; write '%s/%s/' or '%s/%s/'", name,
                                   having.front().name, name, pmu.name, name));
  }
  if (absl::Status filled = FillOn(whole, having, name, roots, config); !filled.ok()) return filled;
  return true;
}

}  // namespace perfkit::event
