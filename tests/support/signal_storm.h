// Interrupts a thread repeatedly, at any instruction, so that a signal handler meets each half-changed state.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace perfkit::testing {

// As long as it lives, runs `work` in handlers on the thread that made it, `us` after the previous one ended, so that
// the thread makes progress however slow they are. Only one at a time.
class SignalStorm {
 public:
  explicit SignalStorm(void (*work)(), long us = 50) {
    work_ = work;
    ns_ = us * 1000;
    handled_ = 0;
    struct sigaction action {};
    action.sa_handler = [](int) {
      work_();
      ArmNext();
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &before_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    Arm();
  }
  ~SignalStorm() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;  // Also discards pending ones.
    sigaction(SIGUSR1, &ignore, nullptr);
    timer_delete(timer_);
    sigaction(SIGUSR1, &before_, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;

  uint64_t handled() const { return handled_; }

  // Ends the work by a jump.
  [[noreturn]] static void Leave(sigjmp_buf& to) {
    ArmNext();
    siglongjmp(to, 1);
  }

 private:
  static void ArmNext() {
    handled_.fetch_add(1);
    Arm();
  }
  static void Arm() {
    const itimerspec once{{0, 0}, {0, ns_}};
    timer_settime(timer_, 0, &once, nullptr);
  }

  static inline void (*work_)() = nullptr;
  static inline long ns_ = 0;
  static inline std::atomic<uint64_t> handled_{0};
  static inline timer_t timer_{};
  struct sigaction before_ {};
};

}  // namespace perfkit::testing
