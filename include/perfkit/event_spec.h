// What every Open takes for an event: text as perf spells it, or a constant of event_type.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "perfkit/event_type.h"

namespace perfkit {

// Implicit from both, so that a call site reads {"cycles:u", event::kPageFaults}. Owns its text.
struct EventSpec {
  EventSpec(const char* text) : text(text) {}                        // NOLINT(google-explicit-constructor)
  EventSpec(std::string_view text) : text(text) {}                   // NOLINT(google-explicit-constructor)
  EventSpec(std::string text) : text(std::move(text)) {}             // NOLINT(google-explicit-constructor)
  EventSpec(const EventType& type) : text(type.name), type(type) {}  // NOLINT(google-explicit-constructor)

  std::string text;
  std::optional<EventType> type;  // set: `text` is only its name, and is not parsed
};

}  // namespace perfkit
