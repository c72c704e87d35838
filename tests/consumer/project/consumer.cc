// Another project's program that counts: a set, a scope, a frame and a zone. Fails when a number cannot be true.
#include <perfkit/counter.h>
#include <perfkit/format.h>
#include <perfkit/frame_counter.h>
#include <perfkit/scope.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Touches memory that it has just been given: at least one page fault.
void TouchNewPages() {
  constexpr size_t kBytes = 8 << 20;
  char* const pages = static_cast<char*>(std::malloc(kBytes));
  for (size_t i = 0; i < kBytes; i += 4096) *const_cast<volatile char*>(pages + i) = 1;
  std::free(pages);
}

bool CountRegion() {
  auto set = perfkit::CounterSet::Open({"task-clock", perfkit::event::kPageFaults}, perfkit::Target::ThisThread(),
                                       {.require_all = false});
  if (!set.ok()) return std::puts(set.status().ToString().c_str()), false;
  perfkit::ScopeTotals totals;
  perfkit::Snapshot begin, end;
  set->Read(begin);
  {
    perfkit::CounterScope scope(*set, totals);
    TouchNewPages();
  }
  set->Read(end);
  std::fputs(perfkit::FormatTable(*set, totals).c_str(), stdout);
  const perfkit::Count faults = set->Difference(begin, end, 1);
  return !faults.validity.counted() || faults.value > 0;
}

bool CountFrames() {
  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}});
  for (int i = 0; i < 3; ++i) {
    PERFKIT_ZONE(frames, "touch");
    TouchNewPages();
  }
  frames.Mark();
  std::fputs(frames.FormatZones().c_str(), stdout);
  return !frames.zones().empty();
}

}  // namespace

int main() {
  if (!CountRegion()) return std::puts("FAILED: a region that touched new pages counted no fault"), 1;
  if (!CountFrames()) return std::puts("FAILED: a frame with a zone reported none"), 1;
  return 0;
}
