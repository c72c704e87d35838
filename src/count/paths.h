// Which ways there are to read an event, cheapest first: one table.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/target.h"
#include "src/sys/rights.h"

namespace perfkit::count {

// The paths to try for `event` in this order, before what Open finds out about this machine. Never empty: the last one
// is kGroupRead, or kUsage where getrusage knows the event.
std::span<const ReadPath> PathsFor(const EventConfig& event, const Target& target);

// How an event is made to leave its count in a ring.
enum class RingKind : uint8_t {
  kPeriodOne,  // each event appends an empty record
  kSwitches,   // the thread's switch records
};
RingKind RingKindOf(const EventConfig& event);

// OK, or why `event` would have a false number with its modifiers: one that stays 0, or has more in it than they say.
absl::Status CheckModifiers(const EventConfig& event);

// Whether it may have to share a counter: whether time enabled and time running can differ. What the kernel counts in
// its own code needs no counter, and is never off one.
bool CanMultiplex(const EventConfig& event);

// Whether two events, however they are written, have the same count wherever they are counted together.
bool CountTheSame(const EventConfig& a, const EventConfig& b);

// Whether `event` is the software event `config` (perf_event_attr.config of kTypeSoftware).
bool IsSoftware(const EventConfig& event, uint64_t config);

}  // namespace perfkit::count
