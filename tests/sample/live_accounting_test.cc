// Where each sample's stack went: the accounting of live stacks balances in all cases.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/sample/live_support.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::CheckStackAccounting;
using testing::DrainAll;
using testing::DrainFor;
using testing::FlatWalker;
using testing::LiveOptions;
using testing::LiveTally;
using testing::Spinners;

// Returns true if SIGTRAP is blocked on a thread of this process. An ended thread blocks nothing.
bool BlocksTrap(uint32_t tid) {
  std::ifstream status("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTRAP - 1) & 1) != 0;
  }
  return false;
}

// The samples of threads that no signal reaches: ThreadSanitizer has one of its own.
uint64_t SamplesOfDeafThreads(const LiveTally& tally) {
  uint64_t samples = 0;
  for (const auto& [tid, count] : tally.by_thread) samples += BlocksTrap(tid) ? count : 0;
  return samples;
}

// Eight threads that never block a signal, all the time: each sample signals its own thread, once.
void CheckEachHasItsStack(uint64_t hz) {
  Spinners spinners(8);
  auto sampler = Sampler::Open(LiveOptions(hz), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  DrainUntil(*sampler, tally, 400'000'000, [&] { return tally.samples > hz / 10; });
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = CheckStackAccounting(*sampler);
  INFO("samples " << tally.samples << ", stacks " << tally.stacks << ", paired " << tally.paired << ", orphans "
                  << tally.orphans << ", stale " << accounting.stacks.stale << ", lost " << accounting.lost
                  << ", walk limit " << accounting.stacks.walk_limit << ", ring full " << accounting.stacks.ring_full);
  CHECK(tally.samples == accounting.delivered);
  CHECK(tally.stacks == accounting.stacks.delivered);
  // Within a handler SIGTRAP is blocked: of several samples there one is stale, and the others are not heard of.
  CHECK(accounting.stacks.coalesced <= 20 * accounting.stacks.stale + tally.twins + SamplesOfDeafThreads(tally));
  CHECK(accounting.stacks.no_ring == 0);
  CHECK(tally.early == 0);
  CHECK(tally.disorder == sampler->stats().late);
  // A sample from within the handler may come between a sample and its stack.
  CHECK(tally.orphans <= accounting.lost + accounting.stacks.stale + tally.disorder);
  CHECK(tally.paired + tally.orphans == tally.stacks);
}

TEST_CASE("every sample of eight threads has its stack, at 1 kHz and at 10", "[live][law]") {
  CheckEachHasItsStack(1000);
  CheckEachHasItsStack(testing::Bearable(10'000));
}

// Threads that start and end during the test.
void TurnOver(uint64_t ns) {
  const uint64_t until = testing::NowNs() + ns;
  while (testing::NowNs() < until) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { testing::Spin(1'500'000); });
    for (std::thread& thread : threads) thread.join();
  }
}

void CheckTurnOver(uint64_t hz, bool user_only) {
  SamplerOptions options = LiveOptions(hz);
  options.user_only = user_only;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  std::thread churn([] { TurnOver(500'000'000); });
  const uint64_t late_ns = DrainFor(*sampler, tally, 500'000'000);
  churn.join();
  REQUIRE(sampler->Stop().ok());
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = CheckStackAccounting(*sampler);
  INFO("samples " << tally.samples << ", stacks " << tally.stacks << ", orphans " << tally.orphans << ", in kernel "
                  << tally.in_kernel << ", coalesced " << accounting.stacks.coalesced << ", no ring "
                  << accounting.stacks.no_ring << ", lost " << accounting.lost);
  CHECK(tally.stacks == accounting.stacks.delivered);
  CHECK(tally.stacks > 0);
  CHECK(tally.early == 0);
  // Rings are given back, as soon as a drain knows of an end.
  const uint64_t undrained = late_ns * hz / 1'000'000'000 * std::thread::hardware_concurrency();
  CHECK(accounting.stacks.no_ring <= tally.stacks / 20 + undrained);
  if (user_only) CHECK(tally.in_kernel == 0);
}

TEST_CASE("the accounting of stacks balances while threads come and go", "[live][law]") {
  CheckTurnOver(1000, true);
  CheckTurnOver(testing::Bearable(10'000), true);
}

TEST_CASE("the accounting of stacks balances when the kernel is sampled as well", "[live][law]") {
  auto trial = Sampler::Open({.events = {{.event = "cpu-clock"}}});
  REQUIRE(trial.ok());
  if (trial->user_only(0)) SKIP_TEST("this user may not sample the kernel");
  CheckTurnOver(1000, false);
  CheckTurnOver(testing::Bearable(10'000), false);
}

// Samples this thread while `work` runs, then reads all records.
EventAccounting OfThisThread(SamplerOptions options, absl::FunctionRef<void(Sampler&)> work) {
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  work(*sampler);
  REQUIRE(sampler->Stop().ok());
  DrainAll(*sampler);
  return CheckStackAccounting(*sampler);
}

void SpinFor(uint64_t cpu_ns) {
  const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
  while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until) testing::Spin(1000);
}

TEST_CASE("a thread that has SIGTRAP blocked gets one signal, which is stale", "[live][law]") {
  const EventAccounting accounting = OfThisThread(LiveOptions(1000), [](Sampler&) {
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    SpinFor(20'000'000);
    pthread_sigmask(SIG_BLOCK, &trap, nullptr);
    SpinFor(50'000'000);
    pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
    SpinFor(20'000'000);
  });
  CHECK(accounting.stacks.stale >= 1);
  CHECK(accounting.stacks.coalesced >= 20);
  CHECK(accounting.stacks.delivered >= 10);
}

TEST_CASE("stacks that are not drained are counted when their ring is full", "[live][law]") {
  SamplerOptions options = LiveOptions(10'000);
  options.memory_bytes = 128 << 10;  // half of it for two rings of stacks
  options.stack.depth = 64;
  options.ring_bytes = 64 << 10;
  const EventAccounting accounting = OfThisThread(options, [](Sampler&) { SpinFor(300'000'000); });
  CHECK(accounting.stacks.ring_full > 0);
  CHECK(accounting.stacks.delivered > 100);
}

TEST_CASE("threads without a ring are counted", "[live][law]") {
  Spinners spinners(8);
  SamplerOptions options = LiveOptions(1000);
  options.memory_bytes = 160 << 10;
  options.stack.depth = 64;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  DrainUntil(*sampler, tally, 0, [&] {
    const StackAccounting stacks = sampler->stats().events[0].stacks;
    return stacks.no_ring > 0 && stacks.delivered > 0;
  });
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  CheckStackAccounting(*sampler);
}

TEST_CASE("stacks of a paused sampler are paused", "[live][law]") {
  const EventAccounting accounting = OfThisThread(LiveOptions(1000), [](Sampler& sampler) {
    SpinFor(20'000'000);
    CHECK(sampler.Pause().ok());
    SpinFor(50'000'000);
    CHECK(sampler.Resume().ok());
    SpinFor(20'000'000);
  });
  CHECK(accounting.stacks.paused >= 20);
  CHECK(accounting.paused >= 20);
  CHECK(accounting.stacks.delivered >= 10);
}

// Takes longer than the time to the next sample.
template <uint64_t kNs>
class SlowWalker : public FlatWalker {
 public:
  PERFKIT_IN_HANDLER UnwoundStack Walk(const ucontext_t& context, std::span<StackFrame> frames) noexcept override {
    const uint64_t until = Cpu() + kNs;
    while (Cpu() < until) {
    }
    return FlatWalker::Walk(context, frames);
  }
  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<SlowWalker>(); }

 private:
  PERFKIT_IN_HANDLER static uint64_t Cpu() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
};

// Returns how much longer a piece of work takes with walks that exceed the period than with short ones, in the thread's
// own time. Both have the same number of signals, which some hypervisors make expensive.
double SlowedDown() {
  double cpu_ns = 0;
  const auto work = [&](Sampler&) {
    const uint64_t begun = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    testing::Spin(100'000'000);
    cpu_ns = static_cast<double>(testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - begun);
  };
  OfThisThread(LiveOptions(10'000, FlatWalker::Make), work);
  const double with_short_walks = cpu_ns;
  const EventAccounting accounting = OfThisThread(LiveOptions(10'000, SlowWalker<150'000>::Make), work);
  CHECK(accounting.stacks.walk_limit > 0);
  CHECK(accounting.stacks.delivered > 0);
  return cpu_ns / with_short_walks;
}

TEST_CASE("a walk that is slower than the period leaves the thread most of its time", "[live][measurement]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer makes everything slow");
  // Without a budget it would never end. A busy machine may slow one of the two down by itself.
  CHECK(testing::HoldsOnceInThree([] { return SlowedDown() < 2; }));
}

// The clock's samples have stacks, and the faults' have none: for each way of taking them.
TEST_CASE("an event can be sampled without stacks beside others that have them", "[live][law]") {
  const auto kind = GENERATE(CallStack::Kind::kLive, CallStack::Kind::kUserDump, CallStack::Kind::kFramePointers);
  SamplerOptions options = LiveOptions(1'000);
  if (kind == CallStack::Kind::kUserDump) options.stack = CallStack::UserDump(1024);
  if (kind == CallStack::Kind::kFramePointers) options.stack = CallStack::FramePointers();
  options.events.push_back({.event = "page-faults", .rate = Period{1}, .stack = false});
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::FreshPages pages(100);
  pages.Touch(0, 100);
  testing::Spin(50'000'000);
  REQUIRE(sampler->Stop().ok());
  uint64_t stacks[2] = {}, samples[2] = {};
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             Overloaded{[&](const LiveStack& stack) { ++stacks[stack.event]; },
                        [&](const Sample& sample) {
                          ++samples[record.event];
                          const auto calls = sample.chain().part(ChainContext::kUser);
                          stacks[record.event] += !sample.user_stack().bytes.empty() || calls.begin() != calls.end();
                        },
                        [](auto&&) {}});
  });
  CHECK(samples[0] > 0);
  CHECK(stacks[0] > 0);
  CHECK(samples[1] >= 100);
  CHECK(stacks[1] == 0);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[1].stacks.accounted() == 0);
  CHECK(stats.events[1].accounted() == stats.events[1].counted);
}

}  // namespace
}  // namespace perfkit
