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
  std::optional<std::string_view> group_modifiers;  // The text after "}:".
};

// Splits "a,{b,cpu/c,d/}:u" at the commas that separate events, not at those in a PMU's terms or in braces. Errors:
// InvalidArgument with the position of a misplaced brace or comma.
absl::StatusOr<std::vector<ListElement>> SplitList(std::string_view text);

// The parts of "pmu/terms/modifiers" or "pmu/terms/:modifiers".
struct PmuText {
  std::string_view pmu;
  std::string_view terms;
  std::optional<std::string_view> modifiers;
};

// Returns nullopt if `text` has no '/'. Errors: InvalidArgument if the second one is missing.
absl::StatusOr<std::optional<PmuText>> SplitPmuText(std::string_view text);

}  // namespace perfkit::event
