// A thread that makes the kernel write records, a million a second if the machine is fast enough.
//
// Without rights, each record is one of two events of a page fault: about 1 M records for a second of CPU time on the
// measured machine. With the right to use tracepoints, it is the entry or the exit of a system call: 1.4 M.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"

namespace bench {

double Seconds(clockid_t clock);

// Returns the `index`th CPU that this process may run on, or -1 if there are fewer; and binds the thread to it.
int AllowedCpu(int index);
void StayOn(int cpu);

class Source {
 public:
  static constexpr double kRecordsPerSecond = 1e6;

  // Does not start before Go. Runs on `cpu`, unless it is -1.
  explicit Source(int cpu = -1);
  ~Source() { Stop(); }
  void Go() { go_ = true; }
  void Stop();

  pid_t tid() const { return tid_; }
  // Returns the events that give the records, each with period 1.
  const std::vector<perfkit::SampledEvent>& events() const { return events_; }
  const char* what() const { return calls_ ? "entries and exits of a system call" : "page faults, by two events"; }

 private:
  void Run(int cpu);
  // Generates kBurst records.
  void Fault();
  void Call();

  bool calls_ = false;  // By system calls instead of faults.
  std::vector<perfkit::SampledEvent> events_;
  char* memory_ = nullptr;
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> go_{false}, stop_{false};
  std::thread thread_;
};

// For root: mounts tracefs in a mount namespace of this process. Call it before there are threads.
void MountTracefs();

}  // namespace bench
