// ThreadSlots against work of known size, on threads that come and go.
#include "perfkit/thread_slots.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

void TouchPages(size_t pages) { testing::FreshPages(pages).Touch(0, pages); }

TEST_CASE("thread slots: the total of threads that come and go is their work") {
  ThreadSlots slots({"page-faults", "task-clock"});
  if (!slots.reason(0).empty()) SKIP_TEST(std::string(slots.reason(0)));
  constexpr size_t kRounds = 10, kThreads = 4, kPages = 200;
  SlotTotals before, after;
  uint64_t expected = 0;
  const testing::OtherFaults others(RUSAGE_SELF);
  slots.Total(before);
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        slots.Attach();
        TouchPages(kPages);
        if (t % 2 == 0) slots.Publish();  // the others publish by ending
        TouchPages(kPages);
      });
      expected += 2 * kPages;
    }
    for (std::thread& thread : threads) thread.join();
    slots.Total(after);
    const uint64_t faults = slots.count(after, 0).value;
    CHECK(after.threads == 0);
    CHECK(testing::AreFaultsOf(faults, expected, others.Beside(expected)));
  }
  CHECK(slots.count(after, 1).value > 0);
}

TEST_CASE("thread slots: a living thread counts up to what it published") {
  ThreadSlots slots({"page-faults"});
  if (!slots.reason(0).empty()) SKIP_TEST(std::string(slots.reason(0)));
  REQUIRE(slots.Attach());
  SlotTotals before, unpublished, after;
  uint64_t others = 0;
  for (int round = 0; round < 2; ++round) {  // the first one also runs its own code for the first time
    const testing::OtherFaults of_round;
    slots.Publish();
    slots.Total(before);
    TouchPages(100);
    slots.Total(unpublished);
    slots.Publish();
    slots.Total(after);
    others = of_round.Beside(100);
  }
  CHECK(unpublished.values[0] == before.values[0]);
  CHECK(testing::AreFaultsOf(after.values[0] - before.values[0], 100, others));
  CHECK(after.threads == 1);
}

TEST_CASE("thread slots: more threads than slots are refused, and said so") {
  ThreadSlots slots({"page-faults"}, {.max_threads = 1});
  CHECK(slots.Attach());
  std::thread([&] {
    CHECK(!slots.Attach());
    slots.Publish();
  }).join();
  CHECK(slots.refused() == 1);
  CHECK(slots.Attach());
}

TEST_CASE("thread slots: any number of threads may come one after the other") {
  ThreadSlots slots({"page-faults"}, {.max_threads = 2});
  for (int i = 0; i < 300; ++i) std::thread([&] { slots.Publish(); }).join();
  CHECK(slots.refused() == 0);
  SlotTotals totals;
  slots.Total(totals);
  CHECK(totals.threads == 0);
}

TEST_CASE("thread slots: a refused thread is counted from when a slot is free") {
  ThreadSlots slots({"page-faults"}, {.max_threads = 1});
  std::atomic<int> stage{0};
  std::thread first([&] {
    slots.Publish();
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  slots.Publish();
  CHECK(slots.refused() == 1);
  stage = 2;
  first.join();
  slots.Publish();
  SlotTotals totals;
  slots.Total(totals);
  CHECK(totals.threads == 1);
  CHECK(slots.refused() == 1);
}

TEST_CASE("thread slots: what cannot be counted has a reason, and is missing") {
  ThreadSlots slots({"page-faults", "no-such-event"});
  slots.Publish();
  SlotTotals totals;
  slots.Total(totals);
  CHECK(std::string(slots.reason(1)).find("no-such-event") != std::string::npos);
  CHECK(!slots.count(totals, 1).validity.counted());
  CHECK(!slots.count(totals, 2).validity.counted());
}

TEST_CASE("thread slots: may end before its threads") {
  auto slots = std::make_unique<ThreadSlots>(std::vector<EventSpec>{"page-faults"});
  std::atomic<int> stage{0};
  std::thread thread([&] {
    slots->Publish();
    stage.store(1);
    while (stage.load() != 2) std::this_thread::yield();
  });
  while (stage.load() != 1) std::this_thread::yield();
  slots.reset();
  stage.store(2);
  thread.join();
}

}  // namespace
}  // namespace perfkit
