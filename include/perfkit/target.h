// What to count: a thread, a process, a CPU, or a program that has not started yet.
#pragma once

#include <cstdint>

#include "perfkit/enable.h"

namespace PERFKIT_NAMESPACE {

// A value, not checked: opening events on it fails if it does not exist, or if this user may not observe it.
struct Target {
  enum class Kind : uint8_t { kThisThread, kThread, kProcess, kAllThreads, kCpu, kSystem };

  Kind kind = Kind::kThisThread;
  int id = 0;  // The tid, pid or CPU number, by kind.
  // kThread, kProcess: also counts threads and children that start later. kAllThreads: also counts threads that start
  // later.
  bool inherit = true;
  // Events stay disabled until the task calls exec: child.h.
  bool enable_on_exec = false;

  // The calling thread alone. The only target with reads that need no system call.
  static constexpr Target ThisThread() { return {}; }
  // One thread of any process that this user may observe.
  static constexpr Target Thread(int tid) { return {Kind::kThread, tid, false}; }
  // All threads of a process, and the threads and children that they start later.
  static constexpr Target Process(int pid) { return {Kind::kProcess, pid}; }
  // All threads of this process, including later ones. Before Linux 5.13 this includes its children, too.
  static constexpr Target AllThreads() { return {Kind::kAllThreads, 0}; }
  // Everything that runs on one CPU. Requires perf_event_paranoid <= 0 or CAP_PERFMON.
  static constexpr Target Cpu(int cpu) { return {Kind::kCpu, cpu, false}; }
  // Everything that runs on any CPU. Requires the same rights as Cpu.
  static constexpr Target System() { return {Kind::kSystem, 0, false}; }

  // Returns the same target without threads and children that start later.
  constexpr Target WithoutInherit() const {
    Target target = *this;
    target.inherit = false;
    return target;
  }
};

}  // namespace PERFKIT_NAMESPACE
