// Who woke threads of this process from outside of it: other programs, threads of the kernel, and interrupts on CPUs
// where this process did not run. The session's own sampler sees only what threads of this process do.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "perfkit/sample.h"
#include "src/session/off_cpu.h"
#include "src/session/sched_events.h"

namespace perfkit::session {

// Not thread-safe.
class ForeignWakers {
 public:
  // How names of the kernel's threads end.
  static constexpr std::string_view kOfKernel = " of the kernel";

  // Returns the name of a thread for ProfileWait::waker. `pid`: its process.
  using NameSource = std::string (*)(uint32_t pid, uint32_t tid);
  // Returns "bash (4321) of another program", or "kworker/0:1 (12) of the kernel". Reads procfs: a thread that has
  // ended is "a thread (4321) of another program".
  static std::string NameOf(uint32_t pid, uint32_t tid);

  // `pid`: this process.
  explicit ForeignWakers(uint32_t pid, NameSource name_of = NameOf) : pid_(pid), name_of_(name_of) {}

  // A thread has left its CPU: only then can it be woken. `pid`: its process.
  void Left(uint32_t pid, uint32_t tid);
  // Adds a wake-up on any CPU. They come in order of time, also with what Left tells. `waker`: the thread that ran
  // there.
  void Add(const Waking& waking, TaskId waker, uint64_t time_ns);
  // Returns what woke thread `tid` of this process between `from_ns` and `to_ns`. Returns nullopt if it was a thread of
  // this process, or if that is not known.
  std::optional<Waker> Find(uint32_t tid, uint64_t from_ns, uint64_t to_ns) const;
  // Forgets the wake-ups before `until_ns`.
  void Forget(uint64_t until_ns);

 private:
  struct Known {
    std::string name;
    uint64_t read_ns = 0;
  };
  const std::string& NameAt(uint32_t pid, uint32_t tid, uint64_t time_ns);

  const uint32_t pid_;
  const NameSource name_of_;
  std::unordered_set<uint32_t> own_;                        // tids of this process that have left a CPU
  std::unordered_map<uint32_t, std::deque<Waker>> wakers_;  // by tid of the woken thread, the oldest first
  std::unordered_map<uint32_t, Known> names_;               // by tid
};

}  // namespace perfkit::session
