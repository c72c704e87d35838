// Parses one event, alone or as a member of a group.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/event/modifiers.h"

namespace perfkit::event {

// As ParseEvent, with the modifiers of the group around the event.
absl::StatusOr<EventConfig> ParseOne(std::string_view text, const Modifiers& group, const EventRoots& roots);

}  // namespace perfkit::event
