// What the pointers of a program's copies of ittnotify get: functions that pass each call to the current collector.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "src/itt/abi.h"
#include "src/itt/collector.h"

namespace perfkit::itt {

// The collector that is called; nullptr means that calls count nothing. What it points to is never destroyed. One of
// the mutable globals of this library (docs/design.md).
extern constinit std::atomic<Collector*> current_collector;

// Stores the functions in the list of a copy of ittnotify, as far as it asks for their groups, and adopts the names
// that it has made. May be called more than once for a copy. Thread-safe. On an error, changes nothing. Errors: as
// Connect.
absl::Status ConnectCalls(Global* global, int groups);

}  // namespace perfkit::itt
