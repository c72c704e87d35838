// A sampler of all threads: existing ones, later ones, and ones that start during the attaching; each sample once.
#include <sched.h>
#include <sys/wait.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FaultOptions;
using testing::FreshPages;

// The pages of one thread, and how often samples report each of them.
using FaultsByThread = std::map<uint32_t, std::map<uint64_t, int>>;

void Collect(Sampler& sampler, FaultsByThread& faults) {
  uint64_t last = 0;
  sampler.Drain([&](const SamplerRecord& record) {
    if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
    const std::optional<Sample> sample = Sample::Parse(record, sampler.layout());
    REQUIRE(sample.has_value());
    ++faults[sample->task()->tid][*sample->address() >> 12];
    CHECK(*sample->time_ns() >= last);
    last = *sample->time_ns();
  });
}

// Returns how many of `memory`'s pages thread `tid` has exactly `times` samples of.
size_t PagesSeen(const FaultsByThread& faults, pid_t tid, const FreshPages& memory, int times) {
  const auto found = faults.find(static_cast<uint32_t>(tid));
  size_t pages = 0;
  for (size_t i = 0; i < memory.pages(); ++i) {
    int seen = 0;
    if (found != faults.end()) {
      const auto page = found->second.find((reinterpret_cast<uint64_t>(memory.data()) >> 12) + i);
      if (page != found->second.end()) seen = page->second;
    }
    pages += seen == times;
  }
  return pages;
}

size_t PagesSeenOnce(const FaultsByThread& faults, pid_t tid, const FreshPages& memory) {
  return PagesSeen(faults, tid, memory, 1);
}

// A thread that touches its pages on request, and has a known tid.
struct PageToucher {
  explicit PageToucher(size_t pages) : memory(pages), thread([this] { Run(); }) {
    while (tid == 0) std::this_thread::yield();
  }
  void Run() {
    const auto nap = [] { std::this_thread::sleep_for(std::chrono::microseconds(50)); };
    nap();
    tid = gettid();  // from here on it takes no faults of its own, which might be on their way while a ring is read
    while (!go) nap();
    memory.Touch(0, memory.pages());
  }
  void Finish() {
    go = true;
    if (thread.joinable()) thread.join();
  }
  ~PageToucher() { Finish(); }

  FreshPages memory;
  std::atomic<pid_t> tid{0};
  std::atomic<bool> go{false};
  std::thread thread;
};

void CheckAllThreads(SamplerOptions::Rings rings) {
  // A sanitizer's runtime now and then takes a thousand faults of its own between two drains.
  SamplerOptions options = FaultOptions(testing::kSanitized ? 512 << 10 : 64 << 10);
  options.rings = rings;
  options.fields |= kSampleCpu;
  std::vector<std::unique_ptr<PageToucher>> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(std::make_unique<PageToucher>(50));
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  FaultsByThread faults;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<PageToucher>(50));
    Collect(*sampler, faults);  // attaches the late one with a ring of its own, where that is asked
  }
  for (const auto& worker : workers) {
    worker->Finish();
    Collect(*sampler, faults);  // at once: a sanitizer's runtime takes hundreds of faults of its own
  }
  REQUIRE(sampler->Stop().ok());
  Collect(*sampler, faults);
  for (const auto& worker : workers) CHECK(PagesSeenOnce(faults, worker->tid, worker->memory) == 50);
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  CHECK(stats.events[0].lost == 0);
  CHECK(stats.late == 0);
}

TEST_CASE("threads that run and threads that start later are sampled, one ring a CPU", "[threads]") {
  CheckAllThreads(SamplerOptions::Rings::kPerCpu);
}

TEST_CASE("threads that run and threads that start later are sampled, one ring a thread", "[threads]") {
  CheckAllThreads(SamplerOptions::Rings::kPerThread);
}

TEST_CASE("children of this process are not sampled", "[threads]") {
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const pid_t child = fork();
  if (child == 0) {
    FreshPages memory(100);
    memory.Touch(0, 100);
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  REQUIRE(sampler->Stop().ok());
  FaultsByThread faults;
  Collect(*sampler, faults);
  for (const auto& [tid, pages] : faults) CHECK(tid != static_cast<uint32_t>(child));
  testing::CheckAccountingBalances(sampler->stats());
}

// Starts threads as long as it exists: each touches its pages, starts the next one, and ends.
class Churn {
 public:
  static constexpr size_t kPages = 8;

  Churn() : thread_([this] { Run(); }) {}
  ~Churn() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Threads started while `counting`: their pages are known.
  std::atomic<bool> counting{false};
  std::vector<std::unique_ptr<FreshPages>> pages;
  std::vector<pid_t> tids;
  static inline std::atomic<uint64_t> counted{0};  // The same threads, of all churns.

 private:
  void Run() {
    while (!stop_) {
      const bool count = counting;
      auto memory = std::make_unique<FreshPages>(kPages);
      pid_t tid = 0;
      std::thread([&] {
        tid = gettid();
        std::thread([] { FreshPages(2).Touch(0, 2); }).join();
        memory->Touch(0, kPages);
      }).join();
      if (!count || !counting) continue;
      pages.push_back(std::move(memory));
      tids.push_back(tid);
      ++counted;
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Repeats as often as necessary: if threads start faster than they are listed, Open says so and may be tried again.
absl::StatusOr<Sampler> OpenBesideChurn() {
  absl::StatusOr<Sampler> sampler = absl::AbortedError("not tried yet");
  for (int i = 0; i < 100 && absl::IsAborted(sampler.status()); ++i) {
    sampler = Sampler::Open(FaultOptions(testing::kSanitized ? 4 << 20 : 1 << 20), Target::AllThreads());
  }
  return sampler;
}

// Attaching beside a churn of threads: a thread that starts after Start is seen exactly once, in every round; where a
// drain came too late for that, what is missing is counted as lost.
void SampleChurn(int rounds) {
  uint64_t duplicates = 0, threads = 0;
  int whole = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Churn>> churns;
    for (int i = 0; i < 3; ++i) churns.push_back(std::make_unique<Churn>());
    auto sampler = OpenBesideChurn();
    INFO(sampler.status());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    for (auto& churn : churns) churn->counting = true;
    FaultsByThread faults;
    const uint64_t before = Churn::counted;
    for (int i = 0; i < 5 || Churn::counted == before; ++i) {
      testing::Sleep(4'000'000);
      Collect(*sampler, faults);
    }
    for (auto& churn : churns) churn->Stop();
    REQUIRE(sampler->Stop().ok());
    Collect(*sampler, faults);
    const SamplerStats stats = sampler->stats();
    INFO("round " << round << ", lost " << stats.events[0].lost);
    size_t missing = 0;
    for (const auto& churn : churns) {
      for (size_t i = 0; i < churn->tids.size(); ++i) {
        const size_t unseen = PagesSeen(faults, churn->tids[i], *churn->pages[i], 0);
        CHECK(PagesSeenOnce(faults, churn->tids[i], *churn->pages[i]) + unseen == Churn::kPages);
        missing += unseen;
      }
      threads += churn->tids.size();
    }
    CHECK(missing <= stats.events[0].lost);
    whole += missing == 0;
    testing::CheckAccountingBalances(stats);
    duplicates += stats.events[0].duplicates;
  }
  std::printf("churn: %d rounds, %lu threads, %lu duplicates dropped\n", rounds, threads, duplicates);
  if (whole == 0) SKIP_TEST("a busy machine: samples were lost in each round");
}

// P starts N between the events of P's first CPU and those of its second one. Later N starts M. Both have two copies of
// an event on the first CPU.
std::atomic<pid_t> g_parent{0};
std::atomic<int> g_step{0};

int OpenAndLetBear(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  const int fd = sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  if (pid == g_parent && cpu == 0 && attr->config == sys::kSwPageFaults) {
    g_step = 1;
    while (g_step < 2) std::this_thread::yield();
  }
  return fd;
}

void OnCpu(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

// On each CPU in turn.
void TouchOnAllCpus(FreshPages& memory, size_t cpus) {
  for (size_t i = 0; i < cpus; ++i) {
    OnCpu(static_cast<int>(i));
    memory.Touch(i * memory.pages() / cpus, memory.pages() / cpus);
  }
}

TEST_CASE("a thread that is born while its parent is attached counts once, and so do its children", "[threads]") {
  const size_t cpus = std::thread::hardware_concurrency();
  if (cpus < 2) SKIP_TEST("this takes two CPUs");
  g_step = 0;
  FreshPages of_n(cpus * 20), of_m(cpus * 20);
  pid_t n = 0, m = 0;
  std::thread parent([&] {
    g_parent = gettid();
    while (g_step < 1) std::this_thread::yield();
    std::thread([&] {
      n = gettid();
      g_step = 2;
      while (g_step < 3) std::this_thread::yield();
      TouchOnAllCpus(of_n, cpus);
      std::thread([&] {
        m = gettid();
        TouchOnAllCpus(of_m, cpus);
      }).join();
    }).join();
  });
  while (g_parent == 0) std::this_thread::yield();
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenAndLetBear;
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  g_step = 3;
  parent.join();
  REQUIRE(sampler->Stop().ok());
  FaultsByThread faults;
  Collect(*sampler, faults);
  CHECK(PagesSeenOnce(faults, n, of_n) == of_n.pages());
  CHECK(PagesSeenOnce(faults, m, of_m) == of_m.pages());
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].duplicates >= 40);  // on the first CPU: of N and of M
  testing::CheckAccountingBalances(stats);
}

TEST_CASE("each sample comes once while threads come and go", "[threads][law]") { SampleChurn(6); }

TEST_CASE("each sample comes once in many rounds of threads that come and go", "[.heavy][law]") { SampleChurn(200); }

TEST_CASE("a thousand threads, two rings", "[threads][law]") {
  constexpr int kThreads = testing::kSanitized ? 100 : 1000;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, end{false};
  std::vector<std::thread> threads;
  FreshPages memory(kThreads);
  std::vector<pid_t> tids(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      tids[static_cast<size_t>(i)] = gettid();
      ++ready;
      go.wait(false);
      memory.Touch(static_cast<size_t>(i), 1);
      ++ready;
      end.wait(false);
    });
  }
  while (ready < kThreads) testing::Sleep(1'000'000);
  {
    auto sampler = Sampler::Open(FaultOptions(1 << 20), Target::AllThreads());
    INFO(sampler.status());
    REQUIRE(sampler.ok());
    CHECK(sampler->rings() <= std::thread::hardware_concurrency());
    REQUIRE(sampler->Start().ok());
    go = true;
    go.notify_all();
    while (ready < 2 * kThreads) testing::Sleep(1'000'000);
    REQUIRE(sampler->Stop().ok());
    FaultsByThread faults;
    Collect(*sampler, faults);
    size_t seen = 0;
    for (size_t i = 0; i < kThreads; ++i) {
      const uint64_t page = (reinterpret_cast<uint64_t>(memory.data()) >> 12) + i;
      seen += faults[static_cast<uint32_t>(tids[i])][page] == 1;
    }
    CHECK(seen == kThreads);
    testing::CheckAccountingBalances(sampler->stats());
  }
  end = true;
  end.notify_all();
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("an ordinary user samples all of its threads", "[threads]") {
  CHECK(testing::AsOrdinaryUser([] {
    auto sampler = Sampler::Open(FaultOptions(64 << 10), Target::AllThreads());
    if (!sampler.ok() || !sampler->Start().ok()) return false;
    FreshPages memory(64);
    std::thread([&] { memory.Touch(0, 64); }).join();
    if (!sampler->Stop().ok()) return false;
    const uint64_t samples = testing::CountSamples(*sampler)[0];
    const EventAccounting accounting = sampler->stats().events[0];
    return samples >= 64 && accounting.accounted() == accounting.counted;
  }));
}

TEST_CASE("a CPU is sampled where that is allowed", "[threads][law]") {
  SamplerOptions options;
  options.events = {{.event = "cpu-clock", .rate = Frequency{1000}}};
  options.fields = kSampleCpu;
  auto sampler = Sampler::Open(options, Target::Cpu(0));
  if (absl::IsPermissionDenied(sampler.status())) SKIP_TEST("this user may not watch CPUs");
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::thread([&] {
    OnCpu(0);
    const uint64_t begin = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < begin + 50'000'000) testing::Spin(100'000);
  }).join();
  REQUIRE(sampler->Stop().ok());
  uint64_t samples = 0;
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    ++samples;
    CHECK(*sample.cpu() == 0);
  });
  CHECK(samples > 5);
}

}  // namespace
}  // namespace perfkit
