// Makes one fault and one switch between two snapshots.
#include "src/count/self_test.h"

#include "src/count/paths.h"
#include "src/count/usage.h"
#include "src/sys/mapping.h"
#include "src/sys/switches.h"

namespace perfkit::count {
namespace {

struct Totals {
  Snapshot snapshot;
  Usage usage;
  bool usage_known = false;
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

uint64_t Gain(const Totals& before, const Totals& after, UsageField field) {
  return after.usage.value(field) - before.usage.value(field);
}

// Returns true if an inline number gained what getrusage allows. getrusage is read before the first snapshot and after
// the second, so it may have seen a little more, never less. Between the snapshots the thread ran for `cpu_ns` by its
// CPU clock. The inline clock also counts stolen time, and a base that was read slowly shifts it a little.
bool Plausible(const Source::Slot& slot, uint64_t gain, uint64_t cpu_ns, const Totals& before, const Totals& after) {
  // Half: a wrong tick rate or a stopped clock is further off, and a right one never is.
  if (IsSoftware(slot.event, sys::kSwTaskClock)) return gain > 0 && gain >= cpu_ns / 2;
  if (IsSoftware(slot.event, sys::kSwPageFaults) || IsSoftware(slot.event, sys::kSwPageFaultsMin)) {
    // User-only counts exclude the kernel's faults; `:k` alone excludes those of user space.
    return slot.event.exclude_user || (gain >= 1 && gain <= Gain(before, after, UsageField::kPageFaults));
  }
  if (IsSoftware(slot.event, sys::kSwContextSwitches)) {
    return gain >= 1 && gain <= Gain(before, after, UsageField::kContextSwitches);
  }
  return true;
}

// Returns the events whose inline number was wrong, or could not be checked, in one try.
uint32_t FailedOnce(Source& source, uint32_t candidates) {
  const Totals before = Take(source);
  Usage begin, end;
  const UsageFields clock = BitOf(UsageField::kTaskClock);
  const bool worked = begin.Read(clock) && FaultAndSwitch() && end.Read(clock);
  const uint64_t cpu_ns = end.value(UsageField::kTaskClock) - begin.value(UsageField::kTaskClock);
  Totals after;
  source.ReadSlow(after.snapshot);
  after.usage_known = after.usage.Read();
  const bool known = worked && before.usage_known && after.usage_known;
  uint32_t failed = 0;
  for (uint32_t left = candidates; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const uint64_t gain = after.snapshot.values[i] - before.snapshot.values[i];
    if (!known || !Plausible(source.slots()[i], gain, cpu_ns, before, after)) failed |= 1u << i;
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
