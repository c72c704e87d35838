// The table of remedies: a cause made on purpose, the text that it gives, and the remedy of that text, applied.
#include "src/open/explain.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/record.h"
#include "src/event/attr.h"
#include "src/proc/threads.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/seccomp_filter.h"
#include "tests/support/skip.h"

namespace perfkit::open {
namespace {

using Code = absl::StatusCode;
using Change = void (*)(OpenRequest& request);

constexpr uint32_t kTooFast = 2'000'000'000;  // Hz
constexpr unsigned kCapPerfmon = 38;          // CAP_PERFMON, of Linux 5.8
alignas(8) char g_word[16];

// Who runs into the cause, and who applies the remedy.
enum class User { kAny, kOrdinary, kRoot };

struct Row {
  const char* name;
  const char* event;  // "": a breakpoint of g_word
  User user;
  Change cause;
  Code code;
  const char* text;    // of the cause
  const char* remedy;  // of the remedy
  Change apply;        // nullptr: the remedy is the capability that it names
};

void Nothing(OpenRequest&) {}
void Clock(OpenRequest& request) { request.attr.use_clockid = 1; }
void WholeCpu(OpenRequest& request) {
  request.pid = -1;
  request.cpu = 0;
}

void Sample(OpenRequest& request, uint64_t fields) {
  request.attr.sample_period_or_freq = 1'000'000;
  request.attr.sample_type = fields;
}

const Row kRows[] = {
    {"frequency", "cpu-clock:u", User::kAny,
     [](OpenRequest& request) { request.attr.freq = 1, request.attr.sample_period_or_freq = kTooFast; },
     Code::kInvalidArgument, "2000000000 samples a second", "at most Frequency{",
     [](OpenRequest& request) { request.attr.sample_period_or_freq = 1; }},
    {"period", "cpu-clock:u", User::kAny,
     [](OpenRequest& request) { request.attr.sample_period_or_freq = uint64_t{1} << 63; }, Code::kInvalidArgument,
     "2^63 or more", "smaller period", [](OpenRequest& request) { request.attr.sample_period_or_freq = 1'000'000; }},
    {"clock", "cpu-clock:u", User::kAny, [](OpenRequest& request) { Clock(request), request.attr.clockid = 3; },
     Code::kInvalidArgument, "cannot carry that clock", "CLOCK_MONOTONIC",
     [](OpenRequest& request) { request.attr.clockid = CLOCK_MONOTONIC; }},
    {"breakpoint of 3 bytes", "", User::kAny, [](OpenRequest& request) { request.attr.config2 = 3; },
     Code::kInvalidArgument, "cannot watch 3 bytes", "1, 2, 4 or 8 bytes",
     [](OpenRequest& request) { request.attr.config2 = 4; }},
    {"breakpoint at an odd address", "", User::kAny, [](OpenRequest& request) { request.attr.config1 += 1; },
     Code::kInvalidArgument, "no multiple of the length 4", "a single byte",
     [](OpenRequest& request) { request.attr.config2 = 1; }},
    {"breakpoint on reads", "", User::kAny, [](OpenRequest& request) { request.attr.bp_type = sys::kBreakRead; },
     Code::kInvalidArgument, "reads alone", ":rw",
     [](OpenRequest& request) { request.attr.bp_type = sys::kBreakRead | sys::kBreakWrite; }},
    {"breakpoint on execution", "", User::kAny, [](OpenRequest& request) { request.attr.bp_type = sys::kBreakExecute; },
     Code::kInvalidArgument, "cannot watch 4 bytes", "length 8",
     [](OpenRequest& request) { request.attr.config2 = 8; }},
    {"a unit without modifiers", "msr/tsc/:u", User::kRoot, Nothing, Code::kInvalidArgument,
     "user space and the kernel together", "leave out the modifiers",
     [](OpenRequest& request) {
       request.attr.exclude_kernel = request.attr.exclude_hv = 0, request.attr.exclude_guest = 0;
     }},
    {"a unit without modifiers, as a user", "msr/tsc/", User::kOrdinary, Nothing, Code::kPermissionDenied,
     "user space and the kernel together, and this process may not", "paranoid=1, or grant CAP_PERFMON", nullptr},
    {"a unit that cannot sample", "msr/tsc/", User::kRoot, [](OpenRequest& request) { Sample(request, kSampleIp); },
     Code::kUnavailable, "cannot sample", "count it",
     [](OpenRequest& request) { request.attr.sample_period_or_freq = 0; }},
    {"a probe", "uprobe:libc.so.6:malloc", User::kOrdinary, Nothing, Code::kPermissionDenied,
     "uprobes are for privileged processes only", "grant CAP_SYS_ADMIN, or run as root", nullptr},
    {"a whole CPU", "cpu-clock:u", User::kOrdinary, WholeCpu, Code::kPermissionDenied, "may not watch whole CPUs",
     "paranoid=0, or grant CAP_PERFMON", nullptr},
    {"another user's task", "task-clock:u", User::kOrdinary, [](OpenRequest& request) { request.pid = 1; },
     Code::kPermissionDenied, "task 1 belongs to another user", "run as that task's user", nullptr},
    {"an event of the kernel", "context-switches", User::kOrdinary, Nothing, Code::kPermissionDenied,
     "raises it in its own code", "paranoid=1, or grant CAP_PERFMON", nullptr},
    {"the kernel alone", "task-clock:k", User::kOrdinary, Nothing, Code::kPermissionDenied, "may not watch the kernel",
     "paranoid=1, or grant CAP_PERFMON", nullptr},
    {"the kernel too", "page-faults:uk", User::kOrdinary, Nothing, Code::kPermissionDenied, "may not watch the kernel",
     "user space only (modifier ':u')",
     [](OpenRequest& request) { request.attr.exclude_kernel = request.attr.exclude_hv = 1; }},
    {"physical addresses", "page-faults:u", User::kOrdinary,
     [](OpenRequest& request) { Sample(request, kSamplePhysAddr); }, Code::kPermissionDenied, "physical addresses",
     "CAP_PERFMON", nullptr},
    {"registers at the interrupt", "cpu-clock:u", User::kOrdinary,
     [](OpenRequest& request) { Sample(request, kSampleRegsIntr), request.attr.sample_regs_intr = 1; },
     Code::kPermissionDenied, "registers at the interrupt", "CAP_PERFMON", nullptr},
    {"the kernel's callers", "cpu-clock:u", User::kOrdinary,
     [](OpenRequest& request) { Sample(request, kSampleCallchain); }, Code::kPermissionDenied,
     "may not see the kernel's part of the stack", "CAP_PERFMON", nullptr},
    {"records of namespaces", "dummy:u", User::kOrdinary, [](OpenRequest& request) { request.attr.namespaces = 1; },
     Code::kPermissionDenied, "records of namespaces", "CAP_PERFMON", nullptr},
    {"a stack too deep", "cpu-clock:u", User::kAny,
     [](OpenRequest& request) {
       Sample(request, kSampleCallchain);
       request.attr.exclude_callchain_kernel = 1;
       request.attr.sample_max_stack = 65535;
     },
     Code::kInvalidArgument, "exceeds kernel.perf_event_max_stack", "fewer frames",
     [](OpenRequest& request) { request.attr.sample_max_stack = 8; }},
    {"a field that no kernel knows", "cpu-clock:u", User::kAny,
     [](OpenRequest& request) { Sample(request, kSampleBranchStack), request.attr.branch_sample_type = 9; },
     Code::kUnavailable, "no such branch stacks", "leave out branch stacks",
     [](OpenRequest& request) { request.attr.sample_type = kSampleIp, request.attr.branch_sample_type = 0; }},
    {"a software event that is not there", "dummy:u", User::kAny,
     [](OpenRequest& request) { request.attr.config = 4711; }, Code::kUnavailable, "no such software event",
     "another event", [](OpenRequest& request) { request.attr.config = sys::kSwDummy; }},
    {"a tracepoint that is not there", "dummy:u", User::kAny,
     [](OpenRequest& request) { request.attr.type = sys::kTypeTracepoint, request.attr.config = 65535; },
     Code::kInvalidArgument, "no tracepoint 65535", "name it",
     [](OpenRequest& request) { request.attr.type = sys::kTypeSoftware, request.attr.config = sys::kSwDummy; }},
    {"a PMU that is not there", "dummy:u", User::kAny, [](OpenRequest& request) { request.attr.type = 4711; },
     Code::kUnavailable, "has the type 4711", "another event",
     [](OpenRequest& request) { request.attr.type = sys::kTypeSoftware; }},
};

absl::StatusOr<EventConfig> EventOf(const Row& row) {
  if (*row.event != '\0') return ParseEvent(row.event);
  if (testing::RawCountOfWrites() == 0) return absl::UnavailableError("this machine counts no breakpoints");
  return ParseEvent(absl::StrFormat("mem:%p/4:w:u", g_word));
}

absl::Status Open(const OpenRequest& request) { return OpenEvent(request, sys::ReadRights()).status(); }

bool Has(const absl::Status& status, const char* part) { return status.message().find(part) != std::string::npos; }

// Provokes the cause of `row`, with the rights of this process. Returns whether all is well, or the machine has no such
// cause (other CPUs watch reads alone; root may do anything); prints what is not.
bool Holds(const Row& row, bool& met) {
  const absl::StatusOr<EventConfig> event = EventOf(row);
  if (!event.ok()) return true;
  OpenRequest request = RequestFor(*event, 0);
  request.asked = row.name;
  row.cause(request);
  const absl::Status status = Open(request);
  met = !status.ok();
  if (status.ok()) return true;
  const std::string cause = sys::CauseOf(status), remedy = sys::RemedyOf(status);
  const bool told = status.code() == row.code && cause.find(row.text) != std::string::npos &&
                    remedy.find(row.remedy) != std::string::npos;
  if (!told) printf("%s: %s\n", row.name, std::string(status.message()).c_str());
  if (row.apply == nullptr) return told;
  row.apply(request);
  const absl::Status applied = Open(request);
  if (!applied.ok()) printf("%s: the remedy was in vain: %s\n", row.name, std::string(applied.message()).c_str());
  return told && applied.ok();
}

// Applies the remedy of a row without `apply`: to grant the capability that is named, and no other.
bool IsRemediedByRight(const Row& row, const EventConfig& event) {
  const bool admin = std::string_view(row.remedy).find("CAP_SYS_ADMIN") != std::string_view::npos;
  return testing::AsUserWith(admin ? CAP_SYS_ADMIN : kCapPerfmon, [&] {
    OpenRequest request = RequestFor(event, 0);
    row.cause(request);
    const absl::Status status = Open(request);
    if (!status.ok()) printf("%s: the right was in vain: %s\n", row.name, std::string(status.message()).c_str());
    return status.ok();
  });
}

TEST_CASE("each cause is named, and the remedy that is named works", "[explain]") {
  const bool root = geteuid() == 0;
  if (!Open(RequestFor(*ParseEvent("dummy:u"), 0)).ok()) SKIP_TEST("perf events are closed to this process");
  int met_rows = 0;
  for (const Row& row : kRows) {
    INFO(row.name);
    if (row.user == User::kRoot && !root) continue;
    bool met = false;
    if (row.user != User::kOrdinary) {
      CHECK(Holds(row, met));
    } else {
      CHECK(testing::AsOrdinaryUser([&] { return Holds(row, met); }));
      const absl::StatusOr<EventConfig> event = EventOf(row);
      if (!root || row.apply != nullptr || !event.ok() || !sys::ReadRights().perfmon) continue;
      CHECK(IsRemediedByRight(row, *event));
    }
    met_rows += met;
  }
  CHECK(met_rows >= 5);  // frequency, period, clock, and what is not there: on any machine
}

// The kernel of CVE-2025-38466's mend: the type of the PMU is refused to all but the administrator.
absl::Status RefusedProbe(const char* pmu, pid_t pid, const sys::Rights& rights) {
  constexpr uint32_t kProbeType = 8;
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t, int, int, unsigned long) {
    if (attr->type != kProbeType) return sys::kLinux.open("/dev/null", 0);
    errno = EACCES;
    return -1;
  };
  OpenRequest request;
  request.attr.type = kProbeType;
  request.pid = pid;
  request.pmu = pmu;
  request.asked = "a probe";
  return OpenEvent(request, rights).status();
}

TEST_CASE("a uprobe takes CAP_SYS_ADMIN, and CAP_PERFMON is not advised", "[explain]") {
  for (const pid_t pid : {0, -1, 1}) {
    const absl::Status without = RefusedProbe("uprobe", pid, {.paranoid = 2, .euid = 1000});
    CHECK(absl::IsPermissionDenied(without));
    CHECK(Has(without, "uprobes are for privileged processes only"));
    CHECK(Has(without, "Remedy: grant CAP_SYS_ADMIN, or run as root (kernels since July 2025"));
    const absl::Status perfmon = RefusedProbe("uprobe", pid, {.paranoid = 2, .euid = 1000, .perfmon = true});
    CHECK(absl::IsPermissionDenied(perfmon));
    CHECK(Has(perfmon, "this kernel permits uprobes with CAP_SYS_ADMIN only"));
    CHECK(Has(perfmon, "Remedy: grant CAP_SYS_ADMIN, or run as root"));
  }
  const sys::Rights admin{.paranoid = 2, .euid = 0, .perfmon = true, .perfmon_elsewhere = false, .sys_admin = true};
  CHECK(Has(RefusedProbe("uprobe", 0, admin), "a security module or a seccomp filter"));
  CHECK(Has(RefusedProbe("kprobe", 0, {.paranoid = 2, .euid = 1000}), "Remedy: grant CAP_PERFMON"));
}

TEST_CASE("a task of this user that may not be traced is told from another user's", "[explain]") {
  CHECK(testing::AsOrdinaryUser([] {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_DUMPABLE, 0);
      (void)!write(ends[1], "x", 1);
      for (;;) pause();
    }
    char ready;
    bool told = child > 0 && read(ends[0], &ready, 1) == 1;
    OpenRequest request = RequestFor(*ParseEvent("task-clock:u"), 0);
    request.pid = child;
    const absl::Status status = Open(request);
    told = told && Has(status, absl::StrFormat("task %d is this user's, but may not be traced", child).c_str()) &&
           Has(status, "Remedy: let it be dumpable (man 2 prctl), or grant CAP_PERFMON");
    // A process that perf is closed to, or that has the right, can't tell.
    told = told || status.ok() || !Open(RequestFor(*ParseEvent("dummy:u"), 0)).ok();
    if (!told) printf("%s\n", std::string(status.message()).c_str());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return told;
  }));
}

// What holds in one process only: a filter, a limit. Run in a child.
bool Closed(const char* cause, const char* remedy, const std::function<bool()>& close,
            const std::function<void()>& reopen) {
  return testing::AsOrdinaryUser([&] {
    const absl::StatusOr<EventConfig> event = ParseEvent("task-clock:u");
    const OpenRequest request = RequestFor(*event, 0);
    if (!Open(request).ok() || !close()) return true;
    const absl::Status status = Open(request);
    if (reopen) reopen();
    const bool told = Has(status, cause) && Has(status, remedy);
    if (!told) printf("%s\n", std::string(status.message()).c_str());
    return told && (!reopen || Open(request).ok());
  });
}

// As in a container.
bool InstallFilter() { return testing::RefuseCall(SYS_perf_event_open, EPERM); }

TEST_CASE("a seccomp filter is told from a right that is missing", "[explain]") {
  CHECK(Closed("seccomp filter", "seccomp profile", InstallFilter, nullptr));
}

// In a pid namespace of its own, whose /proc is still that of the namespace around it.
bool OtherIdsAreTold() {
  const absl::StatusOr<std::vector<pid_t>> tids = proc::ListThreads(0);
  OpenRequest request = RequestFor(*ParseEvent("dummy:u"), 0);
  if (!tids.ok() || !Open(request).ok()) return true;
  request.pid = tids->front();
  const absl::Status status = Open(request);
  const bool told = absl::IsNotFound(status) && Has(status, "/proc shows the ids of another") &&
                    Has(status, "mount /proc anew in this pid namespace");
  if (!told) printf("%s\n", std::string(status.message()).c_str());
  return told;
}

TEST_CASE("thread ids of another pid namespace are told from threads that have ended", "[explain]") {
  constexpr int kMayNot = 77;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kMayNot);
    _exit(testing::AsOrdinaryUser(OtherIdsAreTold) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNot) SKIP_TEST("pid namespaces are not permitted here");
  CHECK(status == 0);
  OpenRequest request = RequestFor(*ParseEvent("dummy:u"), 0);
  request.pid = child;  // It has ended.
  CHECK_FALSE(Has(Open(request), "/proc"));
}

TEST_CASE("descriptors that are used up are told as that", "[explain]") {
  const auto limit = [](rlim_t most) {
    rlimit all{};
    getrlimit(RLIMIT_NOFILE, &all);
    all.rlim_cur = most;
    return setrlimit(RLIMIT_NOFILE, &all) == 0;
  };
  CHECK(Closed(
      "no descriptor left (RLIMIT_NOFILE)", "ulimit -n", [&] { return limit(0); }, [&] { limit(256); }));
}

TEST_CASE("one breakpoint more than the CPU has is told as that", "[explain]") {
  const absl::StatusOr<EventConfig> event = ParseEvent(absl::StrFormat("mem:%p/4:w:u", g_word));
  REQUIRE(event.ok());
  const OpenRequest request = RequestFor(*event, 0);
  std::vector<OpenedEvent> held;
  while (held.size() < 64) {
    absl::StatusOr<OpenedEvent> opened = OpenEvent(request, sys::ReadRights());
    if (!opened.ok()) break;
    held.push_back(*std::move(opened));
  }
  if (held.empty() || held.size() == 64) SKIP_TEST("this machine does not run out of breakpoints");
  const absl::Status status = Open(request);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(Has(status, "breakpoints or counters are taken"));
  CHECK(Has(status, "count fewer at once"));
  held.pop_back();
  CHECK(Open(request).ok());
}

TEST_CASE("a pinned event that is not its group's first is told so", "[explain]") {
  for (const char* const name : {"page-faults:D", "page-faults:e"}) {
    const absl::StatusOr<EventConfig> event = ParseEvent(name), leading = ParseEvent("page-faults:u");
    REQUIRE((event.ok() && leading.ok()));
    const absl::StatusOr<OpenedEvent> leader = OpenEvent(RequestFor(*leading, 0), sys::ReadRights());
    REQUIRE(leader.ok());
    OpenRequest member = RequestFor(*event, 0);
    member.group_fd = leader->fd.get();
    const absl::Status status = Open(member);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(Has(status, "only the first event of a group can be pinned or exclusive"));
    CHECK(Has(status, "Remedy: write it first, or in a group of its own"));
  }
}

TEST_CASE("an event that its group alone refuses is told so", "[explain]") {
  const absl::StatusOr<EventConfig> event = ParseEvent("task-clock:u");
  REQUIRE(event.ok());
  OpenRequest leader = RequestFor(*event, 0), member = leader;
  Clock(leader);
  leader.attr.clockid = CLOCK_MONOTONIC;
  const absl::StatusOr<OpenedEvent> opened = OpenEvent(leader, sys::ReadRights());
  if (!opened.ok()) SKIP_TEST(std::string(opened.status().message()));
  member.group_fd = opened->fd.get();  // its records would have another clock than its leader's
  const absl::Status status = Open(member);
  CHECK(Has(status, "opens alone, but not in its group"));
  CHECK(Has(status, "count it outside the group"));
  member.group_fd = -1;
  CHECK(Open(member).ok());
}

}  // namespace
}  // namespace perfkit::open
