// Reads lists of events and groups.
#include "absl/strings/str_format.h"
#include "perfkit/event.h"
#include "src/base/text.h"
#include "src/event/modifiers.h"
#include "src/event/parse_error.h"
#include "src/event/parser.h"
#include "src/event/split.h"

namespace perfkit {
namespace {

constexpr size_t kLongestList = 64 << 10;

// The group's letters are parsed once and handed to each member, which adds its own.
absl::StatusOr<std::vector<EventConfig>> ParseElement(std::string_view whole, const event::ListElement& element,
                                                      const EventRoots& roots) {
  event::Modifiers modifiers;
  if (element.group_modifiers) {
    if (absl::Status added = event::AddModifiers(whole, *element.group_modifiers, modifiers); !added.ok()) return added;
  }
  std::vector<EventConfig> events;
  for (const std::string_view text : element.events) {
    absl::StatusOr<EventConfig> config = event::ParseOne(text, modifiers, roots);
    if (!config.ok()) return config.status();
    events.push_back(*std::move(config));
  }
  return events;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<EventConfig>>> ParseEventList(std::string_view text, const EventRoots& roots) {
  text = base::Trim(text);
  if (text.size() > kLongestList) return event::WrongAt(text, text, "longer than any list of events");
  const absl::StatusOr<std::vector<event::ListElement>> elements = event::SplitList(text);
  if (!elements.ok()) return elements.status();
  std::vector<std::vector<EventConfig>> events;
  for (const event::ListElement& element : *elements) {
    absl::StatusOr<std::vector<EventConfig>> group = ParseElement(text, element, roots);
    if (!group.ok()) return group.status();
    events.push_back(*std::move(group));
  }
  return events;
}

}  // namespace perfkit
