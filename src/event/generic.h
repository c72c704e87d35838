// Events that need no PMU's name: the generic table, raw rNNN, and type:config in numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfkit/event.h"
#include "src/event/event_table.h"

namespace perfkit::event {

// Returns the number in "r01c0" (or "r0x1c0"), a raw config of the core PMU. Returns nullopt if `name` is not of that
// form.
std::optional<uint64_t> ParseRaw(std::string_view name);

// Fills in the parts of a table event (one for each core PMU on hybrid machines), its unit and kernel_side.
void FillTableEvent(const TableEvent& event, const EventRoots& roots, EventConfig& config);

// Fills in a type and configs: as the table event if they are one, else unchanged.
void FillType(const EventType& type, const EventRoots& roots, EventConfig& config);

// Fills in a raw event of the core PMU; on hybrid machines one part for each core PMU, by its own type.
void FillRaw(uint64_t raw, const EventRoots& roots, EventConfig& config);

}  // namespace perfkit::event
