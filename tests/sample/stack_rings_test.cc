// The threads' own rings: searched, claimed and given back by many threads at once.
#include "src/sample/stack_rings.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <thread>

#include "src/sample/live_record.h"
#include "tests/support/work.h"

namespace perfkit::sample {
namespace {

StackRings MakeRings(size_t rings, size_t bytes = 4096) {
  std::optional<StackRings> made = StackRings::Make({.rings = rings, .ring_bytes = bytes, .depth = 8});
  REQUIRE(made.has_value());
  return *std::move(made);
}

// Writes a record of `words` words after its header, as a handler does: not instrumented.
PERFKIT_IN_HANDLER void PutRecord(StackRing& ring, const StackRings& rings, uint16_t words, uint64_t first) {
  uint64_t at = ring.page.data_head;
  const uint64_t mask = rings.shape().ring_bytes - 1;
  for (uint16_t i = 0; i <= words; ++i, at += 8) {
    *reinterpret_cast<uint64_t*>(ring.data + (at & mask)) = i == 0 ? uint64_t{8u * (words + 1u)} << 48 | 22 : first + i;
  }
  ring.rest_until_ns = 1;
  StackRings::Publish(ring, at);
}

StackRing* Enter(StackRings& rings, pid_t tid, uint64_t now = 1) {
  bool nested = false;
  StackRing* const ring = rings.Enter(tid, now, nested);
  CHECK_FALSE(nested);
  return ring;
}

// Writes to each page of [begin, begin + bytes), and returns how many page faults this thread had meanwhile. Not
// instrumented: a sanitizer's own memory is not present.
PERFKIT_IN_HANDLER long FaultsOfWriting(std::byte* begin, size_t bytes) {
  rusage before, after;
  if (getrusage(RUSAGE_THREAD, &before) != 0) return -1;
  for (size_t at = 0; at < bytes; at += 4096) *reinterpret_cast<volatile uint64_t*>(begin + at) = at;
  if (getrusage(RUSAGE_THREAD, &after) != 0) return -1;
  return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
}

TEST_CASE("a thread has no page faults by writing what was prepared", "[live][rings]") {
  constexpr size_t kBytes = 256 << 10;
  for (const size_t count : {2, 4}) {
    StackRings rings = MakeRings(count, kBytes);
    StackRing* const ring = Enter(rings, 100);
    REQUIRE(ring != nullptr);
    if (count > 2) rings.PopulateAhead();  // Two rings need no drain before.
    CHECK(FaultsOfWriting(ring->data, StackRings::kAhead) == 0);
    CHECK(FaultsOfWriting(reinterpret_cast<std::byte*>(ring->frames), sizeof(StackFrame)) == 0);
    for (const size_t head : {size_t{1} << 10, size_t{100} << 10, kBytes - 8, kBytes + 8, 5 * kBytes}) {
      ring->page.data_head = head;
      rings.PopulateAhead();
      CHECK(FaultsOfWriting(ring->data, std::min(head + StackRings::kAhead, kBytes)) == 0);
    }
    CHECK(ring->present == kBytes);
  }
}

// As a handler's stores: not instrumented. Returns how many words did not stay as they were written.
PERFKIT_IN_HANDLER size_t WriteFirstWords(std::byte* data, size_t pages, uint64_t rounds) {
  const auto first_word = [&](uint64_t i) { return reinterpret_cast<uint64_t*>(data + i % pages * 4096); };
  size_t lost = 0;
  for (uint64_t i = 1; i <= rounds; ++i) {
    __atomic_store_n(first_word(i), i, __ATOMIC_RELAXED);
    lost += __atomic_load_n(first_word(i - 1), __ATOMIC_RELAXED) != i - 1;
  }
  return lost;
}

TEST_CASE("no word is lost that a handler writes while its page is prepared", "[live][rings]") {
  constexpr size_t kBytes = 256 << 10;
  StackRings rings = MakeRings(4, kBytes);
  StackRing* const ring = Enter(rings, 100);
  REQUIRE(ring != nullptr);
  ring->page.data_head = kBytes;
  std::atomic<bool> has_ended{false};
  size_t lost = 0;
  std::thread writer([&] {
    lost = WriteFirstWords(ring->data, kBytes / 4096, 2'000'000);
    has_ended = true;
  });
  while (!has_ended) {
    ring->present = 0;
    rings.PopulateAhead();
  }
  writer.join();
  CHECK(lost == 0);
}

TEST_CASE("a thread finds its ring again, and the last one finds none", "[live][rings]") {
  StackRings rings = MakeRings(8);
  std::set<StackRing*> mine;
  for (pid_t tid = 100; tid < 108; ++tid) {
    StackRing* const ring = Enter(rings, tid);
    REQUIRE(ring != nullptr);
    CHECK(mine.insert(ring).second);
    rings.Leave(*ring);
    CHECK(Enter(rings, tid) == ring);
    rings.Leave(*ring);
  }
  CHECK(rings.taken() == 8);
  CHECK(Enter(rings, 108) == nullptr);
  rings.Ended(103);
  rings.GiveBack(false, 2);
  CHECK(rings.taken() == 7);
  CHECK(Enter(rings, 108) != nullptr);
}

TEST_CASE("a ring that is in use, or not yet read, is not given back", "[live][rings]") {
  StackRings rings = MakeRings(2);
  StackRing* const ring = Enter(rings, 100);
  rings.Ended(100);
  rings.GiveBack(false, 2);
  CHECK(rings.taken() == 1);
  PutRecord(*ring, rings, 3, 7);
  rings.Leave(*ring);
  rings.GiveBack(false, 2);
  CHECK(rings.taken() == 1);
  uint64_t records = 0;
  for (RingReader& reader : rings.readers()) {
    records += reader.Drain([](const RawRecord& record) { CHECK(record.size == 32); }).records;
  }
  CHECK(records == 1);
  rings.GiveBack(false, 2);
  CHECK(rings.taken() == 0);
}

TEST_CASE("where rings are scarce, those that were unused for a second are given back", "[live][rings]") {
  constexpr uint64_t kSecond = 1'000'000'000;
  StackRings rings = MakeRings(2);
  StackRing* const old = Enter(rings, 100, kSecond);
  old->rest_until_ns = kSecond;
  rings.Leave(*old);
  StackRing* const young = Enter(rings, 101, 2 * kSecond);
  young->rest_until_ns = 5 * kSecond / 2;
  rings.Leave(*young);
  rings.GiveBack(false, 3 * kSecond);
  CHECK(rings.taken() == 2);
  rings.GiveBack(true, 3 * kSecond);
  CHECK(rings.taken() == 1);
  CHECK(Enter(rings, 101) == young);
}

TEST_CASE("a handler within a handler is told, and one that was left long ago is none", "[live][rings]") {
  StackRings rings = MakeRings(2);
  bool nested = false;
  StackRing* const ring = rings.Enter(100, 1000, nested);
  CHECK(rings.Enter(100, 2000, nested) == ring);
  CHECK(nested);
  CHECK(rings.OldestUnderWay(2000) == 1000);
  CHECK(rings.Enter(100, 2'000'000'000, nested) == ring);
  CHECK_FALSE(nested);
  rings.Leave(*ring);
  CHECK(rings.OldestUnderWay(2'000'000'000) == UINT64_MAX);
}

TEST_CASE("there is room for what the reader has read", "[live][rings]") {
  StackRings rings = MakeRings(2, 4096);
  StackRing* const ring = Enter(rings, 100);
  for (uint64_t i = 0; i < 128; ++i) {
    CHECK(rings.HasRoom(*ring, 32));
    PutRecord(*ring, rings, 3, i);
  }
  CHECK_FALSE(rings.HasRoom(*ring, 8));
  for (RingReader& reader : rings.readers()) reader.Drain([](const RawRecord&) {});
  CHECK(rings.HasRoom(*ring, 4096));
  CHECK_FALSE(rings.HasRoom(*ring, 4104));
}

// What a handler does.
StackRing* EnterAnyhow(StackRings& rings) {
  bool nested = false;
  StackRing* const ring = rings.Enter(gettid(), 1, nested);
  return ring != nullptr ? ring : rings.EnterEnded(gettid(), 1);
}

TEST_CASE("where all rings are taken, those of ended threads serve, and keep what is in them", "[live][rings][law]") {
  constexpr uint64_t kThreads = 50;
  StackRings rings = MakeRings(8);
  std::set<StackRing*> used;
  for (uint64_t i = 0; i < kThreads; ++i) {
    std::atomic<pid_t> tid{0};
    std::thread([&] {
      tid = gettid();
      StackRing* const ring = EnterAnyhow(rings);
      if (ring == nullptr) return;
      used.insert(ring);
      PutRecord(*ring, rings, 2, 10 * i);
      rings.Leave(*ring);
    }).join();
    testing::AwaitEnd(tid);
  }
  CHECK(used.size() == 8);
  std::set<uint64_t> records;
  for (RingReader& reader : rings.readers()) {
    reader.Drain([&](const RawRecord& record) { records.insert(detail::Load<uint64_t>(record.data + 8)); });
  }
  CHECK(records.size() == kThreads);
}

TEST_CASE("no ring is taken from a thread that lives, nor one that is in use", "[live][rings][law]") {
  StackRings rings = MakeRings(2);
  StackRing* const own = EnterAnyhow(rings);
  REQUIRE(own != nullptr);
  rings.Leave(*own);
  std::atomic<pid_t> tid{0};
  std::thread([&] {
    tid = gettid();
    EnterAnyhow(rings);  // and never leaves
  }).join();
  testing::AwaitEnd(tid);
  CHECK(rings.taken() == 2);
  StackRing* taken = own;
  std::thread([&] { taken = EnterAnyhow(rings); }).join();
  CHECK(taken == nullptr);
}

TEST_CASE("what a handler took is told once", "[live][rings]") {
  StackRings rings = MakeRings(2);
  Enter(rings, 100)->handler_ns = 5;
  Enter(rings, 101)->handler_ns = 6;
  CHECK(rings.TakeHandlerNs() == 11);
  CHECK(rings.TakeHandlerNs() == 0);
}

// Writers start and end under tids that are used again, while a reader drains and gives back: each record is read
// exactly once, and each thread's records are in order.
TEST_CASE("rings are claimed and given back while others write", "[live][rings][law]") {
  constexpr int kThreads = 4, kRecords = 20'000;
  StackRings rings = MakeRings(8);
  std::atomic<int> running{kThreads};
  std::atomic<uint64_t> written{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRecords; ++i) {
        bool nested = false;
        // Of four threads each has 16 numbers of its own.
        StackRing* const ring = rings.Enter(1000 + t + 4 * (i / 100 % 16), testing::NowNs(), nested);
        if (ring == nullptr || nested || !rings.HasRoom(*ring, 24)) {
          ++refused;
        } else {
          PutRecord(*ring, rings, 2, static_cast<uint64_t>(t) << 32 | static_cast<uint64_t>(i));
          ++written;
        }
        if (ring != nullptr && !nested) rings.Leave(*ring);
        if (ring == nullptr) std::this_thread::yield();
      }
      --running;
    });
  }
  uint64_t read = 0, wrong = 0;
  std::mt19937 random(1);
  std::vector<std::set<uint64_t>> seen(kThreads);
  const auto drain = [&] {
    for (RingReader& reader : rings.readers()) {
      const DrainStats stats = reader.Drain([&](const RawRecord& record) {
        const uint64_t word = detail::Load<uint64_t>(record.data + 8) - 1;
        wrong += detail::Load<uint64_t>(record.data + 16) != word + 2;
        wrong += !seen[word >> 32].insert(word & 0xffff'ffff).second;
        ++read;
      });
      wrong += stats.malformed;
    }
    for (pid_t tid = 1000; tid < 1064; ++tid) {
      if (random() % 4 == 0) rings.Ended(tid);
    }
    rings.GiveBack(true, 3'000'000'000'000'000'000);
  };
  while (running > 0) drain();
  for (std::thread& thread : threads) thread.join();
  drain();
  CHECK(wrong == 0);
  CHECK(read == written);
  CHECK(written + refused == uint64_t{kThreads} * kRecords);
  CHECK(written > 1000);
}

}  // namespace
}  // namespace perfkit::sample
