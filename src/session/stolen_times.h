// The times that threads seemed to run, but did not: a hypervisor had the CPU, or interrupts did. A thread's CPU clock
// is without them (update_rq_clock_task in kernel/sched/core.c), but the records of switches say that it was on its
// CPU.
//
//   records     |--- on ------------------|  off  |--- on ---|      between two readings: the time on the CPU
//   CPU clock   r      r      r  stolen   r                         by records, less the growth of the CPU clock
//
// The clock leaves interrupts out only if the kernel has CONFIG_IRQ_TIME_ACCOUNTING, and what a hypervisor took only if
// it tells (steal in /proc/stat).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "perfkit/profile.h"
#include "src/session/kept_times.h"

namespace perfkit::session {

// Not thread-safe.
class StolenTimes {
 public:
  // Reads the CPU clock of a thread of this process. From then on it is followed.
  void Read(uint32_t thread, uint32_t tid);
  // Adds a reading. Those of a thread come in order of time.
  void AddReading(uint32_t thread, uint64_t at_ns, uint64_t cpu_ns);
  // Adds a time off the CPU that has ended. Those of a thread come in order of time.
  void AddOff(uint32_t thread, uint64_t from_ns, uint64_t to_ns);
  // The thread was on a CPU at this time, by a record, and all of its records until then were added.
  void Ran(uint32_t thread, uint64_t at_ns);
  // Drops the readings whose times are not compared yet. To be called if records are missing since the last one.
  void Restart();
  // If `losses` (LossesOf) has grown since the last call, restarts, and takes back what was found since then. To be
  // called after records were added, if it is due. The record that others were lost can't replace it: the kernel writes
  // it with the next record of that CPU's ring, and the thread may have gone on on another CPU.
  void Check(uint64_t losses);
  bool is_check_due() const { return is_check_due_; }
  // To be called with a record that others were lost, so that the next Check knows these losses to be old.
  void NoteLoss() { is_check_due_ = true; }
  // Forgets the threads that have become sums (ThreadTable::Retire).
  void Retire(std::span<const uint32_t> renamed);

  // Adds the counters of the times between from_ns and to_ns that are in `times` (profile::kStolenCounter).
  void AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const;

 private:
  struct Reading {
    uint64_t at_ns = 0, cpu_ns = 0;
  };
  struct Thread {
    std::deque<Reading> readings;  // the first one is compared with the second one next
    std::deque<std::pair<uint64_t, uint64_t>> off;
  };
  struct Stolen {
    uint32_t thread = 0;
    uint64_t from_ns = 0, to_ns = 0, ns = 0;
    bool is_checked = false;
  };
  static constexpr size_t kMaxStolen = 4096, kMaxReadings = 256;

  void Compare(uint32_t thread, Thread& state);

  std::map<uint32_t, Thread> threads_;  // by index in Profile::threads
  std::deque<Stolen> stolen_;           // the latest ones
  bool is_check_due_ = false;           // something was found, or a loss was told, since the last Check
  uint64_t losses_ = 0;                 // at the last Check
};

}  // namespace perfkit::session
