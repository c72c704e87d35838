// Twins: each case compiles as it is, and does not with BROKEN defined.
#include <catch2/catch.hpp>

#include "perfkit/testing.h"

using namespace perfkit;
using namespace perfkit::event;

void Check() {
#if CASE == 1 && defined(BROKEN)  // a noisy event
  (void)Costs(UpTo(1000), kCycles);
#elif CASE == 1
  (void)Costs(UpTo(1000), On("build-7", kCycles));
#elif CASE == 2 && defined(BROKEN)  // a clock
  (void)Costs(UpTo(1000), kTaskClock);
#elif CASE == 2
  (void)Costs(UpTo(1000), kPageFaults);
#elif CASE == 3 && defined(BROKEN)  // exactly, not up to
  (void)Costs(7, kCacheMisses);
#elif CASE == 3
  (void)Costs(7, kInstructions);
#elif CASE == 4 && defined(BROKEN)  // never
  (void)Never(kContextSwitches);
#elif CASE == 4
  (void)Never(Calls(+[](int) {}));
#elif CASE == 5 && defined(BROKEN)  // an event of the user's own, of unknown class
  (void)Costs(UpTo(5), EventType{4, 0x1c0, 0, 0, "r1c0"});
#elif CASE == 5
  (void)Costs(UpTo(5), On("build-7", EventType{4, 0x1c0, 0, 0, "r1c0"}));
#elif CASE == 6 && defined(BROKEN)  // results of different kinds
  (void)(Never(kAllocations) && UsesUpTo(0.9, kAllocations));
#elif CASE == 6
  (void)(Never(kAllocations) && Costs(1, kPageFaults));
#endif
}
