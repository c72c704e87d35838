// The stepper amid all that may happen in between: signals, blocked ones, exceptions, threads, children, a debugger.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/step/session.h"
#include "src/step/stepper.h"
#include "tests/step/run.h"
#include "tests/support/measurement.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

#if defined(__x86_64__)

extern char** environ;

namespace perfkit::step {
namespace {

volatile sig_atomic_t g_signals = 0;
void OnSignal(int) {
  for (int i = 0; i < 1000; ++i) asm volatile("nop");
  g_signals = g_signals + 1;
}

TEST_CASE("signals that arrive meanwhile are handled, and not counted", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  struct sigaction act {
  }, before{};
  act.sa_handler = OnSignal;
  act.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &act, &before);
  const itimerval often{{0, 200}, {0, 200}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  g_signals = 0;
  bool same = true;
  for (int i = 0; i < 20 || (g_signals < 50 && i < 2000); ++i) {
    same &= stepper->Run(Loop<1000>, nullptr)->instructions == 2002;
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  CHECK(same);
  CHECK(g_signals >= 50);
}

TEST_CASE("a region that sends itself a signal goes on, without a number if it has a handler", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  struct sigaction act {
  }, before{};
  act.sa_handler = OnSignal;
  sigaction(SIGUSR1, &act, &before);
  g_signals = 0;
  const auto raised = StepCall(*stepper, [] { raise(SIGUSR1); });
  const auto sent = StepCall(*stepper, [] { kill(getpid(), SIGUSR1); });
  const auto queued = StepCall(*stepper, [] { sigqueue(getpid(), SIGUSR1, {}); });
  for (const auto& count : {raised, sent, queued}) {
    CHECK(count.status().message().find("sends itself a signal") != std::string::npos);
  }
  if (!testing::kSanitized) CHECK(g_signals == 3);  // It delays handlers.
  act.sa_handler = SIG_IGN;
  sigaction(SIGUSR1, &act, nullptr);
  const auto ignored = StepCall(*stepper, [] { raise(SIGUSR1); });
  CHECK(ignored.ok());
  sigaction(SIGUSR1, &before, nullptr);
}

// A prefix that `syscall` ignores, and the way of 32-bit code.
TEST_CASE("system calls are known whatever their instruction", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  const auto with_prefix = StepCall(*stepper, [] {
    long number = SYS_getppid;
    asm volatile(".byte 0x48; syscall" : "+a"(number)::"rcx", "r11", "memory");
  });
  REQUIRE(with_prefix.ok());
  CHECK(with_prefix->system_calls == 1);
  constexpr long kGetpidOfI386 = 20;
  const auto ask_old = [] {
    long answer = kGetpidOfI386;
    asm volatile("int $0x80" : "+a"(answer)::"r8", "r9", "r10", "r11", "memory");
    return answer == getpid();
  };
  if (testing::InChild(ask_old) != 0) SKIP_TEST("this kernel has no calls of 32-bit code");
  CHECK(testing::InChild([&] {
          bool answered = false;
          const auto old = StepCall(*stepper, [&] { answered = ask_old(); });
          return answered && old.status().message().find("int $0x80") != std::string::npos;
        }) == 0);
}

TEST_CASE("blocking all signals in the region neither kills nor shows", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  sigset_t seen, at_start;
  sigprocmask(SIG_BLOCK, nullptr, &at_start);
  const auto count = StepCall(*stepper, [&] {
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    sigprocmask(SIG_BLOCK, nullptr, &seen);
    testing::Spin(10);
    sigprocmask(SIG_SETMASK, &old, nullptr);
  });
  CHECK(count.status().ToString() == "OK");
  CHECK(count->system_calls == 3);
  CHECK(sigismember(&seen, SIGTRAP) == 1);
  CHECK(sigismember(&seen, SIGUSR2) == 1);
  sigset_t now;
  sigprocmask(SIG_BLOCK, nullptr, &now);
  for (int signal = 1; signal < 64; ++signal) CHECK(sigismember(&now, signal) == sigismember(&at_start, signal));
}

bool IsTrapBlocked() {
  sigset_t now;
  sigprocmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, SIGTRAP) == 1;
}

TEST_CASE("a region whose stepping ends while it blocks all signals has the mask that it asks for", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  REQUIRE_FALSE(IsTrapBlocked());
  sigset_t all, before;
  sigfillset(&all);
  bool inside = false;
  const auto restores = StepCall(*stepper,
                                 [&] {
                                   sigprocmask(SIG_BLOCK, &all, &before);
                                   testing::Spin(100'000);
                                   inside = IsTrapBlocked();
                                   sigprocmask(SIG_SETMASK, &before, nullptr);
                                 },
                                 {.budget = 100'000});
  CHECK(absl::IsResourceExhausted(restores.status()));
  CHECK(inside);
  CHECK_FALSE(IsTrapBlocked());

  const auto leaves = StepCall(*stepper, [&] { sigprocmask(SIG_BLOCK, &all, &before); });
  CHECK(leaves.status().ToString() == "OK");
  CHECK(IsTrapBlocked());
  sigprocmask(SIG_SETMASK, &before, nullptr);

  const auto clears = StepCall(*stepper, [&] {
    sigprocmask(SIG_BLOCK, &all, &before);
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~uint64_t{0x100});
    inside = IsTrapBlocked();
    sigprocmask(SIG_SETMASK, &before, nullptr);
  });
  CHECK(absl::IsFailedPrecondition(clears.status()));
  CHECK(inside);
  CHECK_FALSE(IsTrapBlocked());
}

TEST_CASE("a thread that has SIGTRAP blocked can be stepped, and has it blocked after", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  sigset_t trap, before, now;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  sigprocmask(SIG_BLOCK, &trap, &before);
  CHECK(stepper->Run(Loop<10>, nullptr)->instructions == 22);
  sigprocmask(SIG_SETMASK, &before, &now);
  CHECK(sigismember(&now, SIGTRAP) == 1);
}

TEST_CASE("exceptions are thrown and caught under the trap flag", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  const auto thrower = [] {
    try {
      throw std::runtime_error("inside");
    } catch (const std::runtime_error&) {
    }
  };
  thrower();
  const uint64_t first = Length(*stepper, thrower);
  CHECK(first > 1000);
  if (!testing::kSanitized) CHECK(Length(*stepper, thrower) == first);
}

TEST_CASE("other threads run on, unwatched", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) rounds += testing::Spin(100) != 0;
    });
  while (rounds == 0) sched_yield();
  for (int i = 0; i < 4; ++i) CHECK(stepper->Run(Loop<1000>, nullptr)->instructions == 2002);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("several threads step at the same time", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) right += stepper->Run(Loop<500>, nullptr)->instructions == 1002;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
}

// A sanitizer's runtime may take more steps for a thread or a process than the budget has: no number then, and no harm.
bool CountedOrOver(const absl::StatusOr<StepCount>& count) {
  return count.ok() || (testing::kSanitized && absl::IsResourceExhausted(count.status()));
}

TEST_CASE("a thread that the region starts runs free, and leaves no number", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  for (int i = 0; i < 3; ++i) {
    uint64_t spun = 0;
    const auto count = StepCall(*stepper, [&] { std::thread([&] { spun = testing::Spin(100'000); }).join(); });
    INFO(count.status());
    CHECK_FALSE(count.ok());
    if (!testing::kSanitized) CHECK(count.status().message().find("starts a thread") != std::string::npos);
    CHECK(spun != 0);
    CHECK_FALSE(IsTrapBlocked());  // pthread_create blocks it for a while
  }
  CHECK(stepper->Run(Loop<1000>, nullptr)->instructions == 2002);
}

TEST_CASE("processes that the region starts run free", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  int status = -1;
  const auto forked = StepCall(*stepper, [&] {
    const pid_t child = fork();
    if (child == 0) _exit(testing::Spin(1'000'000) != 0 ? 7 : 8);
    waitpid(child, &status, 0);
  });
  INFO(forked.status());
  CHECK(CountedOrOver(forked));
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));

  const auto spawned = StepCall(*stepper, [&] {
    pid_t child = 0;
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    status = posix_spawnp(&child, "true", nullptr, nullptr, arguments, environ);
    if (status == 0) waitpid(child, &status, 0);
  });
  CHECK((CountedOrOver(spawned) || absl::IsFailedPrecondition(spawned.status())));  // glibc 2.38: CLONE_CLEAR_SIGHAND
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a region that takes the flag or the handler away gets no number", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  const auto lost = StepCall(*stepper, [] {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~uint64_t{0x100});
    testing::Spin(100);
  });
  CHECK(absl::IsFailedPrecondition(lost.status()));

  struct sigaction before {};
  sigaction(SIGTRAP, nullptr, &before);
  const auto taken = StepCall(*stepper, [] {
    struct sigaction act {};
    act.sa_handler = OnSignal;
    sigaction(SIGTRAP, &act, nullptr);
    testing::Spin(100);
  });
  sigaction(SIGTRAP, &before, nullptr);
  CHECK(absl::IsFailedPrecondition(taken.status()));
  CHECK(taken.status().message().find("SIGTRAP") != std::string::npos);
  CHECK(stepper->Run(Loop<10>, nullptr)->instructions == 22);
}

TEST_CASE("a handler that leaves by a jump ends the number, not the program", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  static sigjmp_buf home;
  struct sigaction act {
  }, before{};
  act.sa_handler = [](int) { siglongjmp(home, 1); };
  sigaction(SIGUSR1, &act, &before);
  const auto count = StepCall(*stepper, [] {
    if (sigsetjmp(home, 1) == 0) raise(SIGUSR1);
    testing::Spin(10);
  });
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(absl::IsFailedPrecondition(count.status()));
}

TEST_CASE("under a debugger it says so", "[stepper]") {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    const auto stepper = Stepper::Open();
    const bool said = absl::IsFailedPrecondition(stepper.status()) &&
                      stepper.status().message().find(std::to_string(getppid())) != std::string::npos;
    _exit(said ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a stepper in a stepped region says so, and leaves the number", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  static absl::Status opened, ran;
  const auto count = StepCall(*stepper, [&stepper] {
    opened = Stepper::Open().status();
    ran = StepCall(*stepper, [] { testing::Spin(10); }).status();
  });
  CHECK(count.ok());
  for (const absl::Status& status : {opened, ran}) {
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("stepped already"));
  }
}

TEST_CASE("steps work on an alternate signal stack", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  std::vector<char> memory(64 << 10);
  stack_t stack{}, before{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, &before);
  CHECK(stepper->Run(Loop<100>, nullptr)->instructions == 202);
  sigaltstack(&before, nullptr);
}

// Of 2,048 bytes, which glibc's MINSIGSTKSZ calls enough: a signal's frame does not fit, and the kernel sends SIGSEGV.
TEST_CASE("an alternate signal stack that is too small is a reason, not a SIGSEGV", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  std::vector<char> memory(2048);
  stack_t stack{}, before{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  REQUIRE(sigaltstack(&stack, &before) == 0);
  const absl::Status status = stepper->Run(Loop<100>, nullptr).status();
  sigaltstack(&before, nullptr);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message().find("alternate signal stack is too small") != std::string::npos);
  CHECK(stepper->Run(Loop<100>, nullptr)->instructions == 202);
}

// An empty handler under the trap flag, as the yardstick of what a step costs.
void Nothing(int) {}

// Interleaved, and the least of each: other load only ever adds. Short, so that a quiet moment holds both.
bool CostsLittle() {
  uint64_t bare = ~uint64_t{0}, stepped = ~uint64_t{0};
  struct sigaction empty {
  }, before{};
  empty.sa_handler = Nothing;
  for (int i = 0; i < 100; ++i) {
    sigaction(SIGTRAP, &empty, &before);
    uint64_t start = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    step::Session unused;
    step::RunUnderTrapFlag(unused, Loop<50>, nullptr);
    bare = std::min(bare, testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - start);
    sigaction(SIGTRAP, &before, nullptr);
    step::Session session;
    session.budget = 100'000;
    auto claim = sys::TrapClaim::OfThisThread(step::OnStep, &session);
    start = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    step::RunUnderTrapFlag(session, Loop<50>, nullptr);
    stepped = std::min(stepped, testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - start);
  }
  UNSCOPED_INFO("empty handler " << bare << " ns, stepper " << stepped << " ns");
  return static_cast<double>(stepped) <= 1.2 * static_cast<double>(bare);
}

TEST_CASE("a step costs at most 1.2 times an empty handler", "[stepper][measurement]") {
  OPEN_OR_SKIP(stepper);
  CHECK(testing::HoldsOnceInThree(CostsLittle));
}

}  // namespace
}  // namespace perfkit::step

#endif
