// Many threads at few locks, at random: each thread keeps a history of what it did, and each record must agree with all
// histories.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/locks/reader.h"

namespace perfkit::sys::locks {
namespace {

// A thread has the lock from between the first two times until between the last two.
struct Held {
  uint32_t tid = 0;
  uint64_t before_lock_ns = 0, after_lock_ns = 0, before_unlock_ns = 0, after_unlock_ns = 0;
};

using History = std::vector<Held>;

void Work(std::mutex& mutex, int times, unsigned seed, History& history) {
  std::minstd_rand random(seed);
  const auto spin = [&](unsigned up_to_us) {
    const uint64_t until_ns = NowNs() + random() % (up_to_us * 1000);
    while (NowNs() < until_ns) {
    }
  };
  for (int i = 0; i < times; ++i) {
    Held held{.tid = ThisThread(), .before_lock_ns = NowNs()};
    mutex.lock();
    held.after_lock_ns = NowNs();
    spin(random() % 8 == 0 ? 2000 : 50);
    held.before_unlock_ns = NowNs();
    mutex.unlock();
    held.after_unlock_ns = NowNs();
    history.push_back(held);
    spin(100);
  }
}

// The acquisition that the wait ended with; nullptr if there is none.
const Held* FindAcquisition(const History& all, const LockWait& wait) {
  for (const Held& held : all) {
    if (held.tid == wait.tid && held.before_lock_ns <= wait.from_ns && wait.to_ns <= held.after_lock_ns) return &held;
  }
  return nullptr;
}

// The holder had the lock at some time from the call to the begin of the wait.
bool HeldIt(const History& all, const Held& mine, const LockWait& wait) {
  return std::any_of(all.begin(), all.end(), [&](const Held& held) {
    return held.tid == wait.holder && held.before_lock_ns <= wait.from_ns &&
           held.after_unlock_ns >= mine.before_lock_ns;
  });
}

// The releaser unlocked it at that time, during the wait.
bool ReleasedIt(const History& all, const Held& mine, const LockWait& wait) {
  if (wait.released_ns < mine.before_lock_ns || wait.released_ns > wait.to_ns) return false;
  return std::any_of(all.begin(), all.end(), [&](const Held& held) {
    return held.tid == wait.releaser && held.before_unlock_ns <= wait.released_ns &&
           wait.released_ns <= held.after_unlock_ns;
  });
}

TEST_CASE("each record agrees with what all threads did", "[locks][hammer][law]") {
  constexpr int kThreads = 4, kTimes = 300;
  std::mutex mutex;
  std::vector<History> histories(kThreads);
  Reader reader;
  const uint64_t began_ns = NowNs();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Work(mutex, kTimes, static_cast<unsigned>(i + 1), histories[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t wall_ns = NowNs() - began_ns;
  History all;
  for (const History& history : histories) all.insert(all.end(), history.begin(), history.end());
  const std::vector<LockWait> waits = reader.Of(&mutex);
  REQUIRE(reader.lost() == 0);
  std::map<uint32_t, uint64_t> sums;
  std::map<uint32_t, uint64_t> ends;
  size_t holders = 0, releasers = 0;
  for (const LockWait& wait : waits) {
    sums[wait.tid] += wait.to_ns - wait.from_ns;
    CHECK(wait.from_ns >= ends[wait.tid]);
    ends[wait.tid] = wait.to_ns;
    const Held* const mine = FindAcquisition(all, wait);
    REQUIRE(mine != nullptr);
    CHECK(wait.acquired);
    if (wait.holder != 0) {
      ++holders;
      CHECK(wait.holder != wait.tid);
      CHECK(HeldIt(all, *mine, wait));
    }
    if (wait.releaser != 0) {
      ++releasers;
      CHECK(wait.releaser != wait.tid);
      CHECK(ReleasedIt(all, *mine, wait));
    }
  }
  for (const auto& [tid, sum_ns] : sums) CHECK(sum_ns <= wall_ns);
  CAPTURE(waits.size(), holders, releasers);
  CHECK(waits.size() <= all.size());
}

}  // namespace
}  // namespace perfkit::sys::locks
