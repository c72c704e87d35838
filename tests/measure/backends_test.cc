// The backends that count system calls, allocations and calls of a function, each where it is permitted, by name.
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "perfkit/measure.h"
#include "src/measure/take.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using event::kAllocations;
using event::kSyscalls;

// The cost when it was read by what `path` names; what is wrong with it otherwise.
std::string Wrong(const Cost& cost, int64_t value, const std::string& path) {
  if (!cost.measured()) return "";
  if (cost.read_path.find(path) == std::string::npos) return "read by " + cost.read_path;
  for (const int64_t one : cost.values) {
    if (one != value) return cost.ToString();
  }
  return "";
}

Cost Only(MeasureBackend backend, const EventType& event, void (*region)()) {
  return Measure({event}, region, {.only = backend}).costs[0];
}

void SevenCalls() {
  for (int i = 0; i < 7; ++i) ::syscall(SYS_getppid);
}

void* (*volatile g_malloc)(size_t) = ::malloc;
void ThirtyMallocs() {
  for (int i = 0; i < 30; ++i) ::free(g_malloc(32));
}

void* (*volatile g_aligned_alloc)(size_t, size_t) = ::aligned_alloc;
void TenAlignedAllocs() {
  for (int i = 0; i < 10; ++i) ::free(g_aligned_alloc(64, 128));
}

[[gnu::noinline]] void Target() { asm volatile(""); }
void (*volatile g_target)() = Target;
void NineTargets() {
  for (int i = 0; i < 9; ++i) g_target();
}

// As the exit code of a child with a tracefs of its own: the machine's mounts stay as they are.
enum Seen : int { kRight = 0, kWrong = 1, kMayNot = 77 };
Seen CountBySyscallTracepoint() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kMayNot;
  if (::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) != 0 && errno != EBUSY) return kMayNot;
  const Cost cost = Only(MeasureBackend::kCounter, kSyscalls, SevenCalls);
  if (!cost.measured()) return kMayNot;
  return Wrong(cost, 7, "tracepoint").empty() ? kRight : kWrong;
}

TEST_CASE("system calls are counted by a tracepoint where tracefs is mounted", "[backends][live]") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(CountBySyscallTracepoint());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kMayNot) SKIP_TEST("a tracefs of one's own needs root");
  CHECK(WEXITSTATUS(status) == kRight);
}

TEST_CASE("allocations are counted by uprobes where they are permitted", "[backends][live]") {
  if (testing::kSanitized) SKIP_TEST("malloc is the sanitizer's, not libc's");
  const Cost cost = Only(MeasureBackend::kCounter, kAllocations, ThirtyMallocs);
  if (!cost.measured()) SKIP_TEST(cost.unmeasurable);
  CHECK(Wrong(cost, 30, "uprobes") == "");
}

#if defined(__GLIBC__)  // Its memalign and aligned_alloc are one; musl's aligned_alloc calls malloc.
TEST_CASE("an allocation by a function of two names counts once", "[backends][live]") {
  if (testing::kSanitized) SKIP_TEST("aligned_alloc is the sanitizer's, not libc's");
  for (const MeasureBackend backend : {MeasureBackend::kCounter, MeasureBackend::kStepper}) {
    const Cost cost = Only(backend, kAllocations, TenAlignedAllocs);
    CAPTURE(cost.ToString());
    if (cost.measured()) CHECK(cost.value() == 10);
  }
}
#endif

TEST_CASE("the file of code is a path that leads to it, whatever the program calls itself", "[backends]") {
  CHECK(measure::FileOfCode(reinterpret_cast<const void*>(&Target)) == "/proc/self/exe");
  const std::string libc = measure::FileOfCode(::dlsym(RTLD_DEFAULT, "getppid"));
  CHECK(::access(libc.c_str(), R_OK) == 0);
  CHECK(libc != "/proc/self/exe");
  CHECK(measure::FileOfCode(nullptr) == "");
}

TEST_CASE("calls of a function are counted by a breakpoint", "[backends][live]") {
  const Cost cost = Only(MeasureBackend::kCounter, Calls(Target), NineTargets);
  if (!cost.measured()) SKIP_TEST(cost.unmeasurable);
  CHECK(Wrong(cost, 9, "breakpoint") == "");
}

#if defined(__x86_64__)
TEST_CASE("the stepper counts all three", "[backends]") {
  const Cost calls = Only(MeasureBackend::kStepper, kSyscalls, SevenCalls);
  if (!calls.measured()) SKIP_TEST(calls.unmeasurable);
  CHECK(Wrong(calls, 7, "stepper") == "");
  CHECK(Only(MeasureBackend::kStepper, Calls(Target), NineTargets).value() == 9);
  if (!testing::kSanitized) CHECK(Only(MeasureBackend::kStepper, kAllocations, ThirtyMallocs).value() == 30);
}
#endif

}  // namespace
}  // namespace perfkit
