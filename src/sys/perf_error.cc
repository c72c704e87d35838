// The table of perf errors: call, errno -> code, cause, remedy.
#include "src/sys/perf_error.h"

#include <errno.h>
#include <string.h>

#include <string>

#include "absl/strings/str_format.h"
#include "src/base/number.h"

namespace perfkit::sys {
namespace {

// The separators in a message, by which CauseOf takes it apart again.
constexpr std::string_view kSaid = " (errno ";
constexpr std::string_view kHere = "; here: ";
constexpr std::string_view kRemedy = ". Remedy: ";

using Code = absl::StatusCode;

struct Row {
  PerfCall call;
  int error;
  Code code;
  const char* cause;
  const char* remedy;
};

// Sources: man perf_event_open(2), ERRORS; kernel/events/core.c.
constexpr Row kRows[] = {
    {PerfCall::kOpen, EACCES, Code::kPermissionDenied, "the kernel forbids it to this process",
     "if the rights above permit it, a security module or a seccomp filter refuses it: ask its administrator"},
    {PerfCall::kOpen, EPERM, Code::kPermissionDenied,
     "the kernel, or a container's seccomp filter, forbids it to this process",
     "if the rights above permit it, allow perf_event_open in the container's seccomp profile"},
    {PerfCall::kOpen, ENOSYS, Code::kUnavailable, "this kernel or sandbox has no perf_event_open",
     "allow perf_event_open in the seccomp profile of the container or sandbox; gVisor, qemu-user and kernels without "
     "CONFIG_PERF_EVENTS do not have it at all: run outside of them"},
    {PerfCall::kOpen, ENOENT, Code::kUnavailable, "no PMU of this machine has that event",
     "virtual machines often have no PMU: enable it in the hypervisor, or count software events"},
    {PerfCall::kOpen, ENODEV, Code::kUnavailable, "that CPU or that PMU does not exist or is offline",
     "check the CPU number, and that the CPU is online"},
    {PerfCall::kOpen, EOPNOTSUPP, Code::kUnavailable, "this PMU cannot do what was asked",
     "leave out the modifier (most often ':p'), or choose another event"},
    {PerfCall::kOpen, EINVAL, Code::kInvalidArgument, "the kernel refuses this combination",
     "ask for less: this kernel does not know an option of it, or cannot combine two of them"},
    {PerfCall::kOpen, E2BIG, Code::kUnavailable, "this kernel is older than an option of the event",
     "ask for less, or use a newer kernel"},
    {PerfCall::kOpen, ENOSPC, Code::kResourceExhausted, "all hardware breakpoints or counters are taken",
     "count fewer at once (x86 has 4 breakpoints a thread), or stop the debugger or profiler that holds the others"},
    {PerfCall::kOpen, EBUSY, Code::kResourceExhausted, "another user holds the PMU exclusively",
     "stop the other profiler"},
    {PerfCall::kOpen, EMFILE, Code::kResourceExhausted, "this process has no descriptor left (RLIMIT_NOFILE)",
     "raise `ulimit -n`, or watch fewer events on fewer threads"},
    {PerfCall::kOpen, ENFILE, Code::kResourceExhausted, "the machine has no descriptor left", "raise fs.file-max"},
    {PerfCall::kOpen, ENOMEM, Code::kResourceExhausted, "the kernel has no memory for it", "watch fewer events"},
    {PerfCall::kOpen, ESRCH, Code::kNotFound, "that thread or process does not exist any more",
     "check the id; a thread that has ended cannot be watched"},
    {PerfCall::kOpen, EINTR, Code::kUnavailable, "a signal interrupted each attempt", "try again"},
    {PerfCall::kOpen, EBADF, Code::kInternal, "the group's leader is gone",
     "this is perfkit's fault: please report it"},
    {PerfCall::kOpen, EOVERFLOW, Code::kInvalidArgument, "the stack depth exceeds kernel.perf_event_max_stack",
     "ask for fewer frames, or raise kernel.perf_event_max_stack"},
    {PerfCall::kMapRing, EPERM, Code::kResourceExhausted, "the memory that this user may lock is used up",
     "raise kernel.perf_event_mlock_kb or `ulimit -l`, or map fewer or smaller rings"},
    {PerfCall::kMapRing, ENOMEM, Code::kResourceExhausted, "there is no memory, or no room in the address space",
     "map fewer or smaller rings"},
    {PerfCall::kMapRing, EINVAL, Code::kInvalidArgument, "the kernel refuses to map this event",
     "use Target::WithoutInherit: inherited events of a single thread have no ring"},
    {PerfCall::kRead, ECHILD, Code::kFailedPrecondition, "the group grew after a thread had inherited it",
     "open all events of a group before threads start"},
};

const char* Verb(PerfCall call) {
  switch (call) {
    case PerfCall::kOpen: return "perf_event_open";
    case PerfCall::kMapRing: return "mmap of the event";
    case PerfCall::kIoctl: return "ioctl on the event";
    case PerfCall::kRead: return "read of the event";
  }
  return "perf";
}

// Returns "; here: perf_event_paranoid is 2, uid 1000, no CAP_PERFMON" for errors that rights explain.
std::string Here(Code code, const Rights& rights) {
  if (code != Code::kPermissionDenied) return "";
  return std::string(kHere) + DescribeRights(rights);
}

std::string Said(PerfCall call, int error, std::string_view asked) {
  return absl::StrFormat("%s: %s said \"%s\"%s%d)", asked, Verb(call), strerror(error), kSaid, error);
}

std::string_view TextOf(const absl::Status& status) {
  const absl::string_view text = status.message();
  return {text.data(), text.size()};
}

}  // namespace

absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Rights& rights) {
  const std::optional<Explanation> usual = UsualExplanation(call, error);
  if (!usual) return absl::Status(absl::StatusCode::kInternal, Said(call, error, asked));
  return PerfError(call, error, asked, *usual, rights);
}

std::optional<Explanation> UsualExplanation(PerfCall call, int error) {
  for (const Row& row : kRows) {
    if (row.call == call && row.error == error) return Explanation{row.code, row.cause, row.remedy};
  }
  return std::nullopt;
}

absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Explanation& explanation,
                       const Rights& rights) {
  const bool is_denied = explanation.code == Code::kPermissionDenied;
  return absl::Status(explanation.code, absl::StrFormat("%s: %s%s%s%s%s.", Said(call, error, asked), explanation.cause,
                                                        Here(explanation.code, rights), kRemedy, explanation.remedy,
                                                        is_denied ? WhereRightsCount(explanation.remedy, rights) : ""));
}

int ErrnoOf(const absl::Status& status) {
  const std::string_view text = TextOf(status);
  const size_t said = text.find(kSaid);
  if (said == std::string_view::npos) return 0;
  const std::string_view number = text.substr(said + kSaid.size());
  return base::ParseNumber<int>(number.substr(0, number.find(')'))).value_or(0);
}

std::string RemedyOf(const absl::Status& status) {
  const std::string_view text = TextOf(status);
  const size_t at = text.find(kRemedy);
  return at == std::string_view::npos ? "" : std::string(text.substr(at + kRemedy.size()));
}

// Takes away the remedy, the rights and what was asked. What is left begins after the errno's colon; a message that
// perfkit composed without an errno has its cause after the first colon.
std::string CauseOf(const absl::Status& status) {
  std::string_view text = TextOf(status);
  text = text.substr(0, text.find(kRemedy));
  text = text.substr(0, text.find(kHere));
  const size_t said = text.find(kSaid);
  const size_t joint = text.find(": ", said == std::string_view::npos ? 0 : said);
  return std::string(joint == std::string_view::npos ? text : text.substr(joint + 2));
}

}  // namespace perfkit::sys
