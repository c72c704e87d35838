// THE table of generic events: 10 hardware, 12 software and 42 cache events, with every spelling that perf and
// simpleperf know.
//
// Parsing, listing, suggestions and documents all read this one table. Names: tools/perf/util/parse-events.l and
// evsel.c of Linux; system/extras/simpleperf/event_type_table.h of Android uses the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "perfkit/event_type.h"

namespace perfkit::event {

struct TableEvent {
  EventType type;  // with its canonical name
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;  // of one count: "ns" for the clocks, else ""
  // Raised by kernel code with kernel registers: with exclude_kernel the event opens and stays 0. Faults are not:
  // they carry the registers of whoever faulted.
  bool kernel_side = false;
  std::array<std::string_view, 1> aliases;  // "" where there is none; cache events have a grammar instead
};

// All 64, in the order of their configs.
std::span<const TableEvent> AllTableEvents();

// The event of that name, or null. Names and aliases are matched to the letter, as perf does; the parts of cache
// events have aliases of their own ("l1d-read-miss", "bpu-loads"; see cache_name.h).
const TableEvent* FindTableEvent(std::string_view name);

// The event with this type and config (and no other config), or null.
const TableEvent* FindTableEvent(const EventType& type);

}  // namespace perfkit::event
