// Slots under threads that come and go: the total is always one that was true, and in the end the known work.
#include "src/count/frame/slot_table.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

using Words = std::array<uint64_t, 4>;

TEST_CASE("slots: totals add what was published last") {
  SlotTable table(4, 8);
  const uint32_t a = table.Claim(), b = table.Claim();
  REQUIRE(a != b);
  Words sums;
  uint32_t missing;
  REQUIRE(table.Total(sums, &missing));
  CHECK(sums == Words{});
  table.Publish(a, Words{1, 2, 3, 4}, 0);
  table.Publish(b, Words{10, 20, 30, 40}, 0);
  table.Publish(a, Words{5, 6, 7, 8}, 0);
  REQUIRE(table.Total(sums, &missing));
  CHECK(sums == Words{15, 26, 37, 48});
  CHECK(missing == 0);
  table.Publish(a, Words{5, 6, 7, 8}, 0b100);
  REQUIRE(table.Total(sums, &missing));
  CHECK(missing == 0b100);  // whichever of them lacks it
  CHECK(table.claimed() == 2);
}

TEST_CASE("slots: an ended thread's words stay, and the next owner counts on") {
  SlotTable table(4, 1);
  const uint32_t first = table.Claim();
  CHECK(table.Claim() == SlotTable::kNoSlot);
  table.Publish(first, Words{1, 2, 3, 4}, 0b10);
  table.Release(first);
  Words sums, carry;
  uint32_t missing;
  table.Total(sums, &missing);
  CHECK(sums == Words{1, 2, 3, 4});
  const uint32_t second = table.Claim();
  REQUIRE(second == first);
  table.Carry(second, carry);
  CHECK(carry == Words{1, 2, 3, 4});
  table.Publish(second, Words{11, 2, 3, 4}, 0);
  table.Total(sums, &missing);
  CHECK(sums == Words{11, 2, 3, 4});
  CHECK(missing == 0b10);  // a sum with a hole stays one
}

TEST_CASE("slots: churn: no total is torn, none goes back, the last is exact") {
  constexpr int kGenerations = 40, kThreads = 4, kSteps = 500;
  SlotTable table(4, kThreads);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    uint64_t before = 0;
    while (!done.load(std::memory_order_acquire)) {
      Words sums;
      uint32_t missing;
      REQUIRE(table.Total(sums, &missing));
      // Every publication has words in the ratio 1 : 2 : 3 : 4, so every true total has.
      REQUIRE(sums[1] == 2 * sums[0]);
      REQUIRE(sums[2] == 3 * sums[0]);
      REQUIRE(sums[3] == 4 * sums[0]);
      REQUIRE(sums[0] >= before);
      before = sums[0];
    }
  });
  for (int generation = 0; generation < kGenerations; ++generation) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const uint32_t slot = table.Claim();
        Words words;
        table.Carry(slot, words);
        for (int step = 0; step < kSteps; ++step) {
          for (size_t w = 0; w < words.size(); ++w) words[w] += w + 1;
          table.Publish(slot, words, 0);
        }
        table.Release(slot);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  done.store(true, std::memory_order_release);
  reader.join();
  Words sums;
  uint32_t missing;
  REQUIRE(table.Total(sums, &missing));
  CHECK(sums[0] == uint64_t{kGenerations} * kThreads * kSteps);
  CHECK(table.claimed() == 0);
}

// The writer of the table below: a slot has one owner, which may be a handler that interrupts the reader.
SlotTable* storm_table = nullptr;
uint64_t storm_value = 0;

void PublishTwice() {
  std::array<uint64_t, SlotTable::kMaxWords> words;
  for (int i = 0; i < 2; ++i) {
    words.fill(++storm_value);
    storm_table->Publish(0, words, 0);
  }
}

TEST_CASE("slots: no total is torn by publications in the middle of it", "[law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  SlotTable table(SlotTable::kMaxWords, 1);
  REQUIRE(table.Claim() == 0);
  storm_table = &table;
  storm_value = 0;
  const testing::SignalStorm storm(PublishTwice);
  uint64_t before = 0;
  while (storm.handled() < 500) {
    std::array<uint64_t, SlotTable::kMaxWords> sums;
    uint32_t missing;
    REQUIRE(table.Total(sums, &missing));
    for (const uint64_t sum : sums) REQUIRE(sum == sums[0]);
    REQUIRE(sums[0] >= before);
    before = sums[0];
  }
}

// The reader of the table below is a handler that interrupts its writer.
std::atomic<uint64_t> storm_torn{0};

void ReadTotal() {
  std::array<uint64_t, SlotTable::kMaxWords> sums;
  uint32_t missing;
  bool whole = storm_table->Total(sums, &missing);
  for (const uint64_t sum : sums) whole = whole && sum == sums[0];
  if (!whole) storm_torn.fetch_add(1);
}

TEST_CASE("slots: a total in the middle of a publication is the one before it", "[law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  SlotTable table(SlotTable::kMaxWords, 1);
  REQUIRE(table.Claim() == 0);
  storm_table = &table;
  storm_torn = 0;
  const testing::SignalStorm storm(ReadTotal);
  std::array<uint64_t, SlotTable::kMaxWords> words;
  for (uint64_t value = 1; storm.handled() < 500; ++value) {
    words.fill(value);
    table.Publish(0, words, 0);
  }
  CHECK(storm_torn == 0);
}

TEST_CASE("slots: more words than there is room for are cut, not written past") {
  SlotTable table(1000, 1);
  CHECK(table.words() == SlotTable::kMaxWords);
}

}  // namespace
}  // namespace perfkit::count
