// Makes one fault and one switch between two snapshots.
#include "src/count/self_test.h"

#include <optional>

#include "src/count/paths.h"
#include "src/count/usage.h"
#include "src/sys/clock.h"
#include "src/sys/mapping.h"
#include "src/sys/switches.h"

namespace perfkit::count {
namespace {

struct Totals {
  Snapshot snapshot;
  Usage usage;
  bool usage_known = false;
};

// What one try saw.
struct Observation {
  Totals before, after;
  uint64_t cpu_ns = 0;      // Time on the CPU between the snapshots, by the thread's CPU clock; may lack some of it.
  uint64_t reading_ns = 0;  // Wall-clock time that the second snapshot took.
};

Totals Take(Source& source) {
  Totals totals;
  totals.usage_known = totals.usage.Read();
  source.ReadSlow(totals.snapshot);
  return totals;
}

// Touches a new page, then leaves the CPU and comes back. A sleep that did not switch the thread would look like a ring
// that does not move.
bool FaultAndSwitch() {
  std::optional<sys::Mapping> page = sys::Mapping::Anonymous(sys::PageSize());
  if (!page) return false;
  *reinterpret_cast<volatile char*>(page->data()) = 1;
  page->Reset();
  return sys::SwitchAway();
}

uint64_t Gain(const Observation& seen, UsageField field) {
  return seen.after.usage.value(field) - seen.before.usage.value(field);
}

// Returns true if the inline clock gained enough. It also counts stolen time, and a base that was read slowly shifts it
// a little. Half: a wrong tick rate is further off, and a right one never is. Since the switch before it, the second
// snapshot has a base of its own, so that a clock that stands still gains only what the tick counter adds within that
// snapshot: stolen time, too.
bool ClockIsPlausible(uint64_t gain, bool inline_twice, const Observation& seen) {
  return inline_twice && gain >= seen.cpu_ns / 2 && gain > seen.reading_ns;
}

// Returns true if an inline number gained what getrusage allows. getrusage is read before the first snapshot and after
// the second, so it may have seen a little more, never less.
bool Plausible(const Source::Slot& slot, uint64_t gain, const Observation& seen) {
  if (IsSoftware(slot.event, sys::kSwPageFaults) || IsSoftware(slot.event, sys::kSwPageFaultsMin)) {
    // User-only counts exclude the kernel's faults; `:k` alone excludes those of user space.
    return slot.event.exclude_user || (gain >= 1 && gain <= Gain(seen, UsageField::kPageFaults));
  }
  if (IsSoftware(slot.event, sys::kSwContextSwitches)) {
    return gain >= 1 && gain <= Gain(seen, UsageField::kContextSwitches);
  }
  return true;
}

// Reads, makes a fault and a switch, and reads again. Returns nullopt if a part of that could not be done.
std::optional<Observation> Observe(Source& source) {
  Observation seen;
  seen.before = Take(source);
  Usage begin, end;
  const UsageFields clock = BitOf(UsageField::kTaskClock);
  const bool worked = begin.Read(clock) && FaultAndSwitch() && end.Read(clock);
  seen.cpu_ns = end.value(UsageField::kTaskClock) - begin.value(UsageField::kTaskClock);
  const uint64_t begin_ns = sys::OwnClockNs(CLOCK_MONOTONIC);
  source.ReadSlow(seen.after.snapshot);
  seen.reading_ns = sys::OwnClockNs(CLOCK_MONOTONIC) - begin_ns;
  seen.after.usage_known = seen.after.usage.Read();
  if (!worked || !seen.before.usage_known || !seen.after.usage_known) return std::nullopt;
  return seen;
}

// Returns the events whose inline number was wrong, or could not be checked, in one try.
uint32_t FailedOnce(Source& source, uint32_t candidates) {
  const std::optional<Observation> seen = Observe(source);
  if (!seen) return candidates;
  const Snapshot &before = seen->before.snapshot, &after = seen->after.snapshot;
  uint32_t failed = 0;
  for (uint32_t left = candidates; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const uint64_t gain = after.values[i] - before.values[i];
    const bool inline_twice = ((before.fallback | after.fallback) >> i & 1) == 0;
    const Source::Slot& slot = source.slots()[i];
    const bool passed = IsSoftware(slot.event, sys::kSwTaskClock) ? ClockIsPlausible(gain, inline_twice, *seen)
                                                                  : Plausible(slot, gain, *seen);
    if (!passed) failed |= 1u << i;
  }
  return failed;
}

uint32_t InlineEvents(const Source& source) {
  uint32_t events = 0;
  for (size_t i = 0; i < source.slots().size(); ++i) {
    const Source::Slot& slot = source.slots()[i];
    const bool is_inline = slot.path == ReadPath::kRing || slot.path == ReadPath::kThreadClock;
    if (is_inline && slot.reason.ok()) events |= 1u << i;
  }
  return events;
}

}  // namespace

// A wrong path fails every try. A right one sometimes fails if a signal is pending at the fault: Linux then abandons
// the fault under the lock of its mapping, delivers the signal, and the fault is repeated. perf has counted it twice,
// getrusage once (arch/x86/mm/fault.c, do_user_addr_fault; mm/memory.c, mm_account_fault: 6.18).
uint32_t FailedSelfTest(Source& source) {
  constexpr int kTries = 8;
  uint32_t failed = InlineEvents(source);
  for (int i = 0; i < kTries && failed != 0; ++i) failed = FailedOnce(source, failed);
  return failed;
}

}  // namespace perfkit::count
