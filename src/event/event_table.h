// THE table of generic events: 10 hardware, 12 software and 42 cache events, with all spellings of perf and simpleperf.
//
// Parsing, listing, suggestions and documents use this table. Names: tools/perf/util/parse-events.l and evsel.c of
// Linux; system/extras/simpleperf/event_type_table.h of Android has the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "perfkit/event_type.h"

namespace perfkit::event {

struct TableEvent {
  EventType type;  // With its canonical name.
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;  // Of one count: "ns" for the clocks, else "".
  // Raised by kernel code with kernel registers: with exclude_kernel the event opens and stays 0. Faults are not: they
  // have the registers of the code that faulted.
  bool kernel_side = false;
  std::array<std::string_view, 1> aliases;  // "" if there is none. Cache events have a grammar instead (cache_name.h).
};

// Returns all 64 events, in the order of their configs.
std::span<const TableEvent> AllTableEvents();

// Returns the event of that name, or nullptr. Names and aliases must match to the letter, as in perf; the words of
// cache events have aliases of their own ("l1d-read-miss", "bpu-loads"; cache_name.h).
const TableEvent* FindTableEvent(std::string_view name);

// Returns the event with this type and config (and no other config), or nullptr.
const TableEvent* FindTableEvent(const EventType& type);

}  // namespace perfkit::event
