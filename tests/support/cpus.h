// Two CPUs to move the calling thread between.
#pragma once

#include <sched.h>

namespace perfkit::testing {

// The first two CPUs on which the thread may run. Restores the thread's CPUs when it is destroyed.
class TwoCpus {
 public:
  TwoCpus() {
    sched_getaffinity(0, sizeof(before_), &before_);
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) cpus_[found++] = cpu;
    }
  }
  ~TwoCpus() { sched_setaffinity(0, sizeof(before_), &before_); }
  TwoCpus(const TwoCpus&) = delete;
  TwoCpus& operator=(const TwoCpus&) = delete;

  bool has_both() const { return cpus_[1] >= 0; }
  int cpu(int which) const { return cpus_[which]; }

  // Moves the thread to CPU 0 or 1 of the two; it runs there when this returns.
  void MoveTo(int which) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus_[which], &set);
    sched_setaffinity(0, sizeof(set), &set);
  }

 private:
  cpu_set_t before_;
  int cpus_[2] = {-1, -1};
};

}  // namespace perfkit::testing
