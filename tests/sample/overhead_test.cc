// Overhead: a budget for a sampler's cost, and the reductions that keep it, while the accounting balances and the side
// band is complete.
#include <sys/prctl.h>

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using What = SamplerDecision::What;
using testing::FreshPages;

// Time under the test's control: each read of the thread's CPU clock adds to it, and windows have the length that the
// test sets. The kernel's clock is not affected; tests that depend on times of samples use another one.
std::atomic<uint64_t> g_cpu_step{0}, g_cpu_ns{0}, g_skipped_ns{0};

int FakeTime(clockid_t clock, timespec* out) {
  if (clock == CLOCK_THREAD_CPUTIME_ID) {
    const uint64_t now = g_cpu_ns += g_cpu_step;
    *out = {static_cast<time_t>(now / 1'000'000'000), static_cast<long>(now % 1'000'000'000)};
    return 0;
  }
  const uint64_t now = testing::NowNs(clock) + (clock == CLOCK_MONOTONIC ? g_skipped_ns.load() : 0);
  *out = {static_cast<time_t>(now / 1'000'000'000), static_cast<long>(now % 1'000'000'000)};
  return 0;
}

// A sampler with drains of a given cost, and windows that end on request.
class Pressed {
 public:
  Pressed() { fake_.below().clock_gettime = FakeTime; }
  // One window in which draining takes `cpus` of a CPU, and `pages` are touched.
  template <class Visit>
  void Window(Sampler& sampler, double cpus, FreshPages& memory, Visit&& visit) {
    memory.Forget();
    memory.Touch(0, memory.pages());
    g_skipped_ns += 1'000'000'000;
    g_cpu_step = static_cast<uint64_t>(cpus * 1e9);
    sampler.Drain(visit);
    g_cpu_step = 0;
  }
  testing::FakeKernel& fake() { return fake_; }

 private:
  testing::FakeKernel fake_;
};

// The law of the accounting when the period changes: the count is what the samples represent, including lost ones, and
// less than a period more for each event that was ever open.
void CheckPeriods(const SamplerStats& stats, uint64_t events, uint64_t longest) {
  const EventAccounting& event = stats.events[0];
  INFO("counted " << event.counted << ", represented " << event.represented);
  CHECK(event.represented <= event.counted + longest);
  CHECK(event.counted - std::min(event.counted, event.represented) <= events * longest);
}

TEST_CASE("a stack is given up in steps, then samples, each dated; records say what they have", "[overhead][law]") {
  const uint64_t began = testing::NowNs();
  Pressed pressed;
  FreshPages memory(64);
  SamplerOptions options = testing::FaultOptions();
  options.stack = CallStack::UserDump(2048);
  options.cpu_budget = 0.1;
  options.clock_id = CLOCK_MONOTONIC_RAW;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::set<uint32_t> reserved;
  const auto visit = [&](const SamplerRecord& record) {
    if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
    const auto sample = Sample::Parse(record, sampler->layout());
    REQUIRE(sample.has_value());
    CHECK(sample->user_registers().abi != 0);
    CHECK(sample->user_stack().bytes.size() <= sample->user_stack().reserved);
    reserved.insert(static_cast<uint32_t>(sample->user_stack().reserved));
  };
  for (int i = 0; i < 5; ++i) pressed.Window(*sampler, 0.15, memory, visit);
  pressed.Window(*sampler, 0.05, memory, visit);
  REQUIRE(sampler->Stop().ok());
  sampler->Drain(visit);
  const SamplerStats stats = sampler->stats();
  // A sanitizer's runtime may fault more often than the kernel allows in one tick, or than the ring has room for.
  if (stats.events[0].throttled != 0) SKIP_TEST("the kernel throttled the event");
  if (testing::kSanitized && stats.events[0].lost != 0)
    SKIP_TEST("samples were lost, of a sanitizer's own faults, too");
  REQUIRE(stats.decisions.size() == 5);
  const uint64_t expected[5][2] = {{2048, 1024}, {1024, 512}, {512, 0}, {1, 2}, {2, 4}};
  const What what[5] = {What::kStackBytes, What::kStackBytes, What::kStack, What::kSamples, What::kSamples};
  uint64_t last = 0;
  for (size_t i = 0; i < 5; ++i) {
    const SamplerDecision& decision = stats.decisions[i];
    CHECK((decision.what == what[i] && decision.from == expected[i][0] && decision.to == expected[i][1]));
    CHECK(decision.why == SamplerDecision::Why::kCost);
    CHECK(decision.cost > 0.15 * 1e9 / (1e9 + static_cast<double>(testing::NowNs() - began)) - 0.005);
    CHECK(decision.cost <= 0.16);
    CHECK(decision.from_ns > last);
    CHECK(decision.to_ns > decision.from_ns);
    last = decision.to_ns;
  }
  CHECK(reserved == std::set<uint32_t>{0, 512, 1024, 2048});
  CHECK(stats.decisions_refused == 0);
  CHECK(stats.events[0].lost == 0);
  CheckPeriods(stats, 5, 4);
}

TEST_CASE("calls of a chain are given up, and come back when there is room", "[overhead][law]") {
  Pressed pressed;
  FreshPages memory(16);
  SamplerOptions options = testing::FaultOptions();
  options.stack = CallStack::FramePointers(16);
  options.cpu_budget = 0.1;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  size_t empty = 0, others = 0;
  const auto visit = [&](const SamplerRecord& record) {
    const auto sample = Sample::Parse(record, sampler->layout());
    REQUIRE(sample.has_value());
    // Code that runs for the first time faults, too.
    if (*sample->address() - reinterpret_cast<uint64_t>(memory.data()) >= memory.pages() * 4096) return;
    (sample->chain().part(ChainContext::kUser).empty() ? empty : others) += 1;
  };
  for (int i = 0; i < 2; ++i) pressed.Window(*sampler, 0.15, memory, visit);
  CHECK(empty == 0);
  pressed.Window(*sampler, 0.15, memory, visit);
  CHECK(empty == 16);
  for (int i = 0; i < 40; ++i) pressed.Window(*sampler, 0.001, memory, visit);
  CHECK(empty > 100);
  others = 0;
  pressed.Window(*sampler, 0.001, memory, visit);
  CHECK(others == 16);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  REQUIRE(stats.decisions.size() == 6);
  CHECK(stats.decisions[1].what == What::kStack);
  CHECK(stats.decisions[3].why == SamplerDecision::Why::kHeadroom);
  CHECK((stats.decisions[5].what == What::kStackBytes && stats.decisions[5].to == 16));
}

TEST_CASE("losses that repeat themselves are a reason, one is not", "[overhead][law]") {
  Pressed pressed;
  FreshPages memory(400);  // more than fit
  SamplerOptions options = testing::FaultOptions(4096);
  options.cpu_budget = 1000;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const auto ignore = [](const SamplerRecord&) {};
  for (int i = 0; i < 10; ++i) pressed.Window(*sampler, 0, memory, ignore);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  REQUIRE(stats.decisions.size() >= 2);
  CHECK(stats.decisions[0].why == SamplerDecision::Why::kLoss);
  CHECK(stats.decisions[0].what == What::kSamples);
  CHECK(stats.decisions.size() <= 4);  // of 400 every eighth fits
  CHECK(stats.events[0].lost > 0);
}

TEST_CASE("a pause is no loss, and no reason for a decision", "[overhead][pause][law]") {
  Pressed pressed;
  FreshPages memory(20);
  SamplerOptions options = testing::FaultOptions();
  options.cpu_budget = 1000;
  options.clock_id = CLOCK_MONOTONIC_RAW;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const auto ignore = [](const SamplerRecord&) {};
  for (int i = 0; i < 10; ++i) {
    REQUIRE(sampler->Pause().ok());
    memory.Forget();
    memory.Touch(0, memory.pages());
    REQUIRE(sampler->Resume().ok());
    pressed.Window(*sampler, 0, memory, ignore);
  }
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.losses.size() >= 10);
  CHECK((stats.decisions.empty() || stats.events[0].lost != 0));
}

TEST_CASE("what cannot be opened anew is left as it was, and counted", "[overhead][law]") {
  Pressed pressed;
  FreshPages memory(16);
  SamplerOptions options = testing::FaultOptions();
  options.stack = CallStack::UserDump(2048);
  options.cpu_budget = 0.1;
  {
    auto sampler = Sampler::Open(options, Target::AllThreads());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    pressed.fake().FailAll(testing::Call::kPerfEventOpen, EMFILE);
    const auto ignore = [](const SamplerRecord&) {};
    for (int i = 0; i < 3; ++i) pressed.Window(*sampler, 0.15, memory, ignore);
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    const SamplerStats stats = sampler->stats();
    CHECK(stats.decisions.empty());
    CHECK(stats.decisions_refused == 3);
    testing::CheckAccountingBalances(stats);
    CHECK(stats.events[0].delivered >= 48);
    pressed.fake().Forgive();
  }
  CHECK(pressed.fake().Leaks() == "");
}

// Existing threads, threads that inherit, and new threads: all get the new rate, and no event is reported twice.
TEST_CASE("a change reaches threads that have inherited their events", "[overhead][law]") {
  Pressed pressed;
  SamplerOptions options = testing::FaultOptions();
  options.cpu_budget = 0.1;
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  FreshPages memory(8), of_thread(320);
  std::atomic<int> step{0};
  std::atomic<pid_t> tid{0};
  std::thread inheritor([&] {
    tid = gettid();
    while (step < 1) testing::Sleep(100'000);
    of_thread.Touch(0, 320);
  });
  while (tid == 0) testing::Sleep(100'000);
  uint64_t samples = 0;
  std::set<uint32_t> born, ended;
  const auto visit = [&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             Overloaded{[&](const Sample& sample) {
                          const uint64_t page = *sample.address() >> 12,
                                         first = reinterpret_cast<uint64_t>(of_thread.data()) >> 12;
                          samples += page - first < 320 && sample.task()->tid == static_cast<uint32_t>(tid.load());
                        },
                        [&](const ForkRecord& fork) { born.insert(fork.tid); },
                        [&](const ExitRecord& exit) { ended.insert(exit.tid); }});
  };
  for (int i = 0; i < 3; ++i) pressed.Window(*sampler, 0.15, memory, visit);  // every eighth
  step = 1;
  inheritor.join();
  pressed.Window(*sampler, 0.05, memory, visit);
  std::thread([] {}).join();
  REQUIRE(sampler->Stop().ok());
  sampler->Drain(visit);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.decisions.size() == 3);
  CHECK(samples >= 38);
  CHECK(samples <= (testing::kSanitized ? 60u : 42u));
  CHECK(born.count(static_cast<uint32_t>(tid)) == 1);
  CHECK(ended.count(static_cast<uint32_t>(tid)) == 1);
  CHECK(ended.size() >= 2);
  CHECK(stats.side_band_lost == 0);
}

TEST_CASE("a rate that is set reaches threads that have inherited their events, at the next drain", "[overhead][law]") {
  for (const auto rings : {SamplerOptions::Rings::kPerCpu, SamplerOptions::Rings::kPerThread}) {
    SamplerOptions options = testing::FaultOptions();
    options.rings = rings;
    auto sampler = Sampler::Open(options, Target::AllThreads());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    FreshPages of_thread(400);
    std::atomic<int> step{0};
    std::thread inheritor([&] {
      step = 1;
      while (step < 2) testing::Sleep(100'000);
      of_thread.Touch(0, 400);
    });
    while (step < 1) testing::Sleep(100'000);
    const size_t enough = rings == SamplerOptions::Rings::kPerThread ? 2 : 1;
    for (int i = 0; i < 1000 && (i == 0 || sampler->rings() < enough); ++i) {
      testing::DrainAll(*sampler);  // attaches it, where that takes a ring of its own
    }
    REQUIRE(sampler->rings() >= enough);
    REQUIRE(sampler->SetRate(0, Period{10}).ok());
    testing::DrainAll(*sampler);
    step = 2;
    inheritor.join();
    REQUIRE(sampler->Stop().ok());  // else the last drain leaves what is younger than 50 us
    const uint64_t samples = testing::CountSamples(*sampler)[0];
    CHECK(samples >= 36);
    CHECK(samples <= (testing::kSanitized ? 100u : 50u));
    CHECK(sampler->stats().decisions_refused == 0);
  }
}

// Faults as fast as it can until it is stopped, and starts threads meanwhile.
class Storm {
 public:
  Storm() : thread_([this] { Run(); }) {}
  ~Storm() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<bool> counting{false};
  std::atomic<size_t> threads{0};  // while counting
  std::set<uint32_t> started;      // the same; to be read once stopped

 private:
  void Run() {
    FreshPages memory(2048);
    while (!stop_) {
      memory.Forget();
      memory.Touch(0, memory.pages());
      std::thread([this] {
        prctl(PR_SET_NAME, "short");
        if (counting) started.insert(static_cast<uint32_t>(gettid())), ++threads;
      }).join();
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Returns the cost after the first second, in CPUs.
double CostOfStorm() {
  SamplerOptions options = testing::FaultOptions(256 << 10);
  options.stack = CallStack::UserDump(1024);
  options.side_band = true;
  options.cpu_budget = 0.01;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::set<uint32_t> born, ended;
  const auto visit = [&](const SamplerRecord& record) {
    const bool parsed =
        Dispatch(record, sampler->layout(),
                 Overloaded{[&](const Sample&) {}, [&](const ForkRecord& fork) { born.insert(fork.tid); },
                            [&](const ExitRecord& exit) { ended.insert(exit.tid); }});
    CHECK(parsed);
  };
  SamplerStats calm;
  uint64_t calm_from = 0;
  std::set<uint32_t> started;
  {
    Storm storm;
    const uint64_t begun = testing::NowNs();
    while (testing::NowNs() - begun < 2'500'000'000 || storm.threads <= 10) {
      testing::Sleep(5'000'000);
      sampler->Drain(visit);
      if (calm_from != 0 || testing::NowNs() - begun < 1'200'000'000) continue;
      calm = sampler->stats();
      if (calm.decisions.size() < 3) continue;
      calm_from = testing::NowNs();
      storm.counting = true;
    }
    storm.Stop();
    started = storm.started;
  }
  const double wall = static_cast<double>(testing::NowNs() - calm_from);
  REQUIRE(sampler->Stop().ok());
  sampler->Drain(visit);
  const SamplerStats stats = sampler->stats();
  const double cost =
      static_cast<double>(stats.own_cpu_ns + stats.kernel_cpu_ns - calm.own_cpu_ns - calm.kernel_cpu_ns) / wall;
  uint64_t longest = 1;
  for (const SamplerDecision& decision : stats.decisions) {
    if (decision.what == What::kSamples) longest = std::max({longest, decision.from, decision.to});
  }
  std::printf("storm: %zu decisions, 1 in %lu samples, %.2f %% of a CPU, %lu of %lu faults in samples, %lu lost\n",
              stats.decisions.size(), longest, 100 * cost, stats.events[0].delivered, stats.events[0].counted,
              stats.events[0].lost);
  CHECK(stats.decisions_refused == 0);
  CHECK(stats.side_band_lost == calm.side_band_lost);  // before, rings were full of samples
  for (const uint32_t tid : started) {
    CHECK(born.count(tid) == 1);
    CHECK(ended.count(tid) == 1);
  }
  CHECK(stats.events[0].represented <= stats.events[0].counted + longest);
  return cost;
}

TEST_CASE("a storm of faults costs what it may, and the side band is whole", "[overhead][measurement]") {
  CHECK(testing::HoldsOnceInThree([] { return CostOfStorm() < 0.03; }));
}

TEST_CASE("a budget is a share of a CPU, of rings that are drained", "[overhead]") {
  SamplerOptions options = testing::FaultOptions();
  options.cpu_budget = -0.5;
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
  options.cpu_budget = std::nan("");
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
  options.cpu_budget = 0.01;
  options.mode = RingMode::kOverwrite;
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
}

}  // namespace
}  // namespace perfkit
