// What the walk over samplers works with: another thread, and a limit of descriptors.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace perfkit::walk {

// Another thread of this process, which executes commands and is waited for.
class Companion {
 public:
  Companion() : thread_([this] { Run(); }) {}
  ~Companion() {
    Do(nullptr);
    thread_.join();
  }
  void Do(const std::function<void()>& work) {
    work_ = &work;
    if (!work) work_ = nullptr;
    state_ = kTold;
    state_.notify_all();
    state_.wait(kTold);
  }

 private:
  enum : int { kIdle, kTold };

  void Run() {
    while (true) {
      state_.wait(kIdle);
      const std::function<void()>* const work = work_;
      if (work != nullptr) (*work)();
      state_ = kIdle;
      state_.notify_all();
      if (work == nullptr) return;
    }
  }

  const std::function<void()>* work_ = nullptr;
  std::atomic<int> state_{kIdle};
  std::thread thread_;
};

// What visitors throw.
struct Thrown {};

// A limit of descriptors for a while.
class FileLimit {
 public:
  FileLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimit() { Restore(); }

  void LeaveOnly(size_t files) {
    Restore();
    const int next = dup(0);
    close(next);
    const rlimit few{static_cast<rlim_t>(next) + files, before_.rlim_max};
    if (next >= 0) is_low_ = setrlimit(RLIMIT_NOFILE, &few) == 0;
    was_low_ = was_low_ || is_low_;
  }
  void Restore() {
    if (is_low_) setrlimit(RLIMIT_NOFILE, &before_);
    is_low_ = false;
  }
  bool is_low() const { return is_low_; }
  bool was_low() const { return was_low_; }

 private:
  rlimit before_{};
  bool is_low_ = false, was_low_ = false;
};

}  // namespace perfkit::walk
