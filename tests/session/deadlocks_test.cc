// Cycles among threads: by hand, against a search by brute force, and of threads that are there.
#include "src/session/deadlocks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/blocked_threads.h"
#include "tests/session/numbered_thread.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

std::vector<std::vector<size_t>> CyclesOf(const std::vector<LockWait>& waits) { return FindCycles(waits); }

TEST_CASE("threads that wait for each other are a cycle", "[deadlocks]") {
  using Cycles = std::vector<std::vector<size_t>>;
  CHECK(CyclesOf({}).empty());
  CHECK(CyclesOf({{1, 0}, {2, 0}}).empty());
  CHECK(CyclesOf({{1, 2}, {2, 0}}).empty());
  CHECK(CyclesOf({{1, 9}, {2, 1}}).empty());
  CHECK(CyclesOf({{1, 1}}) == Cycles{{0}});
  CHECK(CyclesOf({{1, 2}, {2, 1}}) == Cycles{{0, 1}});
  CHECK(CyclesOf({{1, 2}, {2, 3}, {3, 1}}) == Cycles{{0, 1, 2}});
  CHECK(CyclesOf({{4, 1}, {1, 2}, {2, 1}, {5, 4}}) == Cycles{{1, 2}});
  CHECK(CyclesOf({{1, 2}, {2, 2}, {3, 1}}) == Cycles{{1}});
}

// As many threads as locks: each takes its own and waits for the next one's, until the test ends it.
class PlantedDeadlock {
 public:
  explicit PlantedDeadlock(size_t count) : locks_(count) {
    for (size_t i = 0; i < count; ++i) {
      threads_.push_back(std::make_unique<NumberedThread>([this, i] { LockNext(i); }));
    }
  }
  ~PlantedDeadlock() {
    stop_ = true;
    for (const auto& thread : threads_) thread->Join();
  }
  size_t size() const { return threads_.size(); }
  uint32_t tid(size_t i) const { return threads_[i % size()]->tid(); }

 private:
  void LockNext(size_t i) {
    locks_[i].lock();
    ++taken_;
    while (taken_ < locks_.size()) std::this_thread::yield();
    std::timed_mutex& next = locks_[(i + 1) % locks_.size()];
    using namespace std::chrono_literals;
    for (bool has_it = false; !has_it && !stop_;) {
      has_it = next.try_lock_for(300ms);
      if (has_it) next.unlock();
    }
    locks_[i].unlock();
  }

  std::vector<std::timed_mutex> locks_;
  std::atomic<size_t> taken_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<NumberedThread>> threads_;
};

TEST_CASE("a deadlock is named with all its threads", "[deadlocks][law]") {
  if (!kLocksTell) SKIP_TEST("this C library's mutexes do not say who holds them");
  for (const size_t count : {2, 3}) {
    const PlantedDeadlock planted(count);
    size_t deadlocked = 0;
    for (std::vector<ThreadStatus> threads; deadlocked != count;) {
      absl::StatusOr<std::vector<ThreadStatus>> looks = BlockedThreads({.names = false});
      REQUIRE(looks.status() == absl::OkStatus());
      threads = *std::move(looks);
      deadlocked = 0;
      for (const ThreadStatus& look : threads) {
        if (!look.deadlocked) continue;
        ++deadlocked;
        for (size_t i = 0; i < count; ++i) {
          if (look.tid == planted.tid(i)) CHECK(look.holder == planted.tid(i + 1));
        }
      }
      const std::string text = FormatBlockedThreads(threads);
      CHECK((text.rfind("deadlock: thread ", 0) == 0) == (deadlocked != 0));
    }
    CHECK(deadlocked == count);
  }
}

TEST_CASE("each thread that comes back to itself is in one cycle, and no other thread is", "[deadlocks]") {
  std::mt19937 random(1);
  for (int turn = 0; turn < 2000; ++turn) {
    const uint32_t count = 1 + random() % 8;
    std::vector<LockWait> waits;
    for (uint32_t tid = 1; tid <= count; ++tid) waits.push_back({tid, static_cast<uint32_t>(random() % (count + 2))});
    std::set<size_t> expected;
    for (size_t i = 0; i < count; ++i) {
      uint32_t at = waits[i].holder;
      for (uint32_t step = 0; step < count && at != waits[i].tid; ++step) {
        at = at >= 1 && at <= count ? waits[at - 1].holder : 0;
      }
      if (at == waits[i].tid) expected.insert(i);
    }
    std::set<size_t> found;
    for (const std::vector<size_t>& cycle : FindCycles(waits)) {
      for (size_t i = 0; i < cycle.size(); ++i) {
        CHECK(found.insert(cycle[i]).second);
        CHECK(waits[cycle[i]].holder == waits[cycle[(i + 1) % cycle.size()]].tid);
      }
    }
    CHECK(found == expected);
  }
}

}  // namespace
}  // namespace perfkit::session
