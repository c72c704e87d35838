// Known answers, planted regressions, and no flake under load: what an assertion is worth.
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "perfkit/testing.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using namespace event;

void* (*volatile g_allocate)(size_t) = malloc;

// Whatever has been here may have been seen by anyone: else compilers drop an allocation that is only freed.
void* volatile g_seen = nullptr;

void Free(void* memory) {
  g_seen = memory;
  free(g_seen);
}

void Allocate(int n) {
  for (int i = 0; i < n; ++i) free(g_allocate(16));
}

TEST_CASE("allocations by every entry, and by new, count once each", "[known]") {
  const auto all = [&] {
    void* memory = g_allocate(1);
    g_seen = memory;
    memory = realloc(g_seen, 100);
    Free(memory);
    Free(calloc(3, 5));
    Free(memalign(64, 10));
    Free(aligned_alloc(64, 128));
    if (posix_memalign(&memory, 64, 10) == 0) Free(memory);
    Free(valloc(10));
    Free(pvalloc(10));
    g_seen = new int(7);
    delete static_cast<int*>(g_seen);
    const auto owned = std::make_unique<int>(3);
    g_seen = owned.get();
    std::vector<int> numbers(10, *owned);
    g_seen = numbers.data();
    return numbers[3];
  };
  const auto m = Measure({kAllocations}, all);
  CHECK(m.costs[0].read_path == "wrapped malloc");
  if (testing::kSanitized) {
    CHECK(m.costs[0].value() >= 6);  // one of its entries does not call the hook
  } else {
    CHECK_THAT(m, Costs(11, kAllocations));
  }
}

TEST_CASE("posix_memalign still refuses what it must", "[known]") {
  if (testing::kSanitized) SKIP_TEST("the sanitizer's own posix_memalign ends the program");
  void* memory = nullptr;
  CHECK(posix_memalign(&memory, 3, 10) == EINVAL);
  CHECK(posix_memalign(&memory, 4, 10) == EINVAL);
}

TEST_CASE("a region that ends on another thread has no number", "[known]") {
  static std::atomic<pid_t> thread = 1;
  testing::FakeKernel fake;
  fake.below().gettid = [] { return thread.load(); };
  const auto move = [] {
    Allocate(3);
    ++thread;  // as a coroutine that another thread resumes
  };
  for (const EventType& event : {kAllocations, kPageFaults}) {
    CAPTURE(event.name);
    const auto m = Measure({event}, move);
    CHECK_FALSE(m.costs[0].measured());
    CHECK_THAT(m.costs[0].unmeasurable, Catch::Matchers::Contains("began and ended on different threads"));
  }
  CHECK_THAT(Measure({kAllocations}, [] { Allocate(3); }), Costs(3, kAllocations));
}

TEST_CASE("allocations of other threads are not ours", "[known]") {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) Allocate(1);
  });
  for (int i = 0; i < 20; ++i) CHECK_THAT(Measure({kAllocations}, [] { Allocate(5); }), Costs(5, kAllocations));
  stop = true;
  other.join();
}

#if defined(__x86_64__)
template <int kRounds>
void Loop() {
  asm volatile("mov %0, %%ecx\n 1: dec %%ecx\n jnz 1b" ::"i"(kRounds) : "ecx", "cc");
}
#endif

// Loads every CPU twice while it lives.
class Load {
 public:
  Load() {
    for (unsigned t = 0; t < 2 * std::thread::hardware_concurrency(); ++t) {
      threads_.emplace_back([this] {
        while (!stop_) testing::Spin(1000);
      });
    }
  }
  ~Load() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Assertions on known answers that did not pass, of `rounds` times four.
int Flakes(int rounds) {
  const Load load;
  testing::FreshPages memory(256);
  int flakes = 0;
  const auto expect = [&](const Verdict& verdict) {
    if (verdict.outcome == Outcome::kPass) return;
    UNSCOPED_INFO(verdict.why);
    ++flakes;
  };
  for (int i = 0; i < rounds; ++i) {
    const auto touch = [&] {
      memory.Forget();
      memory.Touch(0, 256);
    };
    const auto faults = Measure({kPageFaults}, touch);
    if (testing::kSanitized) {
      flakes += !testing::AreFaultsOf(static_cast<uint64_t>(faults.costs[0].value()), 256);
    } else {
      expect(JudgeCosts(faults, 256, kPageFaults));
    }
    expect(JudgeCosts(Measure({kAllocations}, [] { Allocate(100); }), 100, kAllocations));
#if defined(__x86_64__)
    const MeasureOptions stepped{.only = MeasureBackend::kStepper};
    const auto seven = [] {
      asm volatile(".rept 7\n mov $39, %%eax\n syscall\n .endr" ::: "rax", "rcx", "r11", "memory");
    };
    const auto m = Measure({kInstructions, kSyscalls}, seven, stepped);
    expect(JudgeCosts(m, 14, kInstructions));
    expect(JudgeCosts(m, 7, kSyscalls));
#endif
  }
  return flakes;
}

TEST_CASE("exact assertions do not flake under twice the machine's load", "[known][law]") { CHECK(Flakes(15) == 0); }

TEST_CASE("exact assertions do not flake, 10,000 repetitions of each", "[.heavy][law]") { CHECK(Flakes(10'000) == 0); }

TEST_CASE("one allocation more is caught each time", "[planted]") {
  for (int i = 0; i < 100; ++i) {
    CHECK(JudgeCosts(Measure({kAllocations}, [] { Allocate(100); }), UpTo(100), kAllocations).outcome ==
          Outcome::kPass);
    CHECK(JudgeCosts(Measure({kAllocations}, [] { Allocate(101); }), UpTo(100), kAllocations).outcome ==
          Outcome::kFail);
  }
}

#if defined(__x86_64__)
TEST_CASE("one percent more instructions is caught each time", "[planted]") {
  const MeasureOptions stepped{.only = MeasureBackend::kStepper};
  const auto is = Measure(
      {kInstructions}, [] { Loop<500>(); }, stepped);
  if (!is.costs[0].measured()) SKIP_TEST(is.costs[0].unmeasurable);
  const int64_t was = is.costs[0].value();
  for (int i = 0; i < 50; ++i) {
    const auto same = Measure(
        {kInstructions}, [] { Loop<500>(); }, stepped);
    const auto more = Measure(
        {kInstructions}, [] { Loop<505>(); }, stepped);
    CHECK(JudgeCosts(same, UpTo(was), kInstructions).outcome == Outcome::kPass);
    CHECK(JudgeCosts(more, UpTo(was), kInstructions).outcome == Outcome::kFail);
    const auto both = Compare(
        {kInstructions}, [] { Loop<505>(); }, [] { Loop<500>(); }, stepped);
    CHECK(JudgeUses(both, 1.0, kInstructions).outcome == Outcome::kFail);
    CHECK(JudgeUses(both, 1.011, kInstructions).outcome == Outcome::kPass);
  }
}

// An algorithm that is told from a faster one: linear search where a binary one was promised.
TEST_CASE("growth of real code is told by stepped instructions", "[planted]") {
  if (testing::kSanitized) SKIP_TEST("the sanitizer's own instructions would be counted too");
  std::vector<int> sorted(1 << 12);
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<int>(i);
  const auto binary = [&](uint64_t n) {
    return std::binary_search(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n), -1);
  };
  const auto linear = [&](uint64_t n) {
    return std::find(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n), -1) - sorted.begin();
  };
  const MeasureOptions stepped{.only = MeasureBackend::kStepper};
  const auto fast = Scaling({kInstructions}, binary, {1 << 8, 1 << 10, 1 << 12}, stepped);
  if (!fast.at[0].costs[0].measured()) SKIP_TEST(fast.at[0].costs[0].unmeasurable);
  const auto slow = Scaling({kInstructions}, linear, {1 << 8, 1 << 10, 1 << 12}, stepped);
  CHECK_THAT(fast, GrowsNoFasterThan(kLogN, kInstructions));
  CHECK_THAT(slow, GrowsNoFasterThan(kN, kInstructions));
  CHECK(JudgeGrowth(slow, kLogN, kInstructions).outcome == Outcome::kFail);
}
#endif

TEST_CASE("a metric of allocations and faults has a known answer", "[known][metric]") {
  testing::FreshPages pages(10);
  const auto m = Measure({kAllocations, kPageFaults}, [&] {
    Allocate(2);
    pages.Forget();
    pages.Touch(0, 10);
  });
  if (testing::kSanitized) SKIP_TEST("a sanitizer allocates and faults by itself");
  CHECK_THAT(m, MetricIn({2, 2}, "allocations") && MetricAtLeast(5, "page-faults / allocations"));
  CHECK(JudgeMetric(m, "page-faults / allocations", {0, 4.9}).outcome == Outcome::kFail);
}

}  // namespace
}  // namespace perfkit
