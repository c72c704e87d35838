// Environment variables, the host's name, and verdicts about missing costs.
#include "src/testing/matchers/surroundings.h"

#include <algorithm>
#include <cstdlib>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "src/base/nearest.h"
#include "src/base/text.h"
#include "src/measure/services.h"

namespace perfkit::matchers {

std::string ThisMachine() {
  if (const char* const name = std::getenv("PERFKIT_MACHINE")) return name;
  return detail::HostName();
}

namespace {

// Returns true if `is_it` is true for one of the names in PERFKIT_REQUIRE, which are separated by commas.
bool AnyRequired(absl::FunctionRef<bool(std::string_view name)> is_it) {
  const char* const value = std::getenv("PERFKIT_REQUIRE");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (is_it(base::Trim(word))) return true;
    rest.remove_prefix(word.size() == rest.size() ? word.size() : word.size() + 1);  // No comma follows the last name.
  }
  return false;
}

// Returns true if only the case of letters, a "_" for a "-", or one letter too many or too few makes the difference.
// The names of two events that differ by one letter have the same length: dTLB-loads, iTLB-loads.
bool IsMisprintOf(std::string_view typed, std::string_view name) {
  std::string dashed(typed);
  std::ranges::replace(dashed, '_', '-');
  const size_t distance = base::EditDistance(dashed, name);
  return typed != name && !typed.empty() && (distance == 0 || (distance == 1 && dashed.size() != name.size()));
}

}  // namespace

// Whole names are compared, so that "cycles" does not require "ref-cycles".
bool IsRequired(std::string_view event) {
  return AnyRequired([&](std::string_view name) { return name == "all" || name == event; });
}

// A name that is misspelt would let the check pass that it asks for.
Verdict Unmeasurable(const EventType& event, const std::string& reason) {
  const bool required = IsRequired(event.name);
  std::string remark = required ? " (and PERFKIT_REQUIRE asks for it)" : "";
  const bool misprint = !required && AnyRequired([&](std::string_view typed) {
    for (const std::string_view name : {std::string_view("all"), std::string_view(event.name)}) {
      if (!IsMisprintOf(typed, name)) continue;
      remark = absl::StrFormat(" (and PERFKIT_REQUIRE has \"%s\". Remedy: write %s)", typed, name);
      return true;
    }
    return false;
  });
  return {Outcome::kUnmeasurable, absl::StrFormat("%s: %s%s", event.name, reason, remark), required || misprint};
}

const Cost* FindMeasured(const Measurement& measurement, const EventType& event, Verdict& why_not) {
  const Cost* const cost = measurement.Find(event);
  if (cost == nullptr) {
    why_not = {Outcome::kFail,
               absl::StrFormat("%s was not measured: add it to the events of the measurement", event.name)};
    return nullptr;
  }
  if (cost->measured()) return cost;
  why_not = Unmeasurable(event, cost->unmeasurable);
  return nullptr;
}

}  // namespace perfkit::matchers
