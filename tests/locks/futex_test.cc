// The recorded waits, checked by the kernel: each futex call in which a thread waits for a lock lies in a record of
// that wait. Needs root, for the tracepoint.
#include <linux/futex.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/locks/reader.h"
#include "tests/support/raw_tracepoint.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"

namespace perfkit::sys::locks {
namespace {

struct FutexWait {
  uint64_t time_ns = 0, address = 0;
  uint32_t tid = 0;
};

// The futex calls of the calling thread that wait, from now on.
class FutexWaits {
 public:
  bool is_open() const { return tracepoint_.is_open() && address_ != 0 && operation_ != 0; }
  std::vector<FutexWait> Stop() const {
    std::vector<FutexWait> waits;
    tracepoint_.Stop([&](const testing::RawTracepoint::Hit& hit) {
      const auto command = static_cast<int>(hit.At<uint64_t>(operation_)) & FUTEX_CMD_MASK;
      if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) return;
      waits.push_back({.time_ns = hit.time_ns, .address = hit.At<uint64_t>(address_), .tid = ThisThread()});
    });
    return waits;
  }

 private:
  const testing::RawTracepoint tracepoint_{"syscalls/sys_enter_futex", 0, -1, 1 << 20};
  const size_t address_ = tracepoint_.OffsetOf("uaddr"), operation_ = tracepoint_.OffsetOf("op");
};

struct ContendedLocks {
  std::mutex mutex;
  std::condition_variable condition;
  int turn = 0;
};

// Takes the lock again and again, and waits for its turn each time.
std::vector<FutexWait> Contend(ContendedLocks& shared, int number, int threads, bool& is_open) {
  const FutexWaits futexes;
  is_open = futexes.is_open();
  for (int i = 0; i < 100; ++i) {
    {
      std::unique_lock<std::mutex> lock(shared.mutex);
      shared.condition.wait(lock, [&] { return shared.turn % threads == number; });
      ++shared.turn;
      shared.condition.notify_all();
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    const std::lock_guard<std::mutex> lock(shared.mutex);
    if (i % 10 == 5) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return is_open ? futexes.Stop() : std::vector<FutexWait>{};
}

constexpr int kAllRecorded = 0, kMissing = 1, kNoTracepoint = 3, kNoWait = 4;

bool IsIn(const FutexWait& futex, const LockWait& wait) {
  return wait.tid == futex.tid && wait.from_ns <= futex.time_ns && futex.time_ns <= wait.to_ns;
}

int CheckOnce() {
  constexpr int kThreads = 3;
  const Reader reader;
  ContendedLocks shared;
  std::vector<FutexWait> futexes[kThreads];
  bool is_open[kThreads] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { futexes[i] = Contend(shared, i, kThreads, is_open[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  if (!std::ranges::all_of(is_open, [](bool open) { return open; })) return kNoTracepoint;
  std::vector<LockWait> waits;
  for (LockWait wait; LockWaits()->take(wait);) waits.push_back(wait);
  size_t checked = 0, missing = 0;
  for (const std::vector<FutexWait>& of_thread : futexes) {
    for (const FutexWait& futex : of_thread) {
      // Not those of the condition: glibc also waits in some calls that notify.
      const auto begin = reinterpret_cast<uint64_t>(&shared.mutex), end = begin + sizeof(shared.mutex);
      if (futex.address < begin || futex.address >= end) continue;
      ++checked;
      const bool is_recorded = std::ranges::any_of(waits, [&](const LockWait& wait) { return IsIn(futex, wait); });
      missing += is_recorded ? 0 : 1;
    }
  }
  std::printf("%zu futex waits, %zu records of waits, %zu not recorded\n", checked, waits.size(), missing);
  std::fflush(stdout);
  if (missing != 0) return kMissing;
  return checked != 0 ? kAllRecorded : kNoWait;
}

// Chance decides whether a thread waits for the mutex.
int CheckFutexes() {
  int result = kNoWait;
  while (result == kNoWait) result = CheckOnce();
  return result;
}

TEST_CASE("each futex call that waits for a lock is in a record of the wait", "[locks][futex][law]") {
  const int result = testing::WithTracefs([]() -> bool { _exit(CheckFutexes()); });
  if (result == 2 || result == kNoTracepoint) SKIP_TEST("the tracepoint of futex calls is not permitted here");
  CHECK(result == kAllRecorded);
}

}  // namespace
}  // namespace perfkit::sys::locks
