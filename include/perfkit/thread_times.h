// When threads ran and when they waited (off-CPU time), by a sampler's SWITCH records. Needs no privileges.
//
//   on ─────── out (preempted?) ─ ─ ─ ─ ─ in ─────── out ─ ─ ─ EXIT
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "perfkit/sample.h"

namespace perfkit {

// The time of one thread from its first SWITCH record to its EXIT record, or else to its last record or
// ThreadTimes::Until: exactly on_ns + off_ns.
struct ThreadTime {
  uint32_t tid = 0;
  uint64_t on_ns = 0;         // Time on a CPU.
  uint64_t off_ns = 0;        // Time off CPU: blocked, or waiting for a CPU.
  uint64_t preempted_ns = 0;  // Part of off_ns: runnable, but preempted.
  uint64_t switches = 0;      // Times that it left its CPU.
  uint64_t preemptions = 0;   // Part of switches: involuntary ones.
  bool running = false;       // On a CPU, according to its last record.
  bool ended = false;         // An EXIT record was seen.
};

// Adds up the SWITCH records of threads, from a sampler with SamplerOptions::switches. Not thread-safe. Allocates once
// for each thread.
class ThreadTimes {
 public:
  // Adds a SWITCH, EXIT or FORK record; ignores others. Requires records in order of time, as a sampler delivers them:
  // a SWITCH or FORK record that is older than its thread's last one is ignored. An EXIT record ends a thread; a FORK
  // record, unless synthesized, starts a new one with its tid. Idle threads, which all have tid 0, are ignored.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // Extends the times of all threads that have not ended, up to `now_ns` by SamplerOptions::clock_id. Add all earlier
  // records first: SWITCH and FORK records from before `now_ns` are ignored afterwards.
  void Until(uint64_t now_ns);

  // Returns the latest thread with this tid, or nullopt if it has no SWITCH record yet.
  std::optional<ThreadTime> Of(uint32_t tid) const;
  // Returns all threads, including those that ended and whose tid another thread has now.
  std::vector<ThreadTime> All() const;

 private:
  struct State {
    ThreadTime time;
    uint64_t last_ns = 0;
    bool preempted = false;

    void AdvanceTo(uint64_t now_ns);
    void EndAt(uint64_t now_ns);
  };
  void AddSwitch(const SwitchRecord& change);
  void AddFork(const ForkRecord& fork);

  std::unordered_map<uint32_t, State> threads_;  // By tid: the latest thread that had it.
  std::vector<ThreadTime> replaced_;             // Threads whose tid a later thread has.
};

}  // namespace perfkit
