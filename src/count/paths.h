// The table of the paths by which each event can be read, cheapest first.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/target.h"
#include "src/sys/rights.h"

namespace perfkit::count {

// Returns the paths to try for `event`, in this order; Open finds out which work on this machine. Never empty: the last
// one is kGroupRead, or kUsage if getrusage has the event. Events without perf have one path for all targets; if it
// does not serve a target, opening it says why.
std::span<const ReadPath> PathsFor(const EventConfig& event, const Target& target);

// How a ring shows the count of an event.
enum class RingKind : uint8_t {
  kPeriodOne,  // Each event appends an empty record.
  kSwitches,   // The thread's switch records.
};
RingKind RingKindOf(const EventConfig& event);

// Returns OK, or why the modifiers of `event` would make its number wrong: always 0, or including more than they say.
absl::Status CheckModifiers(const EventConfig& event);

// Returns true if the event may have to share a counter, so that time enabled and time running can differ. Events that
// the kernel counts in its own code, energy, and those without perf need no counter, and always run.
bool CanMultiplex(const EventConfig& event);

// Returns true if two events, however they are written, have the same count whenever they are counted together.
bool CountTheSame(const EventConfig& a, const EventConfig& b);

// Returns true if `event` is Intel's "slots", which leads the group of the top-down metrics (topdown-retiring and
// others).
bool IsSlots(const EventConfig& event);

// Returns true if `event` is the energy that a part of the machine has used (power/energy-pkg/ by RAPL). It always
// counts, for the machine as a whole: a set of the calling thread has it beside the thread's own events.
bool IsEnergy(const EventConfig& event);

// Returns false for clocks, which run whatever is excluded, and for events that the kernel raises, which are never the
// user's.
bool CanBeUserOnly(const EventConfig& event);

// Returns true if `event` is the software event `config` (perf_event_attr.config of kTypeSoftware).
bool IsSoftware(const EventConfig& event, uint64_t config);

}  // namespace perfkit::count
