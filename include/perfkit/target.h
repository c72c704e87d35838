// Whom to count: a thread, a process, a CPU, or a program that is yet to start.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace perfkit {

// A value; opening decides whether it exists and whether this process may watch it.
struct Target {
  enum class Kind : uint8_t { kThisThread, kThread, kProcess, kAllThreads, kCpu, kSystem };

  Kind kind = Kind::kThisThread;
  int id = 0;           // tid, pid or CPU number, by kind
  bool inherit = true;  // kThread, kProcess, kAllThreads: threads (and, for kProcess, children) born later count too
  bool enable_on_exec = false;  // stay off until the task calls exec: see child.h

  // The calling thread alone. The only target with reads that need no system call.
  static constexpr Target ThisThread() { return {}; }
  // One thread of any process that this user may watch.
  static constexpr Target Thread(pid_t tid) { return {Kind::kThread, tid, false}; }
  // All threads of a process, those that are born later, and its children.
  static constexpr Target Process(pid_t pid) { return {Kind::kProcess, pid}; }
  // All threads of this process, and those that are born later; not its children.
  static constexpr Target AllThreads() { return {Kind::kAllThreads, 0}; }
  // Whatever runs on one CPU. Needs perf_event_paranoid <= 0 or CAP_PERFMON.
  static constexpr Target Cpu(int cpu) { return {Kind::kCpu, cpu, false}; }
  // Whatever runs on any CPU. Needs the same.
  static constexpr Target System() { return {Kind::kSystem, 0, false}; }

  constexpr Target WithoutInherit() const {
    Target target = *this;
    target.inherit = false;
    return target;
  }
};

}  // namespace perfkit
