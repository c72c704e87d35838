// Who does the work of a walk: the calling thread, another one, or another process; and the limits that a kernel has.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"
#include "tests/count/walk_case.h"
#include "tests/support/work.h"

namespace perfkit::walk {

// Runs `body` in a forked child, and waits for its end. Returns true if `body` did.
template <class Body>
bool InForkedChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  pid_t ended;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  return child > 0 && ended == child && status == 0;
}

// Steps that need nothing but memory.
inline void Work(const Step& step, testing::FreshPages& memory) {
  switch (step.kind) {
    case Step::Kind::kTouch: memory.Forget(); return memory.Touch(0, step.amount);
    case Step::Kind::kSpin: testing::Spin(step.amount); return;
    case Step::Kind::kSwitchAway: return testing::SwitchAway(static_cast<int>(step.amount));
    case Step::Kind::kSwitchOften:
      prctl(PR_SET_TIMERSLACK, 1UL);
      testing::SwitchAway(static_cast<int>(1050 + 10 * step.amount));
      prctl(PR_SET_TIMERSLACK, 0UL);  // as before
      return;
    case Step::Kind::kCall:
      for (uint32_t n = 0; n < step.amount; ++n) PerfkitWalkCall();
      return;
    case Step::Kind::kFork: (void)InForkedChild([&] { return memory.Touch(0, step.amount), true; }); return;
    case Step::Kind::kMove:
    case Step::Kind::kMoveSet:
    case Step::Kind::kSampling:
    case Step::Kind::kJump:
    case Step::Kind::kKinds: return;
  }
}

// Another thread or process, which does steps and is waited for.
class Other {
 public:
  explicit Other(Whose whose) {
    if (whose == Whose::kOtherThread) {
      thread_.emplace([this] { RunThread(); });
      while (id_ == 0) std::this_thread::yield();
    } else if (whose == Whose::kOtherProcess) {
      StartProcess();
    }
  }
  ~Other() {
    if (thread_) {
      state_ = kLast;
      state_.notify_all();
      thread_->join();
    }
    for (const int fd : fds_) {
      if (fd >= 0) close(fd);  // Ends the process.
    }
    if (!thread_ && id_ > 0) waitpid(id_, nullptr, 0);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  bool exists() const { return id_ != 0; }
  pid_t id() const { return id_; }  // The tid, or the pid.

  void Do(const Step& step) {
    if (!thread_) {
      Step answer{};
      (void)!write(fds_[1], &step, sizeof(step));
      (void)!read(fds_[0], &answer, sizeof(answer));
      return;
    }
    step_ = step;
    state_ = kTold;
    state_.notify_all();
    state_.wait(kTold);
  }

 private:
  enum : int { kIdle, kTold, kLast };

  void RunThread() {
    testing::FreshPages memory(8);
    id_ = static_cast<pid_t>(syscall(SYS_gettid));
    while (true) {
      state_.wait(kIdle);
      if (state_ == kLast) return;
      Work(step_, memory);
      state_ = kIdle;
      state_.notify_all();
    }
  }

  void StartProcess() {
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(to[1]);
      testing::FreshPages memory(8);
      Step step{};
      while (read(to[0], &step, sizeof(step)) == sizeof(step)) {
        Work(step, memory);
        if (write(from[1], &step, sizeof(step)) != sizeof(step)) break;
      }
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    fds_ = {from[0], to[1]};
    id_ = child;
  }

  std::atomic<pid_t> id_{0};
  std::atomic<int> state_{kIdle};
  Step step_{};
  std::array<int, 2> fds_ = {-1, -1};  // To read answers, and to write steps.
  std::optional<std::thread> thread_;
};

// This process has few free descriptors, and this user little memory to lock, as long as it lives.
class Shortage {
 public:
  explicit Shortage(const Walk& walk) {
    if (walk.free_pages >= 0 && geteuid() != 0) LockAllBut(walk.free_pages);
    if (walk.free_fds < 0 || getrlimit(RLIMIT_NOFILE, &files_) != 0) return;
    const int next = dup(0);
    close(next);
    if (next < 0) return;
    const rlimit few{static_cast<rlim_t>(next + walk.free_fds), files_.rlim_max};
    short_of_files_ = setrlimit(RLIMIT_NOFILE, &few) == 0;
  }
  ~Shortage() {
    if (short_of_files_) setrlimit(RLIMIT_NOFILE, &files_);
    for (const auto& [memory, size] : rings_) munmap(memory, size);
    for (const int fd : fds_) close(fd);
    if (short_of_memory_) setrlimit(RLIMIT_MEMLOCK, &memory_);
  }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

 private:
  // Maps rings until this user may lock no further page, then gives `pages` back.
  void LockAllBut(int pages) {
    if (getrlimit(RLIMIT_MEMLOCK, &memory_) != 0) return;
    const rlimit none{0, memory_.rlim_max};
    short_of_memory_ = setrlimit(RLIMIT_MEMLOCK, &none) == 0;
    for (size_t data = 128; data > 0 && fds_.size() < 64; data /= 2) {
      while (fds_.size() < 64 && Map(1 + data)) continue;
    }
    for (; pages >= 2 && !rings_.empty() && rings_.back().second == 2 * 4096; pages -= 2) {
      munmap(rings_.back().first, rings_.back().second);
      rings_.pop_back();
    }
  }
  bool Map(size_t pages) {
    sys::PerfEventAttr attr{};
    attr.size = sizeof(attr);
    attr.type = sys::kTypeSoftware;
    attr.config = sys::kSwDummy;
    attr.exclude_kernel = attr.exclude_hv = 1;
    const int fd = sys::kLinux.perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec);
    if (fd < 0) return false;
    fds_.push_back(fd);
    void* const memory = mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return false;
    rings_.emplace_back(memory, pages * 4096);
    return true;
  }

  rlimit files_{}, memory_{};
  bool short_of_files_ = false, short_of_memory_ = false;
  std::vector<int> fds_;
  std::vector<std::pair<void*, size_t>> rings_;
};

}  // namespace perfkit::walk
