// The table of expectations. An event that stays at 0 although its work was done is called silent, which tells users
// not to trust it: so a wrong row here would accuse an event that works.
#include "src/doctor/expectation.h"

namespace perfkit::doctor {
namespace {

struct Row {
  std::string_view name;
  Work work;
};

// Only what is certain. Left out: caches beyond the first, which may hold all that the workload reads; stalls, which
// may never happen; prefetches, which a PMU may not count; and the machine's own events, whose meaning is unknown (but
// msr/tsc/ is the same on each x86 machine).
constexpr Row kRows[] = {
    {"cycles", Work::kLoop},
    {"instructions", Work::kLoop},
    {"branches", Work::kLoop},
    {"branch-misses", Work::kLoop},
    {"bus-cycles", Work::kLoop},
    {"ref-cycles", Work::kLoop},
    {"cpu-clock", Work::kLoop},
    {"task-clock", Work::kLoop},
    {"page-faults", Work::kPages},
    {"minor-faults", Work::kPages},
    {"context-switches", Work::kSleep},
    {"allocations", Work::kMemory},
    {"allocated-bytes", Work::kMemory},
    {"L1-dcache-loads", Work::kReads},
    {"L1-dcache-load-misses", Work::kReads},
    {"dTLB-loads", Work::kReads},
    {"branch-loads", Work::kLoop},
    {"branch-load-misses", Work::kLoop},
    {"msr/tsc/", Work::kLoop},
    {"sched:sched_switch", Work::kSleep},
    {"raw_syscalls:sys_enter", Work::kCalls},
    {"raw_syscalls:sys_exit", Work::kCalls},
    {"syscalls:sys_enter_getpid", Work::kCalls},
    {"syscalls:sys_exit_getpid", Work::kCalls},
    {"exceptions:page_fault_user", Work::kPages},
};

}  // namespace

Work WorkThatRaises(EventCategory category, std::string_view name) {
  switch (category) {
    case EventCategory::kRaw: return Work::kLoop;  // src/doctor/examples.cc has one: retired instructions.
    case EventCategory::kBreakpoint: return Work::kWrites;
    case EventCategory::kUprobe: return Work::kProbe;
    default: break;
  }
  for (const Row& row : kRows) {
    if (row.name == name) return row.work;
  }
  return Work::kNothing;
}

}  // namespace perfkit::doctor
