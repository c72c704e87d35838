// Reads lists of events and groups.
#include "perfkit/event.h"
#include "src/base/text.h"
#include "src/event/modifiers.h"
#include "src/event/parse_error.h"
#include "src/event/parser.h"
#include "src/event/split.h"

namespace perfkit {
namespace {

constexpr size_t kLongestList = 64 << 10;

// Parses the group's letters once, and gives them to each member, which adds its own.
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

absl::StatusOr<std::vector<event::ListElement>> Elements(std::string_view text) {
  if (text.size() > kLongestList) return event::WrongAt(text, text, "longer than any list of events");
  return event::SplitList(text);
}

// Returns an element as it was written: "a", "{a,b}:u".
std::string TextOf(const event::ListElement& element) {
  std::string text;
  for (const std::string_view event : element.events) {
    if (!text.empty()) text += ',';
    text += event;
  }
  if (element.events.size() == 1 && !element.group_modifiers) return text;
  text = '{' + text + '}';
  if (element.group_modifiers) text += ':' + std::string(*element.group_modifiers);
  return text;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitEventList(std::string_view text) {
  const absl::StatusOr<std::vector<event::ListElement>> elements = Elements(base::Trim(text));
  if (!elements.ok()) return elements.status();
  std::vector<std::string> texts;
  for (const event::ListElement& element : *elements) texts.push_back(TextOf(element));
  return texts;
}

absl::StatusOr<std::vector<std::vector<EventConfig>>> ParseEventList(std::string_view text, const EventRoots& roots) {
  text = base::Trim(text);
  const absl::StatusOr<std::vector<event::ListElement>> elements = Elements(text);
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
