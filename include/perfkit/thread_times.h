// When threads ran and when they waited, from SWITCH records: off-CPU time, for every user.
//
//   on ─────── out (preempted?) ─ ─ ─ ─ ─ in ─────── out ─ ─ ─
//
// Feed it the records of a sampler that was opened with SamplerOptions::switches.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "perfkit/sample.h"

namespace perfkit {

// What one thread did between its first record and the last one: on_ns + off_ns is the time between them, exactly.
struct ThreadTime {
  uint32_t tid = 0;
  uint64_t on_ns = 0;         // on a CPU
  uint64_t off_ns = 0;        // not on any: blocked, or waiting for one
  uint64_t preempted_ns = 0;  // of off_ns: could have run on, but others did
  uint64_t switches = 0;      // times that it left its CPU
  uint64_t preemptions = 0;   // of these: involuntarily
  bool running = false;       // by its last record
};

// Adds up the records of any number of threads. For one thread at a time. Allocates once for each thread.
class ThreadTimes {
 public:
  // Takes SWITCH records, and passes over all others. In order of time, as a sampler gives them: a record of an earlier
  // time than the thread's last one counts for nothing.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // Brings all threads up to `now_ns`: what they do now, they have done until then.
  void Until(uint64_t now_ns);

  // Nothing is known of a thread before its first record.
  std::optional<ThreadTime> Of(uint32_t tid) const;
  std::vector<ThreadTime> All() const;

 private:
  struct State {
    ThreadTime time;
    uint64_t last_ns = 0;
    bool preempted = false;

    void AdvanceTo(uint64_t now_ns);
  };
  std::unordered_map<uint32_t, State> threads_;
};

}  // namespace perfkit
