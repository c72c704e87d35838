// The recorded waits, checked by the kernel: each futex call in which a thread waits for a lock lies in a record of
// that wait. Needs root, for the tracepoint.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/locks/reader.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"

namespace perfkit::sys::locks {
namespace {

struct FutexWait {
  uint64_t time_ns = 0, address = 0;
  uint32_t tid = 0;
};

// The futex calls of the calling thread that wait, from now on. The kernel writes no further once the ring is full.
class FutexWaits {
 public:
  FutexWaits() {
    const std::string folder = "/sys/kernel/tracing/events/syscalls/sys_enter_futex/";
    uint64_t id = 0;
    std::ifstream(folder + "id") >> id;
    ReadFormat(folder + "format");
    if (id == 0 || address_ == 0 || operation_ == 0) return;
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT, attr.size = sizeof(attr), attr.config = id;
    attr.sample_period = 1, attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
    attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (file_ < 0) return;
    void* const ring = mmap(nullptr, kPage + kBytes, PROT_READ, MAP_SHARED, file_, 0);
    if (ring != MAP_FAILED) ring_ = static_cast<const char*>(ring);
  }
  ~FutexWaits() {
    if (ring_ != nullptr) munmap(const_cast<char*>(ring_), kPage + kBytes);
    if (file_ >= 0) close(file_);
  }
  FutexWaits(const FutexWaits&) = delete;
  FutexWaits& operator=(const FutexWaits&) = delete;

  bool is_open() const { return ring_ != nullptr; }
  std::vector<FutexWait> Take() const {
    const auto* const page = reinterpret_cast<const perf_event_mmap_page*>(ring_);
    const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    std::vector<FutexWait> waits;
    for (uint64_t at = 0; at < head;) {
      const char* const record = ring_ + kPage + at;
      perf_event_header header;
      memcpy(&header, record, sizeof(header));
      if (header.size == 0) break;
      at += header.size;
      if (header.type != PERF_RECORD_SAMPLE) continue;
      const char* const raw = record + sizeof(header) + sizeof(uint64_t) + sizeof(uint32_t);
      uint64_t operation = 0;
      FutexWait wait{.tid = ThisThread()};
      memcpy(&wait.time_ns, record + sizeof(header), sizeof(wait.time_ns));
      memcpy(&wait.address, raw + address_, sizeof(wait.address));
      memcpy(&operation, raw + operation_, sizeof(operation));
      const auto command = static_cast<int>(operation) & FUTEX_CMD_MASK;
      if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) waits.push_back(wait);
    }
    return waits;
  }

 private:
  static constexpr size_t kPage = 4096, kBytes = 1 << 20;

  void ReadFormat(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t offset = line.find("offset:");
      if (offset == std::string::npos) continue;
      const size_t value = std::stoul(line.substr(offset + strlen("offset:")));
      if (line.find(" uaddr;") != std::string::npos) address_ = value;
      if (line.find(" op;") != std::string::npos) operation_ = value;
    }
  }

  size_t address_ = 0, operation_ = 0;
  int file_ = -1;
  const char* ring_ = nullptr;
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
  return is_open ? futexes.Take() : std::vector<FutexWait>{};
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
