// What each thread waits for, without sessions: threads that wait in known ways, and processes that are hidden.
#include "perfkit/blocked_threads.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "src/sys/call_timeout.h"
#include "tests/session/planted_threads.h"
#include "tests/support/as_user.h"
#include "tests/support/skip.h"
#include "tests/support/spinning_thread.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

namespace perfkit::session {
namespace {

const ThreadStatus* LookOf(const std::vector<ThreadStatus>& threads, pid_t tid) {
  const auto found = std::find_if(threads.begin(), threads.end(),
                                  [&](const ThreadStatus& look) { return look.tid == static_cast<uint32_t>(tid); });
  return found != threads.end() ? &*found : nullptr;
}

// Looks until `wanted` holds for the thread: as long as it takes to come there.
template <class Wanted>
ThreadStatus AwaitLook(pid_t tid, Wanted&& wanted) {
  ThreadStatus last;
  for (int turn = 0; turn < 10'000; ++turn) {
    const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads({.names = false});
    REQUIRE(threads.status() == absl::OkStatus());
    const ThreadStatus* const look = LookOf(*threads, tid);
    REQUIRE(look != nullptr);
    last = *look;
    if (wanted(last)) return last;
    std::this_thread::yield();
  }
  return last;
}

TEST_CASE("each thread says what it waits for", "[blocked_threads][law]") {
  PlantedThreads planted;
  for (const PlantedThreads::Planted& thread : planted.planted()) {
    INFO(thread.name);
    while (thread.tid == 0) std::this_thread::yield();
    const ThreadStatus look =
        AwaitLook(thread.tid, [&](const ThreadStatus& now) { return now.blocked && now.wait.starts_with(thread.wait); });
    INFO(look.wait << "; " << look.missing);
    CHECK(look.wait.starts_with(thread.wait));
    CHECK(look.name == thread.name);
    CHECK(look.syscall >= 0);
    CHECK(look.at_ns != 0);
    CHECK_FALSE(look.frames.empty());
    CHECK(look.calls.empty());
    const std::string first = absl::StrFormat("futex 0x%x", reinterpret_cast<uintptr_t>(planted.first()));
    const std::string second = absl::StrFormat("futex 0x%x", reinterpret_cast<uintptr_t>(planted.second()));
    if (thread.name == std::string("locks-first")) CHECK(sys::WithoutTimeout(look.wait) == first);
    if (thread.name == std::string("locks-second")) CHECK(sys::WithoutTimeout(look.wait) == second);
    if (thread.name != std::string("reader")) continue;
    CHECK(look.wait.starts_with(absl::StrFormat("read of descriptor %d (pipe:[", planted.read_end())));
    const std::string text = FormatBlockedThreads(std::span(&look, 1));
    CHECK(text.starts_with(absl::StrFormat("thread %d \"reader\" ", look.tid)));
    CHECK(text.find(look.wait) != std::string::npos);
  }
}

TEST_CASE("a thread that runs is said to run", "[blocked_threads][law]") {
  const testing::SpinningThread spinning;
  const ThreadStatus look = AwaitLook(spinning.tid(), [](const ThreadStatus& now) {
    CHECK((!now.blocked || now.syscall == -1));  // a page fault may block it
    return now.state == 'R' && !now.blocked;
  });
  CHECK(look.state == 'R');
  CHECK_FALSE(look.blocked);
  CHECK(look.frames.empty());
  CHECK(look.missing == "it runs");
  const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads();
  REQUIRE(threads.status() == absl::OkStatus());
  const ThreadStatus* const self = LookOf(*threads, static_cast<pid_t>(syscall(SYS_gettid)));
  REQUIRE(self != nullptr);
  CHECK(self->state == 'R');
  CHECK(self->missing == "it runs, and looks at the others");
}

TEST_CASE("a forked child looks at its own threads", "[blocked_threads][law]") {
  // The child allocates. The allocator of clang 14's AddressSanitizer takes no care of its locks at a fork: a child of
  // a program with threads may wait for ever.
  if (perfkit::testing::kSanitized) SKIP_TEST("a sanitizer's allocator may be locked in the child");
  PlantedThreads planted;
  CHECK(perfkit::testing::AsOrdinaryUser([] {
    prctl(PR_SET_DUMPABLE, 1);
    const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads();
    return threads.ok() && threads->size() == 1 && (*threads)[0].tid == static_cast<uint32_t>(getpid());
  }));
}

TEST_CASE("a process that is not dumpable has states, and says why there is no more", "[blocked_threads][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("a child of ThreadSanitizer's cannot start threads");
  CHECK(perfkit::testing::AsOrdinaryUser([] {
    prctl(PR_SET_DUMPABLE, 0);
    const PlantedThreads planted;
    while (planted.planted()[1].tid == 0) std::this_thread::yield();
    const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads();
    if (!threads.ok()) return threads.status().message().find("Remedy") != std::string_view::npos;
    const ThreadStatus* const look = LookOf(*threads, planted.planted()[1].tid);
    return look != nullptr && !look->blocked && look->frames.empty() &&
           look->missing.find("PR_SET_DUMPABLE") != std::string::npos;
  }));
}

TEST_CASE("without /proc there is an error that says so", "[blocked_threads]") {
  constexpr int kNotPermitted = 42;
  const pid_t child = fork();
  if (child == 0) {
    const bool hidden = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                        mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
    if (!hidden) _exit(kNotPermitted);
    const absl::Status status = BlockedThreads().status();
    _exit(absl::IsNotFound(status) && status.message().find("mount /proc") != std::string_view::npos ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPermitted) SKIP_TEST("/proc can be hidden by root only");
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("without a descriptor the remedy is a descriptor", "[blocked_threads]") {
  CHECK(testing::InChild([] {
          const rlimit none = {0, 0};
          setrlimit(RLIMIT_NOFILE, &none);
          const absl::Status status = BlockedThreads().status();
          return absl::IsResourceExhausted(status) && status.message().find("ulimit -n") != std::string_view::npos;
        }) == 0);
}

}  // namespace
}  // namespace perfkit::session
