// A thread that makes the kernel write records, a million a second where the machine can.
//
// Without rights each record is one of two events of a page fault: about 1 M records for a second of CPU time here. A
// user who may have tracepoints gets those of a system call, its entry and its exit: 1.4 M.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"

namespace bench {

double Seconds(clockid_t clock);

// The CPU that is the `index`th of those that this process may run on, -1 if there are not that many; and to stay
// there.
int AllowedCpu(int index);
void StayOn(int cpu);

class Source {
 public:
  static constexpr double kRecordsPerSecond = 1e6;

  // Not before Go. On `cpu`, if it is one.
  explicit Source(int cpu = -1);
  ~Source() { Stop(); }
  void Go() { go_ = true; }
  void Stop();

  pid_t tid() const { return tid_; }
  // The events that give the records, each of period 1.
  const std::vector<perfkit::SampledEvent>& events() const { return events_; }
  const char* what() const { return calls_ ? "entries and exits of a system call" : "page faults, by two events"; }

 private:
  void Run(int cpu);
  // Makes kBurst records.
  void Fault();
  void Call();

  bool calls_ = false;  // rather than faults
  std::vector<perfkit::SampledEvent> events_;
  char* memory_ = nullptr;
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> go_{false}, stop_{false};
  std::thread thread_;
};

// For root: tracepoints, in a mount namespace of this process alone. Before there are threads.
void MountTracefs();

// How long cases of the throughput run.
extern double throughput_seconds;

}  // namespace bench
