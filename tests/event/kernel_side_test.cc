// The table's claims about the kernel, put to the kernel: what it raises in its own code counts 0 under exclude_kernel.
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "perfkit/event.h"
#include "src/event/attr.h"
#include "src/sys/fd.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// What `event` counts on this thread while `work` runs; nothing when it may not be opened here.
template <class Work>
std::optional<uint64_t> Count(const EventConfig& event, Work&& work) {
  const sys::PerfEventAttr attr = event::ToAttr(event, event.parts[0]);
  const sys::OwnedFd fd(sys::kernel().perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec));
  if (!fd) return std::nullopt;
  uint64_t before = 0, after = 0;
  const bool read_before = ::read(fd.get(), &before, sizeof(before)) == sizeof(before);
  work();
  const bool read_after = ::read(fd.get(), &after, sizeof(after)) == sizeof(after);
  return read_before && read_after ? std::optional(after - before) : std::nullopt;
}

void SwitchTenTimes() { testing::SwitchAway(10); }

// The program itself takes these faults: with and without exclude_kernel they count.
void TouchTenPages() {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const at = ::mmap(nullptr, 10 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t i = 0; i < 10; ++i) static_cast<volatile char*>(at)[i * page] = 1;
  ::munmap(at, 10 * page);
}

TEST_CASE("context switches under exclude_kernel count 0, page faults do not", "[kernel_side][live][law]") {
  const std::optional<uint64_t> faults = Count(*ParseEvent("page-faults:u"), TouchTenPages);
  if (!faults) SKIP_TEST("this process may not open perf events");
  CHECK(*faults >= 10);
  CHECK(Count(*ParseEvent("context-switches:u"), SwitchTenTimes) == 0u);
  const std::optional<uint64_t> all = Count(*ParseEvent("context-switches"), SwitchTenTimes);
  if (!all) SKIP_TEST("this process may not count what the kernel does");
  CHECK(*all >= 10);
}

// What a child process with a tracefs of its own found, as its exit code.
enum Found : int { kAsClaimed = 0, kMayNot = 77, kNoEvent = 1, kSwitchesCounted = 2, kSyscallsMissed = 3, kSilent = 4 };

// Runs in a private mount namespace: the machine's mounts stay as they are.
Found ProbeTracepoints() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kMayNot;
  if (::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) != 0 && errno != EBUSY) return kMayNot;
  const auto switching = [] { SwitchTenTimes(); };
  const auto calls = [] {
    for (int i = 0; i < 10; ++i) ::syscall(SYS_getppid);
  };
  const auto user_switches = ParseEvent("sched:sched_switch:u"), switches = ParseEvent("sched:sched_switch");
  const auto user_raw = ParseEvent("raw_syscalls:sys_enter:u"), user_calls = ParseEvent("syscalls:sys_enter_getppid:u");
  if (!user_switches.ok() || !switches.ok() || !user_raw.ok() || !user_calls.ok()) return kNoEvent;
  if (!switches->kernel_side || !user_raw->kernel_side || user_calls->kernel_side) return kNoEvent;
  const std::optional<uint64_t> all = Count(*switches, switching);
  if (!all) return kMayNot;
  if (*all < 10) return kSilent;
  if (Count(*user_switches, switching) != 0u || Count(*user_raw, calls) != 0u) return kSwitchesCounted;
  return Count(*user_calls, calls) == 10u ? kAsClaimed : kSyscallsMissed;
}

TEST_CASE("tracepoints under exclude_kernel count 0, but for those of single system calls",
          "[kernel_side][live][law]") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ProbeTracepoints());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kMayNot) SKIP_TEST("a tracefs of one's own needs root");
  CHECK(WEXITSTATUS(status) == kAsClaimed);
}

}  // namespace
}  // namespace perfkit
