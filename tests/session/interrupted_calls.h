// Threads that sleep in system calls again and again, and count how often one was interrupted.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "tests/support/bearable.h"
#include "tests/support/work.h"

namespace perfkit::session {

class InterruptedCalls {
 public:
  static constexpr std::string_view kNames[] = {"read", "nanosleep", "poll", "futex", "epoll"};
  static constexpr size_t kCalls = 5;

  // Starts a thread for each call, which makes it `rounds` times: most sleep for 1 ms, some long enough for a session
  // of the wall clock to examine them. `is_endless`: until Stop.
  explicit InterruptedCalls(int rounds, bool is_endless = false) : rounds_(rounds), is_endless_(is_endless) {
    (void)!pipe(ends_);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLHUP;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, ends_[0], &event);
    for (size_t call = 0; call < kCalls; ++call) threads_.emplace_back([this, call] { Run(call); });
    writer_ = std::thread([this] { Write(); });
  }
  ~InterruptedCalls() {
    Stop();
    close(epoll_);
    for (const int end : ends_) close(end);
  }
  InterruptedCalls(const InterruptedCalls&) = delete;
  InterruptedCalls& operator=(const InterruptedCalls&) = delete;

  void Signal(size_t call, int number) { pthread_kill(threads_[call].native_handle(), number); }
  // Waits for the threads.
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    stop_writer_ = true;
    if (writer_.joinable()) writer_.join();
  }
  // Counts, of all rounds until now. Thread-safe.
  uint64_t interrupted(size_t call) const { return interrupted_[call]; }
  uint64_t done(size_t call) const { return done_[call]; }

 private:
  static long SleepFor(int round) { return round % 16 == 0 ? 12'000'000 : 1'000'000; }

  // The kernel's own calls: the C library retries some of them.
  long Call(size_t call, const timespec& time) {
    char byte = 0;
    epoll_event event{};
    switch (call) {
      case 0: return syscall(SYS_read, ends_[0], &byte, 1);
      case 1: return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr) == 0 ? 0 : -1;
      case 2: return syscall(SYS_ppoll, nullptr, 0, &time, nullptr, 0);
      case 3: return syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
      default: {
        const auto ms = static_cast<int>(time.tv_nsec / 1'000'000);
        return syscall(SYS_epoll_pwait, epoll_, &event, 1, ms, nullptr, 0);
      }
    }
  }
  void Run(size_t call) {
    for (int round = 0; is_endless_ ? !stop_ : round < rounds_; ++round) {
      const timespec time{0, SleepFor(round)};
      errno = 0;
      if (Call(call, time) == -1 && errno == EINTR) ++interrupted_[call];
      ++done_[call];
    }
  }
  void Write() {
    for (int round = 0; !stop_writer_; ++round) {
      const timespec time{0, SleepFor(round)};
      nanosleep(&time, nullptr);
      (void)!write(ends_[1], "x", 1);
    }
  }

  const int rounds_;
  const bool is_endless_;
  int ends_[2] = {-1, -1}, epoll_ = -1;
  uint32_t word_ = 0;
  std::atomic<bool> stop_{false}, stop_writer_{false};
  std::atomic<uint64_t> interrupted_[kCalls] = {}, done_[kCalls] = {};
  std::vector<std::thread> threads_;
  std::thread writer_;
};

// The shortest interval at which a sampled thread still gets on: a sanitizer's handler of a live stack takes up to 100 us
// where the hypervisor makes signals slow.
inline std::chrono::nanoseconds Often() {
  return std::chrono::nanoseconds(1'000'000'000 / testing::Bearable(testing::kSanitized ? 2'000 : 50'000));
}

// Threads sleep in system calls while a session with these options runs: none may be interrupted.
inline void CheckInterruptsNone(const SessionOptions& options) {
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  InterruptedCalls calls(testing::kSanitized ? 50 : 200);
  calls.Stop();
  REQUIRE(session->Stop().status() == absl::OkStatus());
  for (size_t call = 0; call < InterruptedCalls::kCalls; ++call) {
    INFO(InterruptedCalls::kNames[call] << ", " << calls.done(call) << " calls");
    CHECK(calls.interrupted(call) == 0);
  }
}

}  // namespace perfkit::session
