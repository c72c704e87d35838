// THE table of generic events: 10 hardware, 12 software and 42 cache events, with all spellings of perf and simpleperf,
// and the events of a thread that perf does not have.
//
// Parsing, listing, suggestions and documents use this table. Names: tools/perf/util/parse-events.l and evsel.c of
// Linux; system/extras/simpleperf/event_type_table.h of Android has the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "perfkit/event.h"
#include "perfkit/measured_events.h"

namespace perfkit::event {

struct TableEvent {
  EventType type;  // With its canonical name.
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;  // Of one count: "ns" for the clocks, "bytes" for bytes, else "".
  // Raised by kernel code with kernel registers: with exclude_kernel the event opens and stays 0. Faults are not: they
  // have the registers of the code that faulted.
  bool kernel_side = false;
  std::array<std::string_view, 1> aliases;  // "" if there is none. Cache events have a grammar instead (cache_name.h).
};

// Returns all events: plain names in the order of their types and configs, then the cache events.
std::span<const TableEvent> AllTableEvents();

// Returns the event of that name, or nullptr. Names and aliases must match to the letter, as in perf; the words of
// cache events have aliases of their own ("l1d-read-miss", "bpu-loads"; cache_name.h).
const TableEvent* FindTableEvent(std::string_view name);

// Returns the event with this type and config (and no other config), or nullptr.
const TableEvent* FindTableEvent(const EventType& type);

// Returns true if perf has no such event: no descriptor counts it, and it has no samples.
inline bool IsWithoutPerf(const EventConfig& event) {
  return event.parts.size() == 1 && event.parts[0].type == kMeasuredType;
}

}  // namespace perfkit::event
