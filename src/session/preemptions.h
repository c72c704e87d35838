// Finds the threads that ran instead of preempted ones, by the kernel's records of all switches on all CPUs.
//
//   CPU 0   ── ours ──┤ cc1plus ────────┤ kworker ┤── ours ──
//                     └ out: a wait begins        └ in: it ends. cc1plus ran longest, and one other thread ran.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::session {

// A switch on a CPU. `from_pid`: the process of the thread that leaves it; kEnded if that thread has ended.
struct CpuSwitch {
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  uint32_t from_pid = 0, from_tid = 0, to_tid = 0;  // 0: the idle task
  bool is_preempted = false;                        // the thread that leaves it could run on
  std::string_view to_name{};

  static constexpr uint32_t kEnded = UINT32_MAX;
};

// The thread that ran instead of a preempted one.
struct Preempter {
  uint32_t tid = 0;  // 0: the idle task
  std::string name{};
  std::optional<bool> is_own{};  // true if it belongs to this process; nullopt means unknown, because it had ended
  uint32_t others = 0;           // threads that ran, too, without the idle task

  ProfilePreempter InProfile(ProfileBuilder& builder) const {
    return {.tid = tid, .command = builder.String(name), .is_own = is_own.value_or(false), .others = others};
  }
  bool operator==(const Preempter&) const = default;
};

// Not thread-safe.
class Preemptions {
 public:
  // `pid`: the process whose threads are watched.
  explicit Preemptions(uint32_t pid) : pid_(pid) {}

  // Takes the switches of each CPU in order of time.
  void Add(const CpuSwitch& change);
  // To be called if records were lost: waits that are under way get no preempter.
  void Lose();
  // Forgets the waits that ended before `until_ns`.
  void Forget(uint64_t until_ns);

  // A wait of a thread of this process, by its SWITCH records.
  struct Wait {
    uint32_t tid = 0;
    uint64_t ran_from_ns = 0;  // when it had got its CPU before the wait, or somewhat later
    uint64_t from_ns = 0, to_ns = 0;
  };
  // Returns the thread that ran longest on the CPU meanwhile. If the waiting thread was moved to another CPU, returns
  // the one that got its old CPU first. Returns nullopt if that is not known for sure.
  std::optional<Preempter> Find(const Wait& wait) const;

 private:
  struct Runner {
    Preempter who;
    uint64_t ns = 0;
  };
  struct Absence {
    uint64_t out_ns = 0, in_ns = 0;
    uint32_t cpu = 0;
    bool has_moved = false;
    std::vector<Runner> runners{};  // in the order in which they ran first
  };
  struct Cpu {
    Preempter running{};
    uint64_t since_ns = 0;
    bool is_known = false;
    std::vector<uint32_t> absent{};  // tids of own threads that left this CPU, and do not run yet
  };

  void AddRunner(Cpu& cpu, const CpuSwitch& change);
  void EndAbsence(const CpuSwitch& change);
  void LoseCpu(Cpu& cpu);  // a switch of this CPU has no record
  void Drop(uint32_t tid);

  const uint32_t pid_;
  std::unordered_map<uint32_t, Cpu> cpus_;
  std::unordered_map<uint32_t, Absence> absent_;             // by tid
  std::unordered_map<uint32_t, std::deque<Absence>> ended_;  // by tid, the oldest first
};

}  // namespace perfkit::session
