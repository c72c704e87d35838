// What blocked threads say of themselves: text from hostile hands, and threads that wait.
#include "src/proc/blocked_call.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "src/sys/describe_call.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/spinning_thread.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

namespace perfkit::proc {
namespace {

TEST_CASE("a blocked call is parsed whole or not at all", "[blocked_call]") {
  const std::string_view text = "202 0x7f01 0x80 0x0 0x0 0x0 0xffffffffffffffff 0x7ffd10 0x7f99\n";
  const std::optional<BlockedCall> call = ParseBlockedCall(text);
  REQUIRE(call);
  CHECK(call->syscall == 202);
  CHECK(call->arguments == std::array<uint64_t, 6>{0x7f01, 0x80, 0, 0, 0, UINT64_MAX});
  CHECK(call->sp == 0x7ffd10);
  CHECK(call->pc == 0x7f99);
  CHECK(ParseBlockedCall("-1 0x10 0x20\n") == BlockedCall{.syscall = -1, .sp = 0x10, .pc = 0x20});
  for (size_t length = 0; length + 6 < text.size(); ++length) CHECK_FALSE(ParseBlockedCall(text.substr(0, length)));
  for (const std::string_view bad :
       {"", "\n", "running\n", "-1", "-1 0x1", "-1 0x1 0x2 0x3", "-2 0x1 0x2", "1 2 3 4 5 6 7 8 9", "0x1 0x2 0x3",
        "2147483648 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0", "1 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0",
        "1 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x10000000000000000", "1  0x0 0x0 0x0 0x0 0x0 0x0 0x0", "-1 0x 0x2"}) {
    INFO(bad);
    CHECK_FALSE(ParseBlockedCall(bad));
  }
}

TEST_CASE("any bytes are parsed without harm", "[blocked_call]") {
  std::mt19937 random(1);
  constexpr std::string_view kBytes = "0123456789abcdefx- \n\tr\xff";
  for (int turn = 0; turn < 20'000; ++turn) {
    std::string text(random() % 200, '\0');
    for (char& byte : text) byte = kBytes[random() % kBytes.size()];
    (void)ParseBlockedCall(text);
    (void)ParseTimesRun(text);
    (void)ParseSwitches(text);
    (void)ParseState(text);
  }
}

TEST_CASE("a count of 0 says that the kernel does not count", "[blocked_call]") {
  CHECK(ParseTimesRun("1234 567 89\n") == 89);
  for (const std::string_view bad : {"", "0 0 0\n", "1 2", "1 2 3 4", "1 2 x", "1 2 -3"}) {
    CHECK_FALSE(ParseTimesRun(bad));
  }
  CHECK(ParseSwitches("Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n") == 12);
  CHECK_FALSE(ParseSwitches("voluntary_ctxt_switches:\t7\n"));
  CHECK_FALSE(ParseSwitches("voluntary_ctxt_switches:\tx\nnonvoluntary_ctxt_switches:\t5\n"));
}

TEST_CASE("a thread's state comes after its name, whatever that is", "[blocked_call]") {
  CHECK(ParseState("12 (a) R 1 2") == 'R');
  CHECK(ParseState("12 (a) S 1) R 1 2") == 'R');
  CHECK(ParseState("12 (a) R b) S 1 2") != 'R');
  for (const std::string_view bad : {"", ")", ") ", "12 (a) S 1", "12 (a R 1", "12 (a) R"})
    CHECK(ParseState(bad) != 'R');
  CHECK(ReadState(static_cast<pid_t>(syscall(SYS_gettid))) == 'R');
}

struct Wait {
  const char* name;
  int64_t syscall;
  int64_t other;  // another call that a C library may make for it; -1: none
  std::function<void()> block;
};

// Waits until the thread is blocked in one of these: as long as it takes.
std::optional<BlockedCall> AwaitBlocked(pid_t tid, const Wait& wait) {
  for (int turn = 0; turn < 1'000'000; ++turn) {
    const std::optional<BlockedCall> call = ReadBlockedCall(tid);
    if (call && (call->syscall == wait.syscall || call->syscall == wait.other)) return call;
    std::this_thread::yield();
  }
  return std::nullopt;
}

// join returns before procfs has forgotten the thread.
void JoinUntilGone(std::thread& thread, pid_t tid) {
  thread.join();
  testing::AwaitEnd(tid);
}

TEST_CASE("threads that wait say in which call, and where their stacks are", "[blocked_call][law]") {
  static int ends[2];
  static std::atomic<bool> awake{false};
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  REQUIRE(pipe(ends) == 0);
  pthread_mutex_lock(&mutex);
  const std::array waits = {
      Wait{"futex", SYS_futex, -1, [] { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); }},
      Wait{"poll", SYS_ppoll,
#if defined(SYS_poll)
           SYS_poll,
#else
           -1,
#endif
           [] {
             pollfd wanted{ends[0], POLLIN, 0};
             poll(&wanted, 1, -1);
           }},
      Wait{"read", SYS_read, -1,
           [] {
             char byte = 0;
             (void)!read(ends[0], &byte, 1);
           }},
      Wait{"sleep", SYS_clock_nanosleep, SYS_nanosleep,
           [] {
             const timespec time{0, 20'000'000};
             while (!awake) nanosleep(&time, nullptr);
           }},
  };
  for (const Wait& wait : waits) {
    INFO(wait.name);
    awake = false;
    std::atomic<pid_t> tid{0};
    std::atomic<uintptr_t> stack{0};
    std::thread waiter([&] {
      stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      wait.block();
    });
    while (tid == 0) std::this_thread::yield();
    const std::optional<BlockedCall> call = AwaitBlocked(tid, wait);
    const std::optional<uint64_t> times_run = ReadTimesRun(tid);
    awake = true;
    if (wait.name == std::string_view("futex")) pthread_mutex_unlock(&mutex);
    if (wait.name == std::string_view("read") || wait.name == std::string_view("poll")) (void)!write(ends[1], "x", 1);
    JoinUntilGone(waiter, tid);
    if (char byte = 0; wait.name == std::string_view("poll")) (void)!read(ends[0], &byte, 1);
    const bool readable = access("/proc/self/task", R_OK) == 0 && access("/proc/self/syscall", R_OK) == 0;
    if (!readable) SKIP_TEST("/proc/self/syscall cannot be read");
    REQUIRE(call);
    CHECK(times_run.value_or(0) > 0);
    CHECK(call->sp < stack);
    CHECK(stack - call->sp < 1 << 20);
    CHECK(call->pc != 0);
    CHECK(sys::DescribeCall(call->syscall, call->arguments).find("system call") == std::string::npos);
    CHECK_FALSE(ReadBlockedCall(tid));  // it has ended
    CHECK_FALSE(ReadTimesRun(tid));
  }
  close(ends[0]), close(ends[1]);
}

TEST_CASE("the files of a thread say what the functions say, until it has ended", "[blocked_call][law]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::atomic<pid_t> tid{0};
  const Wait wait{"read", SYS_read, -1, [&] {
                    char byte = 0;
                    (void)!read(ends[0], &byte, 1);
                  }};
  std::thread waiter([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    wait.block();
  });
  while (tid == 0) std::this_thread::yield();
  const std::optional<BlockedCall> call = AwaitBlocked(tid, wait);
  const ThreadFiles files(tid);
  // It may have been preempted in its call, and run again before it slept.
  std::optional<BlockedCall> again;
  while (call && !again) again = files.ReadBlockedCall();
  const std::optional<uint64_t> times_run = ReadTimesRun(tid), times_run_again = files.ReadTimesRun();
  (void)!write(ends[1], "x", 1);
  JoinUntilGone(waiter, tid);
  close(ends[0]), close(ends[1]);
  if (access("/proc/self/syscall", R_OK) != 0) SKIP_TEST("/proc/self/syscall cannot be read");
  REQUIRE(call);
  CHECK(again == call);
  CHECK(times_run_again >= times_run);
  CHECK_FALSE(files.ReadBlockedCall());
  CHECK_FALSE(files.ReadTimesRun());
}

TEST_CASE("without a descriptor the remedy for unreadable calls is a descriptor", "[blocked_call]") {
  CHECK(testing::InChild([] {
          const rlimit none = {0, 0};
          setrlimit(RLIMIT_NOFILE, &none);
          const absl::Status status = CanReadBlockedCalls();
          return absl::IsResourceExhausted(status) && status.message().find("ulimit -n") != std::string_view::npos;
        }) == 0);
}

TEST_CASE("a process that is dumpable is not advised to become so", "[blocked_call]") {
  for (const int dumpable : {0, 1}) {
    INFO("dumpable " << dumpable);
    CHECK(testing::InChild([dumpable] {
            prctl(PR_SET_DUMPABLE, dumpable);
            testing::FakeKernel fake;
            fake.FailAll(testing::Call::kOpen, EPERM);  // as a filter does
            const absl::Status status = CanReadBlockedCalls();
            const std::string text(status.message());
            return absl::IsPermissionDenied(status) &&
                   (text.find("dumpable") == std::string::npos) == (dumpable == 1) &&
                   (text.find("sandbox") != std::string::npos) == (dumpable == 1);
          }) == 0);
  }
}

TEST_CASE("a thread that makes no call is blocked in none", "[blocked_call][law]") {
  const testing::SpinningThread spinning;
  for (int turn = 0; turn < 1000; ++turn) {
    const std::optional<BlockedCall> call = ReadBlockedCall(spinning.tid());
    CHECK((!call || call->syscall == -1));  // a page fault may block it
  }
}

}  // namespace
}  // namespace perfkit::proc
