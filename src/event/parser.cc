// Reads one event as people write it: tells the kinds apart and hands each to its own parser.
#include "perfkit/event.h"
#include "src/base/text.h"
#include "src/event/event_table.h"
#include "src/event/generic.h"
#include "src/event/modifiers.h"
#include "src/event/parse_error.h"

namespace perfkit {

absl::StatusOr<EventConfig> ParseEvent(std::string_view text, const EventRoots& roots) {
  text = base::Trim(text);
  const auto [name, letters] = base::Cut(text, ':');
  EventConfig config;
  config.name = text;
  event::Modifiers modifiers;
  if (name.size() < text.size()) {
    if (absl::Status added = event::AddModifiers(text, letters, modifiers); !added.ok()) return added;
  }
  modifiers.ApplyTo(config);
  if (const event::TableEvent* const found = event::FindTableEvent(name)) {
    event::FillTableEvent(*found, roots, config);
  } else if (const std::optional<uint64_t> raw = event::ParseRaw(name)) {
    event::FillRaw(*raw, roots, config);
  } else {
    return event::WrongAt(text, name, "no event is called that");
  }
  return config;
}

absl::StatusOr<std::vector<std::vector<EventConfig>>> ParseEventList(std::string_view text, const EventRoots& roots) {
  std::vector<std::vector<EventConfig>> events;
  absl::Status status;
  base::ForEachPiece(text, ',', [&](std::string_view piece) {
    absl::StatusOr<EventConfig> config = ParseEvent(piece, roots);
    if (config.ok()) events.push_back({*std::move(config)});
    if (!config.ok() && status.ok()) status = config.status();
  });
  if (!status.ok()) return status;
  return events;
}

}  // namespace perfkit
