// Events that the handling of their own signals makes happen: a thread that is sampled by them would be in the handler
// for ever. Each test ends itself by SIGKILL if it does: no other signal would get through.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "tests/sample/live_support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FlatWalker;
using testing::HandlerAround;
using testing::LiveOptions;
using Why = SamplerDecision::Why;

// Kills the process after a while, unless it is destroyed before.
class Watchdog {
 public:
  Watchdog() : thread_([this] { Watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void Watch() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [this] { return ended_; })) kill(getpid(), SIGKILL);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

// The word that the handler of SIGTRAP around perfkit's own writes.
volatile uint32_t g_written = 0;
PERFKIT_IN_HANDLER void WriteAndHandle(int signal, siginfo_t* info, void* registers) {
  g_written = g_written + 1;
  HandlerAround::Within(signal, info, registers);
}

SamplerOptions EachTime(const std::string& event) {
  SamplerOptions options;
  options.events = {{.event = event, .rate = Period{1}}};
  options.stack = CallStack::Live(FlatWalker::Make);
  return options;
}

// Lets the calling thread call `work` 2,000 times, and drains once in the middle. Returns whether all numbers of the
// sampler are as they must be.
template <class Work>
bool Advances(Sampler& sampler, Work&& work) {
  const Watchdog watchdog;
  bool fine = sampler.Start().ok();
  const auto ignore = [](const SamplerRecord&) {};
  for (int i = 0; i < 1000; ++i) work();
  const uint64_t drained_ns = testing::NowNs();
  sampler.Drain(ignore);
  for (int i = 0; i < 1000; ++i) work();
  fine = fine && sampler.Stop().ok();
  sampler.Drain(ignore);
  const SamplerStats stats = sampler.stats();
  fine = fine && !stats.decisions.empty();
  uint64_t slower = 1;
  for (const SamplerDecision& decision : stats.decisions) {
    fine = fine && decision.why == Why::kNoProgress && decision.what == SamplerDecision::What::kSamples;
    fine = fine && decision.from == slower && decision.to == 8 * slower;
    fine = fine && decision.from_ns < decision.to_ns;
    slower = decision.to;
  }
  fine = fine && stats.decisions[0].from_ns < drained_ns && stats.decisions[0].to_ns > drained_ns;
  // The second half of the work was sampled, and what was sampled stands for what was counted.
  const EventAccounting& event = stats.events[0];
  fine = fine && slower >= 8 && event.delivered > 0 && event.counted > 0 && event.stacks.stale > 0;
  const uint64_t missing = event.counted - event.represented;
  fine = fine && event.represented <= event.counted && missing <= slower * stats.decisions.size() + event.lost * slower;
  if (!fine) {
    std::printf("%zu decisions, slower %llu, delivered %llu, counted %llu, represented %llu, lost %llu, stale %llu\n",
                stats.decisions.size(), static_cast<unsigned long long>(slower),
                static_cast<unsigned long long>(event.delivered), static_cast<unsigned long long>(event.counted),
                static_cast<unsigned long long>(event.represented), static_cast<unsigned long long>(event.lost),
                static_cast<unsigned long long>(event.stacks.stale));
  }
  return fine;
}

std::string Watched() { return absl::StrFormat("mem:%p/4:w:u", &g_written); }

TEST_CASE("a thread advances although each signal of a sample leads to the next sample: a watched word",
          "[live][progress][law]") {
  auto sampler = Sampler::Open(EachTime(Watched()));
  if (!sampler.ok()) SKIP_TEST(sampler.status().ToString());
  const HandlerAround handler(WriteAndHandle);
  CHECK(Advances(*sampler, [] { g_written = g_written + 1; }));
}

TEST_CASE("a sampler that is stopped before it is drained says since when its event was off", "[live][progress][law]") {
  auto sampler = Sampler::Open(EachTime(Watched()));
  if (!sampler.ok()) SKIP_TEST(sampler.status().ToString());
  const HandlerAround handler(WriteAndHandle);
  for (size_t run = 1; run <= 3; ++run) {
    {
      const Watchdog watchdog;
      REQUIRE(sampler->Start().ok());
      g_written = g_written + 1;
      REQUIRE(sampler->Stop().ok());
    }
    sampler->Drain([](const SamplerRecord&) {});
    const SamplerStats stats = sampler->stats();
    REQUIRE(stats.decisions.size() == run);
    const SamplerDecision& last = stats.decisions.back();
    CHECK(last.why == Why::kNoProgress);
    CHECK((last.from == 1 && last.to == 1 && last.from_ns < last.to_ns));
    CHECK(stats.events[0].represented <= stats.events[0].counted);
  }
}

uint64_t g_slow_clock_ns = 0;

TEST_CASE("the estimated cost of samples has what a signal takes here", "[live][progress][law]") {
  testing::FakeKernel fake;
  fake.below().clock_gettime = [](clockid_t clock, timespec* now) {  // Each call takes a millisecond.
    *now = {.tv_sec = 0, .tv_nsec = 0};
    if (clock != CLOCK_MONOTONIC) return sys::kLinux.clock_gettime(clock, now);
    g_slow_clock_ns += 1'000'000;
    now->tv_sec = static_cast<time_t>(g_slow_clock_ns / 1'000'000'000);
    now->tv_nsec = static_cast<long>(g_slow_clock_ns % 1'000'000'000);
    return 0;
  };
  SamplerOptions options = LiveOptions(testing::Bearable(1000));
  options.clock_id = CLOCK_MONOTONIC_RAW;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  fake.below().clock_gettime = sys::kLinux.clock_gettime;
  REQUIRE(sampler->Start().ok());
  while (sampler->stats().events[0].counted < 50'000'000) testing::Wander();
  REQUIRE(sampler->Stop().ok());
  sampler->Drain([](const SamplerRecord&) {});
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].delivered > 0);
  CHECK(stats.kernel_cpu_ns >= stats.events[0].delivered * 1'000'000);
  CHECK(stats.kernel_cpu_ns < stats.events[0].delivered * 1'100'000);
}

TEST_CASE("a thread advances although each signal of a sample leads to the next sample: its system calls",
          "[live][progress][law]") {
  const int result = testing::WithTracefs([] {
    auto sampler = Sampler::Open(EachTime("raw_syscalls:sys_enter"));
    if (!sampler.ok()) {
      std::printf("%s\n", sampler.status().ToString().c_str());
      return false;
    }
    return Advances(*sampler, [] { syscall(SYS_getppid); });
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

}  // namespace
}  // namespace perfkit
