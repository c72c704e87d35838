// Environment variables, the host's name, and verdicts about missing costs.
#include "src/testing/matchers/surroundings.h"

#include <cstdlib>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/measure/services.h"

namespace perfkit::matchers {

std::string ThisMachine() {
  if (const char* const name = std::getenv("PERFKIT_MACHINE")) return name;
  return detail::HostName();
}

bool IsRequired(std::string_view event) {
  const char* const value = std::getenv("PERFKIT_REQUIRE");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    // Whole names are compared, so that "cycles" does not require "ref-cycles". No comma follows the last name.
    const std::string_view word = rest.substr(0, rest.find(','));
    if (const std::string_view name = base::Trim(word); name == "all" || name == event) return true;
    rest.remove_prefix(word.size() == rest.size() ? word.size() : word.size() + 1);
  }
  return false;
}

Verdict Unmeasurable(const EventType& event, const std::string& reason) {
  const bool required = IsRequired(event.name);
  return {Outcome::kUnmeasurable,
          absl::StrFormat("%s: %s%s", event.name, reason, required ? " (and PERFKIT_REQUIRE asks for it)" : ""),
          required};
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
