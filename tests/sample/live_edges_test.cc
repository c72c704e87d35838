// Live stacks together with everything else that programs do with signals, threads and processes.
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "src/step/stepper.h"
#include "src/sys/sample_signals.h"
#include "tests/sample/live_support.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FlatWalker;
using testing::LiveOptions;
using testing::LiveTally;

void SpinCpu(uint64_t ns) {
  const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until) testing::Spin(1000);
}

Sampler OpenLive(const SamplerOptions& options = LiveOptions(testing::Bearable(10'000)),
                 Target target = Target::ThisThread()) {
  auto sampler = Sampler::Open(options, target);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  return *std::move(sampler);
}

uint64_t StacksOf(Sampler& sampler) {
  REQUIRE(sampler.Stop().ok());
  LiveTally tally;
  testing::DrainRest(sampler, tally);
  testing::CheckStackAccounting(sampler);
  return tally.stacks;
}

void BlockTraps(int how) {
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  pthread_sigmask(how, &trap, nullptr);
}

TEST_CASE("a signal that comes when its sampler is gone is dropped", "[live][edges][law]") {
  const uint64_t before = sys::LateSampleSignals();
  {
    Sampler sampler = OpenLive();
    BlockTraps(SIG_BLOCK);
    SpinCpu(5'000'000);
  }
  Sampler other = OpenLive();  // may have the same place
  BlockTraps(SIG_UNBLOCK);
  CHECK(sys::LateSampleSignals() == before + 1);
  StacksOf(other);  // as many as it has samples
}

TEST_CASE("samplers come and go while their threads run", "[live][edges][law]") {
  testing::Spinners spinners(4);
  uint64_t stacks = 0;
  for (int i = 0; i < 30 || stacks == 0; ++i) {
    Sampler sampler = OpenLive(LiveOptions(testing::Bearable(10'000)), Target::AllThreads());
    testing::Sleep(3'000'000);
    sampler.Drain(
        [&](const SamplerRecord& record) { stacks += LiveStack::Parse(record, sampler.layout()).has_value(); });
  }
}

// Each call separately: a signal may interrupt any of them.
int Interrupted(Sampler& sampler) {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  std::atomic<bool> stop{false};
  std::atomic<int> unwritten{0};
  std::thread writer([&] {
    while (!stop) {
      testing::Sleep(500'000);
      unwritten += write(pipes[1], "x", 1) != 1;
    }
  });
  const int epoll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) == 0);
  int interrupted = 0;
  const auto check = [&](bool failed) { interrupted += failed && errno == EINTR; };
  for (int i = 0; i < 200; ++i) {
    testing::Spin(50'000);
    char byte = 0;
    check(read(pipes[0], &byte, 1) < 0);
    pollfd readable{pipes[0], POLLIN, 0};
    check(poll(&readable, 1, 1) < 0);
    const timespec shortly{0, 300'000};
    check(nanosleep(&shortly, nullptr) < 0);
    check(epoll_wait(epoll, &event, 1, 1) < 0);
    usleep(100);
    if (i % 50 == 0) sampler.Drain([](const SamplerRecord&) {});
  }
  stop = true;
  writer.join();
  CHECK(unwritten == 0);
  close(epoll), close(pipes[0]), close(pipes[1]);
  return interrupted;
}

// On arm64 the interrupt that sends the signal comes an instruction or more after the sample's: it may find the thread
// in the system call after it.
#if defined(__aarch64__)
constexpr int kMayBeInterrupted = 8;  // of 800
#else
constexpr int kMayBeInterrupted = 0;
#endif

TEST_CASE("no system call is interrupted by a sample", "[live][edges][law]") {
  for (const bool user_only : {true, false}) {
    SamplerOptions options = LiveOptions(testing::Bearable(10'000));
    options.user_only = user_only;
    Sampler sampler = OpenLive(options);
    CHECK(Interrupted(sampler) <= kMayBeInterrupted);
    CHECK(StacksOf(sampler) > 0);
  }
}

class SpoilingWalker : public FlatWalker {
 public:
  PERFKIT_IN_HANDLER UnwoundStack Walk(const ucontext_t& context, std::span<StackFrame> frames) noexcept override {
    errno = 33;
    return FlatWalker::Walk(context, frames);
  }
  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<SpoilingWalker>(); }
};

TEST_CASE("errno is as it was", "[live][edges][law]") {
  Sampler sampler = OpenLive(LiveOptions(testing::Bearable(10'000), SpoilingWalker::Make));
  uint64_t wrong = 0;
  const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + 50'000'000;
  while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until) {
    errno = 5;
    testing::Spin(5000);
    wrong += errno != 5;
  }
  CHECK(wrong == 0);
  CHECK(StacksOf(sampler) > 50);
}

// Where the handler ran.
std::atomic<uintptr_t> g_handler_frame{0};

class FrameTellingWalker : public FlatWalker {
 public:
  PERFKIT_IN_HANDLER UnwoundStack Walk(const ucontext_t& context, std::span<StackFrame> frames) noexcept override {
    __atomic_store_n(reinterpret_cast<uintptr_t*>(&g_handler_frame),
                     reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), __ATOMIC_RELAXED);
    return FlatWalker::Walk(context, frames);
  }
  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<FrameTellingWalker>(); }
};

TEST_CASE("a thread's alternate stack is what the handler runs on", "[live][edges][law]") {
  Sampler sampler = OpenLive(LiveOptions(testing::Bearable(10'000), FrameTellingWalker::Make), Target::AllThreads());
  std::thread([] {
    std::vector<char> memory(64 << 10);
    stack_t stack{}, before{};
    stack.ss_sp = memory.data();
    stack.ss_size = memory.size();
    REQUIRE(sigaltstack(&stack, &before) == 0);
    g_handler_frame = 0;
    SpinCpu(20'000'000);
    const uintptr_t low = reinterpret_cast<uintptr_t>(memory.data());
    const uintptr_t frame = g_handler_frame;  // another thread's, if that was sampled last
    sigaltstack(&before, nullptr);
    CHECK((frame == 0 || frame - low < memory.size()));
    CHECK(frame != 0);
  }).join();
  CHECK(StacksOf(sampler) > 20);
}

// A handler that computes, is sampled there, and jumps out of what it has interrupted.
sigjmp_buf g_back;
volatile sig_atomic_t g_may_jump = 0;
void ComputeAndJump(int) {
  testing::Spin(100'000);
  if (g_may_jump != 0) siglongjmp(g_back, 1);
}

TEST_CASE("other handlers may be sampled, and may be left by a jump", "[live][edges][law]") {
  Sampler sampler = OpenLive();
  struct sigaction act {
  }, before{};
  act.sa_handler = ComputeAndJump;
  sigaction(SIGUSR1, &act, &before);
  volatile int jumps = 0;
  volatile int round = 0;
  while (round < 300) {
    round = round + 1;
    if (sigsetjmp(g_back, 1) == 0) {
      g_may_jump = 1;
      raise(SIGUSR1);
    } else {
      jumps = jumps + 1;
    }
    g_may_jump = 0;
    raise(SIGUSR1);
    if (round % 50 == 0) sampler.Drain([](const SamplerRecord&) {});
  }
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(jumps == 300);
  const SamplerStats stats = sampler.stats();
  // (A sanitizer has all signals blocked in handlers.)
  CHECK(StacksOf(sampler) + stats.events[0].stacks.delivered > (testing::kSanitized ? 0u : 20u));
}

TEST_CASE("a handler of SIGTRAP that was there gets its traps still", "[live][edges][law]") {
  static volatile int traps;
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction act {};
    act.sa_handler = [](int) { traps = traps + 1; };
    sigaction(SIGTRAP, &act, nullptr);
    auto sampler = Sampler::Open(LiveOptions(testing::Bearable(10'000)));
    if (!sampler.ok() || !sampler->Start().ok()) _exit(2);
    for (int i = 0; i < 1000; ++i) {
      raise(SIGTRAP);
      testing::Spin(20'000);
    }
    if (!sampler->Stop().ok()) _exit(3);
    uint64_t stacks = 0;
    sampler->Drain(
        [&](const SamplerRecord& record) { stacks += LiveStack::Parse(record, sampler->layout()).has_value(); });
    _exit(stacks > 10 && traps == 1000 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("the child of a fork has nothing of its parent's, and may sample itself", "[live][edges][law]") {
  Sampler sampler = OpenLive(LiveOptions(testing::Bearable(10'000)), Target::AllThreads());
  SpinCpu(20'000'000);
  const pid_t child = fork();
  if (child == 0) {
    SpinCpu(20'000'000);
    const bool empty = sampler.Drain([](const SamplerRecord&) {}) == 0;
    auto own = Sampler::Open(LiveOptions(testing::Bearable(10'000)));
    if (!own.ok() || !own->Start().ok()) _exit(2);
    SpinCpu(20'000'000);
    if (!own->Stop().ok()) _exit(3);
    uint64_t stacks = 0;
    own->Drain([&](const SamplerRecord& record) {
      const auto stack = LiveStack::Parse(record, own->layout());
      stacks += stack && stack->pid == static_cast<uint32_t>(getpid());
    });
    { Sampler gone = std::move(sampler); }
    _exit(empty && stacks > 10 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  SpinCpu(20'000'000);
  CHECK(StacksOf(sampler) > 20);
}

TEST_CASE("a program that is started by exec gets no signals", "[live][edges][law]") {
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      auto sampler = Sampler::Open(LiveOptions(50'000), Target::AllThreads());
      if (!sampler.ok() || !sampler->Start().ok()) _exit(2);
      SpinCpu(1'000'000);
      execlp("sh", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", nullptr);
      _exit(3);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("instructions that are counted by stepping are the same under samples", "[live][edges][law]") {
  const auto stepper = step::Stepper::Open();
  if (!stepper.ok() && absl::IsUnavailable(stepper.status())) SKIP_TEST(stepper.status().ToString());
  REQUIRE(stepper.ok());
  const auto count = [&] {
    const auto stepped = stepper->Run([](void*) { testing::Spin(2'000); }, nullptr);
    INFO(stepped.status());
    REQUIRE(stepped.ok());
    return stepped->instructions;
  };
  const uint64_t alone = count();
  Sampler sampler = OpenLive();
  const uint64_t sampled = count();
  SpinCpu(5'000'000);
  CHECK(sampled == alone);
  CHECK(StacksOf(sampler) > 0);
}

}  // namespace
}  // namespace perfkit
