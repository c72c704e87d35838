// Probes of events at addresses: tracepoints in the kernel, uprobes in code, breakpoints on memory. Each counts
// something that this process does by itself, because such events may open and yet never count.
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/doctor/examples.h"
#include "src/doctor/findings.h"
#include "src/doctor/try_event.h"
#include "src/event/attr.h"
#include "src/event/tracepoint.h"
#include "src/open/open_event.h"

namespace perfkit::doctor {
namespace {

EventRoots RootsOf(const Context& context) { return {.sysfs = context.sysfs, .tracefs = {}, .proc = context.proc}; }

std::string ExampleOf(EventCategory category, const Workload& workload) {
  for (const Example& example : ExamplesHere(workload)) {
    if (example.category == category) return example.name;
  }
  return "";
}

Finding CountExample(EventCategory category, Work raised_by, Context& context) {
  const Verdict verdict = TryEvent(ExampleOf(category, context.workload), raised_by, context.workload);
  if (verdict.usability != Usability::kCounts) return Finding::Missing(verdict.usable);
  return Finding::Present(absl::StrFormat("counted %d %s", verdict.value, WorkName(raised_by)));
}

// Returns how many breakpoints one thread can have: the kernel answers ENOSPC to the first one too many.
size_t BreakpointsAtOnce(const EventConfig& event, const sys::Rights& rights) {
  constexpr size_t kMax = 32;
  std::vector<open::OpenedEvent> events;
  while (events.size() < kMax) {
    open::OpenRequest request;
    request.attr = event::ToAttr(event, event.parts[0]);
    request.asked = event.name;
    absl::StatusOr<open::OpenedEvent> opened = open::OpenEvent(request, rights);
    if (!opened.ok()) break;
    events.push_back(*std::move(opened));
  }
  return events.size();
}

}  // namespace

Finding ProbeTracepoints(Context& context) {
  const absl::StatusOr<std::string> tracefs = event::TracefsFolder(RootsOf(context));
  if (!tracefs.ok()) return Finding::Missing(tracefs.status());
  const Verdict any = TryEvent("sched:sched_switch", Work::kSleep, context.workload, RootsOf(context));
  if (any.usability == Usability::kCounts) {
    return Finding::Present(absl::StrFormat("all groups under %s", *tracefs));
  }
  // With exclude_kernel, tracepoints of system calls still count; most others count 0. So for ordinary users the answer
  // may be "some".
  const Verdict calls = TryEvent("syscalls:sys_enter_getpid", Work::kCalls, context.workload, RootsOf(context));
  // sched_switch's reason is the better one: it is about rights, if rights are what is missing.
  if (calls.usability != Usability::kCounts) return Finding::Missing(any.usable);
  return Finding::Present("those of system calls (syscalls:*) only; the others are raised in kernel code");
}

Finding ProbeUprobes(Context& context) { return CountExample(EventCategory::kUprobe, Work::kProbe, context); }

Finding ProbeBreakpoints(Context& context) {
  Finding finding = CountExample(EventCategory::kBreakpoint, Work::kWrites, context);
  if (finding.state != CapabilityState::kPresent) return finding;
  const absl::StatusOr<EventConfig> event = ParseEvent(ExampleOf(EventCategory::kBreakpoint, context.workload));
  if (event.ok()) finding.found = absl::StrFormat("%d at once on a thread", BreakpointsAtOnce(*event, context.rights));
  return finding;
}

}  // namespace perfkit::doctor
