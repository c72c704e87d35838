// An event that is not perfkit's, and samples what perfkit samples.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perfkit/sample.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"

namespace perfkit::testing {

// Samples the page faults of the calling thread by an event that asks for no id, for a larger stack, and for a clock of
// its own.
class RawSampling {
 public:
  // `by_child`: a child opens it, as another profiler does.
  explicit RawSampling(bool by_child, clockid_t clock = CLOCK_REALTIME) : clock_(clock) {
    const pid_t tid = gettid();
    if (by_child) {
      OpenInChild(tid);
    } else {
      Open(0);
    }
  }
  ~RawSampling() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (ring_ != MAP_FAILED) munmap(ring_, kRingBytes);
    if (fd_ >= 0) close(fd_);
  }
  RawSampling(const RawSampling&) = delete;
  RawSampling& operator=(const RawSampling&) = delete;

 private:
  static constexpr size_t kRingBytes = 2 * 4096;

  void OpenInChild(pid_t tid) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Open(tid);
      (void)!write(ready[1], "x", 1);
      while (true) pause();
    }
    close(ready[1]);
    char byte;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
  }

  void Open(pid_t tid) {
    sys::PerfEventAttr attr{};
    attr.size = sizeof(attr);
    attr.type = sys::kTypeSoftware;
    attr.config = sys::kSwPageFaults;
    attr.exclude_kernel = attr.exclude_hv = 1;
    attr.exclude_callchain_kernel = 1;
    attr.sample_period_or_freq = 1;
    attr.sample_type = kSampleIp | kSampleTime | kSampleAddr | kSampleCallchain | kSampleStackUser;
    attr.sample_stack_user = 2048;
    attr.use_clockid = 1;
    attr.clockid = clock_;
    fd_ = sys::kLinux.perf_event_open(&attr, tid, -1, -1, sys::kOpenFdCloexec);
    if (fd_ >= 0) ring_ = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }

  const clockid_t clock_;
  pid_t child_ = 0;
  int fd_ = -1;
  void* ring_ = MAP_FAILED;
};

}  // namespace perfkit::testing
