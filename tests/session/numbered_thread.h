// Threads whose numbers are known, and looks at those that wait in a futex.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/blocked_threads.h"

namespace perfkit::session {

// Whether this C library's locks say who holds them.
#if defined(__GLIBC__)
inline constexpr bool kLocksTell = true;
#else
inline constexpr bool kLocksTell = false;
#endif

inline uint32_t Tid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// A thread that runs `work` and says its number.
class NumberedThread {
 public:
  explicit NumberedThread(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          tid_ = Tid();
          work();
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~NumberedThread() { Join(); }
  uint32_t tid() const { return tid_; }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<uint32_t> tid_{0};
  std::thread thread_;
};

// The thread's look as soon as it is blocked in a futex at one of these bytes, and in no other place.
inline ThreadStatus AwaitFutex(uint32_t tid, const void* begin, size_t bytes) {
  const auto first = reinterpret_cast<uint64_t>(begin);
  for (;;) {
    const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads({.names = false});
    REQUIRE(threads.status() == absl::OkStatus());
    for (const ThreadStatus& look : *threads) {
      const bool is_there = look.tid == tid && look.blocked && look.syscall == SYS_futex;
      if (is_there && look.arguments[0] - first < bytes) return look;
    }
    std::this_thread::yield();
  }
}

}  // namespace perfkit::session
