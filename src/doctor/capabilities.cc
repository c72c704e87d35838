// THE table of capabilities: for each, how it is tried, and the remedy if it is missing.
//
// Each row is tried by doing it once: sysctls and versions say what should be permitted, but containers, hypervisors
// and backports make them wrong. The rows run in their order, because the probe of the PMU decides whether those that
// need one are tried at all (Context::has_pmu).
#include "perfkit/capabilities.h"

#include <errno.h>

#include <array>
#include <utility>

#include "src/doctor/findings.h"
#include "src/doctor/hints.h"
#include "src/sys/perf_error.h"

namespace perfkit {
namespace {

struct Row {
  CapabilityId id;
  std::string_view name;
  std::string_view probe;
  doctor::Finding (*run)(doctor::Context&);
  const char* remedy;  // If the capability itself is missing.
  const char* until;   // What perfkit does without it.
};

using Id = CapabilityId;

constexpr Row kRows[] = {
    {Id::kPerf, "performance events", "opens task-clock:u on this thread", doctor::ProbePerf,
     "Lower kernel.perf_event_paranoid to 2 (sysctl), or allow perf_event_open in the container's seccomp profile.",
     "Until then perfkit counts faults, switches and CPU time by getrusage."},
    {Id::kPmu, "hardware counters", "counts the instructions of a loop", doctor::ProbePmu,
     "Enable the PMU in the hypervisor, or run on hardware.",
     "Until then count software events: page faults, switches, task-clock."},
    {Id::kUserReads, "user-space reads", "maps a hardware event, looks for its register", doctor::ProbeUserReads,
     "x86: echo 1 > /sys/bus/event_source/devices/cpu/rdpmc; arm64: sysctl kernel.perf_user_access=1.",
     "Until then hardware events cost one system call a read."},
    {Id::kKernelCounting, "the kernel's part", "opens context-switches with kernel mode", doctor::ProbeKernelCounting,
     "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON.", "Until then counts are of user space only, and say so."},
    {Id::kCpuWide, "whole CPUs", "opens cpu-clock on each CPU", doctor::ProbeCpuWide,
     "sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON.", "Until then count threads and processes."},
    {Id::kOtherUsers, "other users' tasks", "opens dummy:u on another user's process", doctor::ProbeOtherUsers,
     "Run as that user, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_PTRACE).", "One's own tasks are not affected."},
    {Id::kTracepoints, "tracepoints", "counts sched:sched_switch, or a system call's", doctor::ProbeTracepoints,
     "As root: mount -t tracefs tracefs /sys/kernel/tracing; for another user also: mount -o "
     "remount,mode=750,gid=GROUP /sys/kernel/tracing, with a group of that user. Kernel events need "
     "kernel.perf_event_paranoid=1 or CAP_PERFMON besides.",
     ""},
    {Id::kUprobes, "uprobes", "counts calls of a function of its own", doctor::ProbeUprobes,
     "Grant CAP_SYS_ADMIN (kernels since July 2025 no longer accept CAP_PERFMON); the kernel needs "
     "CONFIG_UPROBE_EVENTS.",
     ""},
    {Id::kBreakpoints, "breakpoints", "counts writes to a word of its own", doctor::ProbeBreakpoints,
     "The CPU needs debug registers that the hypervisor passes on, and no debugger may hold them.", ""},
    {Id::kSwitchRecords, "switch records", "sleeps, looks for the record", doctor::ProbeSwitchRecords,
     "Needs Linux 4.3 and a page of ring memory.", "Until then ordinary users' switches come from getrusage."},
    {Id::kRingMemory, "ring memory", "maps rings until the kernel refuses", doctor::ProbeRingMemory,
     "Raise kernel.perf_event_mlock_kb or `ulimit -l`.", "Until then software events cost one system call a read."},
    {Id::kDescriptors, "descriptors", "reads RLIMIT_NOFILE", doctor::ProbeDescriptors,
     "Raise `ulimit -n`: every event takes one for each thread or CPU that it is counted on.", ""},
    {Id::kSigtrap, "signals at samples", "opens an event with sigtrap", doctor::ProbeSigtrap,
     "Use Linux 5.13 or later.", "Until then live stacks are of samples in user space, and threads are attached late."},
    {Id::kInheritThread, "threads without children", "opens an event with inherit_thread", doctor::ProbeInheritThread,
     "Use Linux 5.13 or later.", "Until then counts of all threads include children of the process."},
    {Id::kFormatLost, "exact losses", "opens an event with PERF_FORMAT_LOST", doctor::ProbeFormatLost,
     "Use Linux 6.0 or later.", "Until then numbers of lost samples are lower bounds."},
    {Id::kPreciseSampling, "samples without skid", "opens cycles:up, upp, uppp", doctor::ProbePreciseSampling,
     "Needs PEBS (Intel), IBS (AMD) or SPE (Arm), which virtual machines seldom have.", ""},
    {Id::kBranchStacks, "branch stacks", "opens cycles:u with a branch stack", doctor::ProbeBranchStacks,
     "Needs LBR (Intel), BRS or LbrExtV2 (AMD) or BRBE (Arm), which virtual machines seldom have.", ""},
    {Id::kRseq, "CPU number in memory", "reads the thread's rseq area", doctor::ProbeRseq,
     "Use glibc 2.35 or later (and do not switch it off: GLIBC_TUNABLES glibc.pthread.rseq).",
     "Until then counts do not say whether the thread migrated."},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].id != static_cast<Id>(i)) return false;
  }
  return std::size(kRows) == static_cast<size_t>(Id::kRseq) + 1;
}
static_assert(InOrder(), "one row for each CapabilityId, in its order");

// Returns the cause, with the rights that explain it if it is about rights.
std::string CauseHere(const absl::Status& status, const sys::Rights& rights) {
  const std::string cause = sys::CauseOf(status);
  // "not permitted" alone does not say which of user, capabilities and perf_event_paranoid is in the way.
  if (!absl::IsPermissionDenied(status)) return cause;
  return cause + ": " + sys::DescribeRights(rights);
}

// Returns the remedy. A right or a limit that is in the way has its own remedy, which was tried: a PMU cannot be found
// if no event may be opened, or there is no perf_event_open.
std::string RemedyHere(const Row& row, const doctor::Finding& finding, const doctor::Context& context) {
  const bool is_no_call = sys::ErrnoOf(finding.status) == ENOSYS;
  if (is_no_call && !context.has_perf && row.id != Id::kPerf) return doctor::kSeePerf;
  if (!finding.remedy.empty()) return finding.remedy;
  const bool in_the_way =
      is_no_call || absl::IsPermissionDenied(finding.status) || absl::IsResourceExhausted(finding.status);
  std::string remedy = in_the_way ? sys::RemedyOf(finding.status) : "";
  if (remedy.empty()) remedy = row.remedy;
  const std::string_view where = sys::WhereRightsCount(remedy, context.rights);
  if (!where.empty() && remedy.find(where) == std::string::npos) {
    if (remedy.ends_with('.')) remedy.pop_back();
    remedy += std::string(where) + ".";
  }
  return *row.until == '\0' ? remedy : remedy + " " + row.until;
}

Capability Try(const Row& row, doctor::Context& context) {
  doctor::Finding finding = row.run(context);
  Capability capability{.id = row.id,
                        .name = row.name,
                        .probe = row.probe,
                        .state = finding.state,
                        .found = std::move(finding.found),
                        .cause = std::move(finding.cause),
                        .remedy = {},
                        .status = finding.status};
  if (capability.state != CapabilityState::kMissing) return capability;
  if (capability.cause.empty()) capability.cause = CauseHere(capability.status, context.rights);
  capability.remedy = RemedyHere(row, finding, context);
  return capability;
}

}  // namespace

Capabilities ProbeCapabilities() {
  doctor::Context context{.rights = sys::ReadRights(), .workload = {}};
  Capabilities capabilities;
  for (const Row& row : kRows) capabilities.rows.push_back(Try(row, context));
  capabilities.hints = doctor::CollectHints();
  return capabilities;
}

}  // namespace perfkit
