// Probes of counting: what may be counted, and on whose behalf. Probes of rights open the least that needs the right,
// without the retries that would restrict an event to what is permitted (try_open.h): a retry would hide the answer.
#include <errno.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/detail/user_page.h"
#include "perfkit/format.h"
#include "src/base/text.h"
#include "src/doctor/findings.h"
#include "src/doctor/try_event.h"
#include "src/doctor/try_open.h"
#include "src/event/pmu.h"
#include "src/open/live_ring.h"
#include "src/open/task_cpu.h"
#include "src/proc/threads.h"
#include "src/sys/files.h"
#include "src/sys/perf_error.h"

namespace perfkit::doctor {
namespace {

std::string CorePmus(const Context& context) {
  std::string names;
  const EventRoots roots{.sysfs = context.sysfs, .tracefs = {}, .proc = context.proc};
  for (const std::string& name : event::PmuNames(roots)) {
    const absl::StatusOr<event::Pmu> pmu = event::LoadPmu(roots, name);
    if (pmu.ok() && pmu->core) names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "a core PMU" : names;
}

// Returns the setting for user-space reads: arch/x86/events/core.c, drivers/perf/arm_pmuv3.c.
std::string UserReadSwitch(const Context& context) {
#if defined(__aarch64__) || defined(__riscv)
  const std::string path = context.proc + "/sys/kernel/perf_user_access";
#else
  const std::string path = context.sysfs + "/bus/event_source/devices/cpu/rdpmc";
#endif
  const absl::StatusOr<std::string> text = sys::ReadFile(path, 64);
  if (!text.ok()) return "the kernel does not offer it";
  return absl::StrFormat("the kernel does not offer it (%s is %s)", path, base::Trim(*text));
}

// Returns a process of another user; nullopt if only this user's are visible.
std::optional<pid_t> SomeoneElses(const Context& context) {
  const auto names = sys::ListFolder(context.proc);
  if (!names.ok()) return std::nullopt;
  for (const pid_t pid : proc::ParseTaskNames(*names)) {
    const auto owner = sys::OwnerOf(absl::StrFormat("%s/%d", context.proc, pid));
    if (owner && *owner != context.rights.euid) return pid;
  }
  return std::nullopt;
}

}  // namespace

Finding ProbePerf(Context& context) {
  absl::Status status = TryToOpen(SoftwareAttr(sys::kSwTaskClock), {}, "task-clock:u on this thread", context.rights);
  context.has_perf = sys::ErrnoOf(status) != ENOSYS;
  if (!status.ok()) return Finding::Missing(std::move(status));
  return Finding::Present(sys::DescribeRights(context.rights));
}

Finding ProbePmu(Context& context) {
  const Verdict verdict = TryEvent("instructions:u", Work::kLoop, context.workload);
  // It must count, not only open: virtual machines may offer events that stay at 0.
  context.has_pmu = verdict.usability == Usability::kCounts;
  if (!context.has_pmu) return Finding::Missing(verdict.usable);
  return Finding::Present(
      absl::StrFormat("%s; the probe's work took %s instructions", CorePmus(context), FormatNumber(verdict.value)));
}

Finding ProbeUserReads(Context& context) {
  if (!context.has_pmu) return NeedsPmu(context);
  open::OpenRequest request;
  request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  request.attr.config = event::kInstructions.config;
#if defined(__aarch64__)
  request.attr.config1 = 2;  // arm64 maps registers only for events that ask for it: bit 1, rdpmc.
#endif
  request.asked = "instructions:u on this thread";
  // 0 data pages: the user page alone.
  const absl::StatusOr<open::LiveRing> ring = open::LiveRing::Open(request, 0, context.rights);
  if (!ring.ok()) return Finding::Missing(ring.status());
  if (!ring->page()->can_read_counter()) return Finding::Missing(absl::UnavailableError(UserReadSwitch(context)));
  UserCount before{}, after{};
  const bool read_before = ReadUserCount(*ring->page(), before);
  context.workload.Run();
  // The work takes instructions for certain, so a register that did not move is not the counter.
  if (!read_before || !ReadUserCount(*ring->page(), after) || after.value <= before.value) {
    return Finding::Missing(absl::UnavailableError("the register did not move, or was not there"),
                            "the kernel offers a register, but it did not move with the work");
  }
  return Finding::Present(absl::StrFormat("registers of %d bits", ring->page()->pmc_width));
}

Finding ProbeKernelCounting(Context& context) {
  absl::Status status =
      TryToOpen(SoftwareAttr(sys::kSwContextSwitches, false), {}, "context-switches on this thread", context.rights);
  return status.ok() ? Finding::Present("user and kernel") : Finding::Missing(std::move(status));
}

Finding ProbeCpuWide(Context& context) {
  const absl::StatusOr<std::vector<open::TaskCpu>> task_cpus = open::TaskCpusOf(Target::System());
  if (!task_cpus.ok()) return Finding::Unnamed(task_cpus.status());
  size_t opened = 0;
  absl::Status last;
  for (const open::TaskCpu& task_cpu : *task_cpus) {
    absl::Status status = TryToOpen(SoftwareAttr(sys::kSwCpuClock, false), task_cpu,
                                    absl::StrFormat("cpu-clock on CPU %d", task_cpu.cpu), context.rights);
    opened += status.ok() ? 1 : 0;
    if (!status.ok()) last = std::move(status);
  }
  if (opened == 0) return Finding::Missing(std::move(last));
  return Finding::Present(absl::StrFormat("%d of %d CPUs", opened, task_cpus->size()));
}

Finding ProbeOtherUsers(Context& context) {
  // For root this is a process of another user too: a right to all tasks shows only there.
  const std::optional<pid_t> pid = SomeoneElses(context);
  if (!pid) return Finding::Untried("no other user's process is in sight");
  absl::Status status = TryToOpen(SoftwareAttr(sys::kSwDummy), {.pid = *pid, .cpu = -1},
                                  absl::StrFormat("dummy:u on process %d", *pid), context.rights);
  if (!status.ok())
    return Finding::Missing(std::move(status),
                            absl::StrFormat("process %d is closed to uid %d", *pid, context.rights.euid));
  return Finding::Present(absl::StrFormat("tried on process %d", *pid));
}

}  // namespace perfkit::doctor
