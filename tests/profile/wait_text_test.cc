// What a thread waited for, in words.
#include "src/profile/wait_text.h"

#include <catch2/catch.hpp>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {
namespace {

TEST_CASE("a wait is named by what is known of it", "[profile][wait_text]") {
  ProfileBuilder builder;
  const uint32_t detail = builder.String("/tmp/log");
  const uint32_t waker = builder.String("worker (12)");
  const Profile profile = builder.Take();
  CHECK(WaitText(profile, {.preempted = true, .detail = detail}) == "preempted");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 1, .detail = detail}) == "/tmp/log");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 202}) == "syscall 202");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 1, .detail = detail, .waker = waker}) ==
        "/tmp/log, woken by worker (12)");
  CHECK(WaitText(profile, {.waker = waker}) == "woken by worker (12)");
  CHECK(WaitText(profile, {}).empty());
}

TEST_CASE("the holder of a lock is named with its innermost function of the program", "[profile][wait_text][law]") {
  ProfileBuilder builder;
  const uint32_t start = builder.Stack(ProfileStack::kRoot, builder.Function("start_thread", "/lib/libc.so.6"));
  const uint32_t load = builder.Stack(start, builder.Function("Load", "/bin/app"));
  const uint32_t template_call = builder.Function("void std::this_thread::sleep_for<long>(int)", "/bin/app");
  const uint32_t sleep = builder.Stack(load, template_call);
  const uint32_t in_kernel = builder.Stack(sleep, builder.Function("nanosleep", "/lib/libc.so.6"));
  const uint32_t holder = builder.AddThread(1, 12, "loader");
  ProfileWait wait{.detail = builder.String("futex 0x10"), .waker = builder.String("w (3)"), .holder = holder};
  const Profile profile = builder.Take();
  CHECK(HolderText(profile, wait) == "loader (12)");
  wait.holder_stack = start;
  CHECK(HolderText(profile, wait) == "loader (12)");
  wait.holder_stack = in_kernel;
  CHECK(HolderText(profile, wait) == "loader (12) in Load");
  CHECK(WaitText(profile, wait) == "futex 0x10, held by loader (12) in Load, woken by w (3)");
  CHECK(WaitKind(profile, wait) == "futex");
  CHECK(HolderText(profile, {}).empty());
}

TEST_CASE("a preempted thread is told with who ran instead", "[profile][wait_text]") {
  ProfileBuilder builder;
  const auto text = [&](const ProfilePreempter& preempter) {
    return WaitText(builder.profile(), {.preempted = true, .preempter = preempter});
  };
  const uint32_t compiler = builder.String("cc1plus"), worker = builder.String("worker");
  CHECK(text({}) == "preempted");
  CHECK(text({.tid = 123, .command = compiler}) == "preempted, by `cc1plus` (tid 123)");
  CHECK(text({.tid = 123, .command = compiler, .others = 1}) == "preempted, by `cc1plus` (tid 123) and 1 other thread");
  CHECK(text({.tid = 5, .command = worker, .is_own = true, .others = 2}) ==
        "preempted, by `worker` (tid 5) of this program and 2 other threads");
  CHECK(text({.tid = 0, .command = builder.String("swapper/0")}) ==
        "preempted, by no thread: its CPU was idle, as when a CPU quota (cgroup) is used up");
  CHECK(WaitKind(builder.profile(), {.preempted = true, .preempter = {.tid = 5, .command = worker}}) == "preempted");
}

TEST_CASE("the kind of a wait has no addresses and no waker", "[profile][wait_text]") {
  const auto kind_of = [](const char* detail) {
    ProfileBuilder builder;
    const ProfileWait wait{.detail = builder.String(detail), .waker = builder.String("worker (12)")};
    return WaitKind(builder.Take(), wait);
  };
  CHECK(kind_of("futex 0x7f12") == "futex");
  CHECK(kind_of("read of descriptor 3 (pipe:[12])") == "read of descriptor 3 (pipe)");
  CHECK(kind_of("futex 0x7f12, timeout in 16 ms") == "futex");
  CHECK(kind_of("poll of descriptor 3 (pipe:[12]), timeout 5 ms") == "poll of descriptor 3 (pipe)");
  CHECK(kind_of("sleep for 20 ms") == "sleep");
  CHECK(kind_of("sleep for another 20 ms") == "sleep");
  CHECK(kind_of("").empty());
}

}  // namespace
}  // namespace perfkit::profile
