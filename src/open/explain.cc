// Finds the cause of a refusal by experiment.
//
// One errno has many causes: EINVAL alone has more than thirty in kernel/events/core.c. So each row of a table changes
// one thing in the request that was refused. If the kernel opens that variation, the row names the cause, and its
// change is the remedy. Rights are tried first: perf_event_open checks them before most of the attr, and OpenEvent may
// have restricted the request to user space, which may then be the only reason for the refusal.
#include "src/open/explain.h"

#include <errno.h>

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/detail/sample_fields.h"
#include "src/open/variation.h"
#include "src/proc/threads.h"
#include "src/sys/max_sample_rate.h"
#include "src/sys/perf_error.h"

namespace perfkit::open {
namespace {

using Code = absl::StatusCode;
using sys::Explanation;

constexpr char kWatchKernel[] =
    "sysctl kernel.perf_event_paranoid=1, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)";

bool IsBreakpointOfKernel(const sys::PerfEventAttr& attr) {
  return attr.type == sys::kTypeBreakpoint && static_cast<int64_t>(attr.config1) < 0;
}

// A change that may make the kernel accept the event, with its meaning.
struct Row {
  void (*change)(Variation&);
  Code code;
  const char* cause;
  const char* remedy;
};

void StopSampling(Variation& event) {
  event.attr.sample_period_or_freq = 0;
  event.attr.freq = event.attr.sigtrap = event.attr.precise_ip = 0;
  event.attr.sample_type &= ~uint64_t{kSampleBranchStack | kSampleCallchain};
  event.attr.branch_sample_type = 0;
}

void StopBranches(Variation& event) {
  event.attr.branch_sample_type = 0;
  event.attr.sample_type &= ~uint64_t{kSampleBranchStack};
}

void CountEverything(Variation& event) {
  sys::PerfEventAttr& attr = event.attr;
  attr.exclude_user = attr.exclude_kernel = attr.exclude_hv = attr.exclude_idle = 0;
  attr.exclude_host = attr.exclude_guest = 0;
}

// Rights that one part of the request requires (kernel/events/core.c, perf_copy_attr and perf_event_open;
// kernel/trace/trace_event_perf.c, perf_trace_event_perm).
constexpr Row kDeniedRows[] = {
    {[](Variation& event) { event.attr.sample_type &= ~uint64_t{kSamplePhysAddr}; }, Code::kPermissionDenied,
     "physical addresses require the right to watch the kernel", kWatchKernel},
    {[](Variation& event) { event.attr.sample_type &= ~uint64_t{kSampleRaw}; }, Code::kPermissionDenied,
     "the data of this tracepoint requires the right to watch the whole kernel",
     "sysctl kernel.perf_event_paranoid=-1, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)"},
    {[](Variation& event) { event.attr.sample_type &= ~uint64_t{kSampleRegsIntr}; }, Code::kPermissionDenied,
     "registers at the interrupt may be the kernel's, which this process may not watch", kWatchKernel},
    {[](Variation& event) { event.attr.exclude_callchain_kernel = 1; }, Code::kPermissionDenied,
     "this process may not see the kernel's part of the stack", kWatchKernel},
    {[](Variation& event) { event.attr.branch_sample_type = sys::kBranchUser | sys::kBranchAny; },
     Code::kPermissionDenied, "this process may not see branches in the kernel", kWatchKernel},
    {[](Variation& event) { event.attr.namespaces = 0; }, Code::kPermissionDenied,
     "records of namespaces require the right to watch the kernel",
     "grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)"},
};

// What the kernel or the PMU lacks (kernel/events/core.c; arch/x86/events/core.c, x86_pmu_hw_config).
constexpr Row kRefusedRows[] = {
    {[](Variation& event) { event.group_fd = -1; }, Code::kInvalidArgument, "it opens alone, but not in its group",
     "count it outside the group: too many events for one group, or events of PMUs that cannot be combined"},
    {[](Variation& event) { event.attr.use_clockid = event.attr.clockid = 0; }, Code::kInvalidArgument,
     "this event's records cannot carry that clock",
     "use CLOCK_MONOTONIC or CLOCK_MONOTONIC_RAW; software events may also use CLOCK_REALTIME, CLOCK_BOOTTIME and "
     "CLOCK_TAI"},
    {[](Variation& event) { event.attr.precise_ip = 0; }, Code::kUnavailable, "this PMU cannot sample that precisely",
     "leave out the modifier ':p' (':P' is as precise as possible)"},
    {StopBranches, Code::kUnavailable, "this PMU has no such branch stacks", "leave out branch stacks"},
    {[](Variation& event) { event.attr.sample_max_stack = 0; }, Code::kInvalidArgument,
     "the stack depth exceeds kernel.perf_event_max_stack",
     "ask for fewer frames, or raise kernel.perf_event_max_stack"},
    {CountEverything, Code::kInvalidArgument, "this PMU always counts user space and the kernel together",
     "leave out the modifiers (':u', ':k', ':h', ':G', ':H', ':I') and user_only"},
    {StopSampling, Code::kUnavailable, "this PMU counts, but cannot sample",
     "count it (CounterSet), or sample another event, such as cpu-clock, with this one as a follower"},
    {[](Variation& event) { event.attr.inherit = event.attr.inherit_thread = 0; }, Code::kUnavailable,
     "this kernel cannot combine it with threads that start later", "use Target::WithoutInherit, or a newer kernel"},
    {[](Variation& event) { event.attr.read_format &= ~uint64_t{sys::kFormatLost}; }, Code::kUnavailable,
     "this kernel does not count what an event loses (Linux 6.0 does)", "use a newer kernel"},
};

// Returns the first row whose change the kernel accepts, or nullptr.
const Row* FindRow(std::span<const Row> rows, const Variation& refused) {
  for (const Row& row : rows) {
    Variation varied = refused;
    row.change(varied);
    if (varied != refused && Try(varied) == 0) return &row;
  }
  return nullptr;
}

Explanation Of(const Row& row) { return {row.code, row.cause, row.remedy}; }

Explanation Denied(std::string cause, std::string remedy) {
  return {Code::kPermissionDenied, std::move(cause), std::move(remedy)};
}

class Investigation {
 public:
  Investigation(const Refusal& refusal, const sys::Rights& rights)
      : request_(refusal.request), refusal_(refusal), rights_(rights) {
    refused_ = {.attr = refusal.attr, .pid = request_.pid, .cpu = request_.cpu, .group_fd = request_.group_fd};
  }

  std::optional<Explanation> Explain() {
    switch (refusal_.error) {
      case EACCES:
      case EPERM: return ExplainDenied();
      case ENOENT: return ExplainMissing();
      case ESRCH: return ExplainNoTask();
      case EINVAL:
      case EOPNOTSUPP:
      case EOVERFLOW:
      case E2BIG: return ExplainRefused();
      default: return std::nullopt;
    }
  }

 private:
  std::optional<Explanation> ExplainDenied() const {
    if (IsDenied(Try(Dummy(0)))) return ExplainNoPerf();
    if (const auto probe = ExplainProbe()) return probe;
    if (request_.pid < 0) return ExplainCpu();
    // A dummy in user space may be opened on each task of one's own: if it is denied, the task is the cause.
    if (request_.pid > 0 && IsDenied(Try(Dummy(request_.pid)))) return ExplainTask();
    if (IsBreakpointOfKernel(refused_.attr) && !rights_.sys_admin) return KernelBreakpoint();
    if (rights_.perfmon) return std::nullopt;
    if (const auto kernel = ExplainKernelPart()) return kernel;
    // Without the kernel's part, for its refusal would hide what else is denied.
    const Row* const row = FindRow(kDeniedRows, WithoutKernel(refused_));
    return row != nullptr ? std::optional(Of(*row)) : std::nullopt;
  }

  // Before all others, because the kernel checks these rights first: perf_uprobe_event_init in kernel/events/core.c.
  std::optional<Explanation> ExplainProbe() const {
    if (request_.pmu == "uprobe" && !rights_.sys_admin) {
      return Denied(rights_.perfmon ? "this kernel permits uprobes with CAP_SYS_ADMIN only"
                                    : "uprobes are for privileged processes only",
                    "grant CAP_SYS_ADMIN, or run as root (kernels since July 2025 no longer accept CAP_PERFMON)");
    }
    if (request_.pmu == "kprobe" && !rights_.perfmon) {
      return Denied("probes are for privileged processes only",
                    "grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN), or run as root");
    }
    return std::nullopt;
  }

  // ptrace_may_access in kernel/ptrace.c.
  Explanation ExplainTask() const {
    const bool is_ours = proc::UserOf(request_.pid) == rights_.euid;
    const char* const cause = is_ours ? "is this user's, but may not be traced (PR_SET_DUMPABLE, or a program that is "
                                        "set-user-ID or has capabilities)"
                                      : "belongs to another user, or may not be traced";
    const char* const remedy = is_ours ? "let it be dumpable (man 2 prctl)" : "run as that task's user";
    return Denied(absl::StrFormat("task %d %s", request_.pid, cause),
                  absl::StrFormat("%s, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_PTRACE)", remedy));
  }

  // The ids of threads come from /proc.
  std::optional<Explanation> ExplainNoTask() const {
    if (!proc::ShowsOtherIds()) return std::nullopt;
    return Explanation{Code::kNotFound,
                       "there is no such task in the pid namespace of this process, and /proc shows the ids of another",
                       "mount /proc anew in this pid namespace (unshare --mount-proc, or: mount -t proc proc /proc)"};
  }

  // perf_event_open is not permitted at all: by the paranoid level of Debian, Ubuntu and Android (3 and 4), or by a
  // filter.
  Explanation ExplainNoPerf() const {
    if (!rights_.perfmon && rights_.paranoid.value_or(0) > 2) {
      return Denied("this kernel permits perf events to privileged processes only",
                    "sysctl kernel.perf_event_paranoid=2, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)");
    }
    return Denied(
        "a seccomp filter (of a container or sandbox) or a security module refuses every perf_event_open, "
        "whatever the rights of this process",
        "allow perf_event_open in the seccomp profile (Docker: --cap-add PERFMON, or --security-opt seccomp=...)");
  }

  std::optional<Explanation> ExplainCpu() const {
    if (rights_.may_watch_cpus()) return std::nullopt;
    return Denied("this process may not watch whole CPUs, not even in user space",
                  "sysctl kernel.perf_event_paranoid=0, or grant CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN); "
                  "or count threads and processes");
  }

  // Explains a refusal of the kernel's part of the event, if that is the cause, or if it hides that there is no such
  // event.
  std::optional<Explanation> ExplainKernelPart() const {
    if (refused_.attr.exclude_kernel != 0 || rights_.may_count_kernel()) return std::nullopt;
    if (request_.kernel_side) {
      return Denied("the kernel raises it in its own code, which this process may not watch", kWatchKernel);
    }
    const int without = Try(WithoutKernel(refused_));
    // The right to watch the kernel would not help.
    if (without == ENOENT) {
      const auto missing = ExplainMissing();
      return missing ? missing : sys::UsualExplanation(sys::PerfCall::kOpen, ENOENT);
    }
    if (without != 0) return std::nullopt;
    const char* const instead = refused_.attr.exclude_user == 0 ? "ask for user space only (modifier ':u'), or " : "";
    return Denied("this process may not watch the kernel", std::string(instead) + kWatchKernel);
  }

  std::optional<Explanation> ExplainMissing() const {
    Variation cycles = Dummy(0);
    cycles.attr.type = sys::kTypeHardware;
    cycles.attr.config = 0;
    switch (refused_.attr.type) {
      case sys::kTypeSoftware:
        return Explanation{Code::kUnavailable, "this kernel has no such software event",
                           "use a newer kernel, or another event"};
      case sys::kTypeBreakpoint:
        return Explanation{Code::kUnavailable, "the kernel finds no debug registers on this machine",
                           "enable them in the hypervisor, or run on hardware"};
      case sys::kTypeHardware:
      case sys::kTypeHwCache:
      case sys::kTypeRaw:
        if (Try(cycles) == ENOENT) return std::nullopt;
        return Explanation{Code::kUnavailable, "the PMU of this machine has no such event",
                           "choose another event (perfkit::ListEvents lists those that count here)"};
      default:
        return Explanation{
            Code::kUnavailable, absl::StrFormat("no PMU of this machine has the type %d", refused_.attr.type),
            "load its driver, or choose another event (perfkit::ListEvents lists those that count here)"};
    }
  }

  std::optional<Explanation> ExplainRefused() const {
    if (const auto value = ExplainValue()) return value;
    if (refused_.attr.type == sys::kTypeBreakpoint) {
      if (const auto breakpoint = ExplainBreakpoint()) return breakpoint;
    }
    if (Try(refused_) == 0) {
      return Explanation{Code::kUnavailable, "the kernel refused it once, and accepts it now", "try again"};
    }
    if (const Row* const row = FindRow(kRefusedRows, refused_)) return Of(*row);
    if (const auto field = ExplainField()) return field;
    // Last, because the kernel's part is denied to every ordinary user, even if something else is the cause.
    Variation everything = refused_;
    CountEverything(everything);
    if (!IsDenied(Try(everything))) return std::nullopt;
    return Denied("this PMU counts user space and the kernel together, and this process may not watch the kernel",
                  kWatchKernel);
  }

  static Explanation KernelBreakpoint() {
    return Denied("a breakpoint in kernel memory is for the administrator only",
                  "run as root (CAP_SYS_ADMIN), or watch an address in user space");
  }

  // Explains values of the attr that are out of range, or not for a member of a group.
  std::optional<Explanation> ExplainValue() const {
    const sys::PerfEventAttr& attr = refused_.attr;
    if (refused_.group_fd >= 0 && (attr.pinned != 0 || attr.exclusive != 0)) {
      return Explanation{Code::kInvalidArgument, "only the first event of a group can be pinned or exclusive",
                         "write it first, or in a group of its own"};
    }
    const uint64_t rate = attr.sample_period_or_freq;
    const std::optional<uint64_t> most = sys::MaxSampleRate();
    if (attr.freq != 0 && most && rate > *most) {
      return Explanation{Code::kInvalidArgument,
                         absl::StrFormat("%d samples a second exceed kernel.perf_event_max_sample_rate, %d, "
                                         "which the kernel lowers if samples take too long",
                                         rate, *most),
                         absl::StrFormat("ask for at most Frequency{%d}, or %s", *most, sys::RaiseMaxSampleRate())};
    }
    if (attr.freq == 0 && rate >> 63 != 0) {
      return Explanation{Code::kInvalidArgument, absl::StrFormat("a period of %d is 2^63 or more", rate),
                         "ask for a smaller period"};
    }
    if (attr.type == sys::kTypeTracepoint) {
      return Explanation{Code::kInvalidArgument, absl::StrFormat("this kernel has no tracepoint %d", attr.config),
                         "name it ('sched:sched_switch'): numbers differ between kernels"};
    }
    return std::nullopt;
  }

  // arch/x86/kernel/hw_breakpoint.c, arch/arm64/kernel/hw_breakpoint.c: arch_build_bp_info, hw_breakpoint_arch_parse.
  std::optional<Explanation> ExplainBreakpoint() const {
    const uint64_t address = refused_.attr.config1, bytes = refused_.attr.config2;
    if (IsBreakpointOfKernel(refused_.attr) && refused_.attr.exclude_kernel != 0) {
      if (IsDenied(refusal_.first_error)) return KernelBreakpoint();
      return Explanation{Code::kInvalidArgument, "a breakpoint in kernel memory cannot count user space only",
                         "leave out the modifier, or watch an address in user space"};
    }
    if (refused_.attr.bp_type == sys::kBreakRead) {
      Variation both = refused_;
      both.attr.bp_type = sys::kBreakRead | sys::kBreakWrite;
      if (Try(both) == 0) {
        return Explanation{Code::kInvalidArgument, "this CPU cannot watch reads alone",
                           "use ':rw', which watches both"};
      }
    }
    const bool executes = refused_.attr.bp_type == sys::kBreakExecute;
    Variation fitting = refused_;
    fitting.attr.config2 = executes ? sizeof(long) : std::has_single_bit(bytes) ? bytes : 1;
    if (fitting.attr.config2 != bytes && Try(fitting) == 0) {
      return Explanation{Code::kInvalidArgument, absl::StrFormat("this CPU cannot watch %d bytes", bytes),
                         executes ? absl::StrFormat("watch execution with length %d", sizeof(long))
                                  : std::string("watch 1, 2, 4 or 8 bytes, at a multiple of the length")};
    }
    fitting.attr.config1 = address & ~(fitting.attr.config2 - 1);
    if (fitting.attr.config1 != address && Try(fitting) == 0) {
      return Explanation{Code::kInvalidArgument,
                         absl::StrFormat("address 0x%x is no multiple of the length %d", address, bytes),
                         absl::StrFormat("watch 0x%x, or a single byte (length 1)", fitting.attr.config1)};
    }
    return std::nullopt;
  }

  // Explains a field of samples that this kernel lacks.
  std::optional<Explanation> ExplainField() const {
    for (const detail::FieldRow& field : detail::kFields) {
      Variation varied = refused_;
      varied.attr.sample_type &= ~field.bits;
      if (varied.attr.sample_type == refused_.attr.sample_type || Try(varied) != 0) continue;
      return Explanation{Code::kUnavailable,
                         absl::StrFormat("this kernel's samples of it cannot have the field '%s'", field.name),
                         "leave the field out, or use a newer kernel"};
    }
    return std::nullopt;
  }

  static Variation WithoutKernel(Variation event) {
    event.attr.exclude_kernel = event.attr.exclude_hv = 1;
    return event;
  }

  const OpenRequest& request_;
  const Refusal& refusal_;
  const sys::Rights& rights_;
  Variation refused_{};
};

}  // namespace

absl::Status Explain(const Refusal& refusal, const sys::Rights& rights) {
  const std::optional<Explanation> found = Investigation(refusal, rights).Explain();
  if (!found) return sys::PerfError(sys::PerfCall::kOpen, refusal.error, refusal.request.asked, rights);
  // The first answer was that a right is missing. The last one may be about the request without the kernel's part.
  const bool is_denial = found->code == Code::kPermissionDenied && IsDenied(refusal.first_error);
  const int said = is_denial ? refusal.first_error : refusal.error;
  return sys::PerfError(sys::PerfCall::kOpen, said, refusal.request.asked, *found, rights);
}

}  // namespace perfkit::open
