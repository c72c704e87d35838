// One fault, one switch, two snapshots.
#include "src/count/self_test.h"

#include "src/count/paths.h"
#include "src/count/usage.h"
#include "src/sys/mapping.h"
#include "src/sys/switches.h"

namespace perfkit::count {
namespace {

struct Books {
  Snapshot snapshot;
  Usage usage;
  bool usage_known = false;
};

Books Take(Source& source) {
  Books books;
  books.usage_known = books.usage.Read();
  source.ReadSlow(books.snapshot);
  return books;
}

// A page that nobody has touched yet, touched; then away from the CPU and back. A sleep that did not switch the thread
// would be taken for a ring that does not move.
bool FaultAndSwitch() {
  std::optional<sys::Mapping> page = sys::Mapping::Anonymous(sys::PageSize());
  if (!page) return false;
  *reinterpret_cast<volatile char*>(page->data()) = 1;
  page->Reset();
  return sys::SwitchAway();
}

uint64_t Gain(const Books& before, const Books& after, UsageField field) {
  return after.usage.value(field) - before.usage.value(field);
}

// What an inline number may have gained, by what getrusage gained. getrusage is read before the first and after the
// second snapshot's neighbours, so it may have seen a little more, never less.
bool Plausible(const Source::Slot& slot, uint64_t gain, const Books& before, const Books& after) {
  if (IsSoftware(slot.event, sys::kSwTaskClock)) return gain > 0;
  if (IsSoftware(slot.event, sys::kSwPageFaults) || IsSoftware(slot.event, sys::kSwPageFaultsMin)) {
    // User-only counts leave out the kernel's faults; `:k` alone leaves out ours.
    return slot.event.exclude_user || (gain >= 1 && gain <= Gain(before, after, UsageField::kPageFaults));
  }
  if (IsSoftware(slot.event, sys::kSwContextSwitches)) {
    return gain >= 1 && gain <= Gain(before, after, UsageField::kContextSwitches);
  }
  return true;
}

}  // namespace

uint32_t FailedSelfTest(Source& source) {
  const Books before = Take(source);
  const bool worked = FaultAndSwitch();
  Books after;
  source.ReadSlow(after.snapshot);
  after.usage_known = after.usage.Read();
  uint32_t failed = 0;
  for (size_t i = 0; i < source.slots().size(); ++i) {
    const Source::Slot& slot = source.slots()[i];
    if (slot.path != ReadPath::kRing && slot.path != ReadPath::kThreadClock) continue;
    if (!slot.reason.ok()) continue;
    const uint64_t gain = after.snapshot.values[i] - before.snapshot.values[i];
    const bool known = worked && before.usage_known && after.usage_known;
    if (!known || !Plausible(slot, gain, before, after)) failed |= 1u << i;
  }
  return failed;
}

}  // namespace perfkit::count
