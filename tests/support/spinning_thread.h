// A thread that runs, and makes no system call, until the end of the scope.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace perfkit::testing {

class SpinningThread {
 public:
  SpinningThread() {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~SpinningThread() {
    stop_ = true;
    thread_.join();
  }
  SpinningThread(const SpinningThread&) = delete;
  SpinningThread& operator=(const SpinningThread&) = delete;

  pid_t tid() const { return tid_; }

 private:
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] {
    tid_ = static_cast<pid_t>(syscall(SYS_gettid));
    while (!stop_) {
    }
  }};
};

}  // namespace perfkit::testing
