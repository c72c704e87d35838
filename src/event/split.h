// Cuts text into groups, events, and an event's parts: the punctuation of event lists.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::event {

// An element of a list: one event, or a group of them. Views into the list.
struct ListElement {
  std::vector<std::string_view> events;
  std::optional<std::string_view> group_modifiers;  // what stands after "}:"
};

// Splits "a,{b,cpu/c,d/}:u" at the commas that separate events: not at those between the slashes of a PMU's terms or
// between braces. InvalidArgument names the place of a brace or comma that has no business there.
absl::StatusOr<std::vector<ListElement>> SplitList(std::string_view text);

// "pmu/terms/modifiers" or "pmu/terms/:modifiers", taken apart.
struct PmuText {
  std::string_view pmu;
  std::string_view terms;
  std::optional<std::string_view> modifiers;
};

// Nothing when `text` has no '/'. InvalidArgument when the second one is missing.
absl::StatusOr<std::optional<PmuText>> SplitPmuText(std::string_view text);

}  // namespace perfkit::event
