// The kernel's counts by thread and CPU: they sum to the accounting, whatever happened to the events.
#include <atomic>
#include <thread>
#include <tuple>

#include "tests/sample/support.h"
#include "tests/support/cpus.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using Rings = SamplerOptions::Rings;

// Checks that the counts of each event sum to its accounting. Requires that the sampler is stopped.
void CheckCountsSum(const Sampler& sampler) {
  const SamplerStats stats = sampler.stats();
  std::vector<uint64_t> sums(stats.events.size() + stats.full.size());
  for (const SamplerCount& count : sampler.counts()) {
    sums[count.event + (count.full_stack ? stats.events.size() : 0)] += count.counted;
    CHECK_FALSE(count.counted_is_lower_bound);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    CAPTURE(i);
    CHECK(sums[i] == (i < stats.events.size() ? stats.events[i] : stats.full[i - stats.events.size()]).counted);
  }
}

uint64_t CountOf(const Sampler& sampler, int tid) {
  uint64_t sum = 0;
  for (const SamplerCount& count : sampler.counts()) sum += count.tid == tid ? count.counted : 0;
  return sum;
}

// A thread that touches pages when it is told to, then ends when it is told to.
class Toucher {
 public:
  explicit Toucher(size_t pages) : memory_(pages), thread_([this] { Run(); }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Toucher() { End(); }
  Toucher(const Toucher&) = delete;
  Toucher& operator=(const Toucher&) = delete;

  pid_t tid() const { return tid_; }
  void Touch() {
    step_ = 1;
    while (step_ != 2) std::this_thread::yield();
  }
  void End() {
    step_ = 3;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    tid_ = gettid();
    while (step_ == 0) std::this_thread::yield();
    if (step_ == 1) {
      memory_.Touch(0, memory_.pages());
      step_ = 2;
    }
    while (step_ != 3) std::this_thread::yield();
  }

  testing::FreshPages memory_;
  std::atomic<pid_t> tid_ = 0;
  std::atomic<int> step_ = 0;
  std::thread thread_;
};

TEST_CASE("counts by thread and CPU are each thread's own, and sum to the total", "[counts][law]") {
  constexpr size_t kFew = 50, kMany = 500;
  SamplerOptions options = testing::FaultOptions(1 << 20);
  options.events.push_back({.event = "task-clock"});
  options.rings = GENERATE(Rings::kPerCpu, Rings::kPerThread);
  CAPTURE(options.rings);
  Toucher few(kFew), many(kMany);
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  few.Touch();
  many.Touch();
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  uint64_t by_few = 0, by_many = 0;
  for (const SamplerCount& count : sampler->counts()) {
    CHECK((count.cpu >= 0) == (options.rings == Rings::kPerCpu));
    if (count.event != 0) continue;
    by_few += count.tid == few.tid() ? count.counted : 0;
    by_many += count.tid == many.tid() ? count.counted : 0;
  }
  CHECK(by_few >= kFew);
  CHECK(by_few < kMany);
  CHECK(by_many >= kMany);
  CheckCountsSum(*sampler);
}

TEST_CASE("the counts of threads that have ended, and of events that were replaced, are in one row", "[counts][law]") {
  constexpr size_t kPages = 200;
  SamplerOptions options = testing::FaultOptions(1 << 20);
  options.rings = GENERATE(Rings::kPerCpu, Rings::kPerThread);
  CAPTURE(options.rings);
  Toucher ends(kPages);
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  ends.Touch();
  const int tid = ends.tid();
  ends.End();
  if (options.rings == Rings::kPerThread) {
    while (CountOf(*sampler, tid) != 0) testing::DrainAll(*sampler);  // Until its ring is closed.
  } else {
    REQUIRE(sampler->SetRate(0, Period{2}).ok());
    testing::DrainAll(*sampler);
  }
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CHECK(CountOf(*sampler, -1) >= kPages);
  CHECK(CountOf(*sampler, tid) == 0);
  CheckCountsSum(*sampler);
}

TEST_CASE("both sets of overwriting rings, and full dumps, have counts", "[counts][law]") {
  testing::FreshPages memory(100);
  SamplerOptions options = testing::FaultOptions();
  options.mode = RingMode::kOverwrite;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 30);
  REQUIRE(sampler->Snapshot().ok());
  memory.Touch(30, 50);
  REQUIRE(sampler->Stop().ok());
  CHECK(sampler->counts().size() == 1);
  CHECK(CountOf(*sampler, gettid()) >= 80);
  CheckCountsSum(*sampler);
  options = {.events = {{.event = "task-clock"}}, .stack = CallStack::UserDump(1 << 10, {.every = 4})};
  auto full = Sampler::Open(options);
  REQUIRE(full.ok());
  REQUIRE(full->Start().ok());
  testing::Spin(100'000);
  REQUIRE(full->Stop().ok());
  const std::vector<SamplerCount> counts = full->counts();
  REQUIRE(counts.size() == 2);
  CHECK((!counts[0].full_stack && counts[1].full_stack && counts[0].counted > 0 && counts[1].counted > 0));
  CheckCountsSum(*full);
}

TEST_CASE("the counts of whole CPUs are each CPU's own, and sum to the total", "[counts][law]") {
  constexpr size_t kFew = 100, kMany = 1000;
  const testing::TwoCpus cpus;
  testing::FreshPages memory(kFew + kMany);
  SamplerOptions options = testing::FaultOptions();
  options.events.push_back({.event = "cpu-clock"});
  if (absl::IsPermissionDenied(Sampler::Open(options, Target::Cpu(cpus.cpu(0))).status())) {
    SKIP_TEST("this user may not watch CPUs");
  }
  const bool one_cpu = GENERATE(false, true);
  CAPTURE(one_cpu);
  auto sampler = Sampler::Open(options, one_cpu ? Target::Cpu(cpus.cpu(0)) : Target::System());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  cpus.MoveTo(0);
  memory.Touch(0, kFew);
  if (cpus.has_both()) {
    cpus.MoveTo(1);
    memory.Touch(kFew, kMany);
  }
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const std::vector<SamplerCount> counts = sampler->counts();
  CHECK(counts.size() == sampler->rings() * options.events.size());
  CHECK((!one_cpu || sampler->rings() == 1));
  std::map<int, uint64_t> faults;
  std::tuple<uint32_t, int> before{0, -1};
  for (const SamplerCount& count : counts) {
    CHECK(count.tid == -1);
    CHECK(count.cpu >= 0);
    CHECK((!one_cpu || count.cpu == cpus.cpu(0)));
    CHECK(std::tuple{count.event, count.cpu} > before);  // A row for each event and CPU, in this order.
    before = {count.event, count.cpu};
    if (count.event == 0) faults[count.cpu] = count.counted;
  }
  CHECK(faults[cpus.cpu(0)] >= kFew);
  CHECK((one_cpu || !cpus.has_both() || faults[cpus.cpu(1)] >= kMany));
  CheckCountsSum(*sampler);
}

}  // namespace
}  // namespace perfkit
