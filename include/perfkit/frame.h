// The results of a FrameCounter (frame_counter.h): frames, zones and hitches, as plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/count.h"

namespace PERFKIT_NAMESPACE {

// Identifies a zone by its name. The hot path compares addresses of names, but equal names at different addresses are
// still one zone. `name` must be a string literal, or what FrameCounter::DefineZone returned: it is copied when the
// zone is first entered, and its address must not hold another name as long as the FrameCounter or TaskCounter exists.
// So code that may be unloaded (dlclose) uses DefineZone, or a literal of the program.
struct ZoneId {
  const char* name = nullptr;
};

// Identifies a frame sequence, the frames of one loop: 0 is the main loop, the others are returned by
// FrameCounter::DefineFrame.
struct FrameId {
  uint32_t index = 0;
};

// One frame of one thread, or one zone within a frame. Counts are as they were read: multiplexed ones are not scaled.
struct FrameRecord {
  uint64_t number = 0;                        // Index of the frame, from 0.
  uint64_t wall_ns = 0;                       // Elapsed time, by the tick counter.
  std::array<uint64_t, kMaxEvents> values{};  // By event.
  // Bit i: event i has no count (e.g. it was never on the PMU meanwhile), and values[i] is meaningless.
  uint32_t missing = ~0u;
};

// The latest frames, oldest first. A view: valid until the next Mark.
class FrameHistory {
 public:
  FrameHistory(const FrameRecord* ring, size_t mask, uint64_t end, size_t size)
      : ring_(ring), mask_(mask), end_(end), size_(size) {}

  size_t size() const { return size_; }
  // Returns frame `i`; size() - 1 is the latest. Requires i < size().
  const FrameRecord& operator[](size_t i) const { return ring_[(end_ - size_ + i) & mask_]; }

 private:
  const FrameRecord* ring_;
  size_t mask_;
  uint64_t end_;
  size_t size_;
};

// Quantiles of a value per frame (ZoneStats) or per task (TaskZoneStats). A percentile exceeds the true value by at
// most 1/32 of it; values below 64 (ns, or events) are exact, and so is the maximum.
struct Quantiles {
  uint64_t p50 = 0, p95 = 0, p99 = 0, max = 0;
  uint64_t count = 0;  // Number of values; 0 means that the other members are meaningless.
};

// One zone under one parent: its sums over all frames so far and over all threads of the same name.
struct ZoneStats {
  std::string name;      // "" for the frame itself, the root of its tree.
  std::string thread;    // The name given to AttachThread, else "workers"; "" for the thread that marks frames.
  uint32_t depth = 0;    // 0 for the frame itself.
  size_t parent = 0;     // Index in FrameCounter::zones(); a root is its own parent.
  uint32_t threads = 0;  // Number of threads that entered it, including ended ones.
  uint64_t calls = 0;    // Times that it was entered, and left on the same thread.
  uint64_t frames = 0;   // Number of frames in which it was entered, added up over its threads.
  // If true, calls of it ended on another thread. They are not counted here but in the self of the parent, so the times
  // and counts below are lower bounds. If nothing was counted of a total or self, neither another call nor a zone
  // inside, its counts have Validity::kOtherThread.
  bool at_least = false;
  // Elapsed time and counts. A zone's total is exactly its self plus the totals of its children.
  uint64_t wall_ns = 0, self_wall_ns = 0;
  std::array<Count, kMaxEvents> total{}, self{};
  // Quantiles over the frames of each thread. A value is the zone's elapsed time, or its count, in one frame: the sum
  // over its calls. Frames in which a call of it ended on another thread are left out.
  Quantiles wall_quantiles;
  std::array<Quantiles, kMaxEvents> quantiles{};
  // Its sums in the latest complete frame in which it was entered: FrameRecord::number says which. If a call of it
  // ended on another thread in that frame, `missing` has all bits, and `wall_ns` is a lower bound.
  FrameRecord last;
};

// A frame that took longer than FrameOptions::hitch_budget, and why. `worst_zone` is valid as long as the FrameCounter.
struct Hitch {
  uint64_t frame = 0;  // FrameRecord::number.
  uint64_t wall_ns = 0, budget_ns = 0;
  char cause[192] = {};  // A sentence, NUL-terminated.
  // The zone that exceeded its median time per frame most; then, as long as there is one, the zone directly inside of
  // it that has at least half of its excess. "" if none exceeded it. The median counts as 0 for a zone that is new, or
  // that was entered in fewer than half of the frames. A zone of which a call ended on another thread in this frame is
  // left out.
  const char* worst_zone = "";
  uint64_t worst_excess_ns = 0;  // The excess of `worst_zone`.

  // From the kernel's log of the thread's context switches and user-space page faults. If `switches_known` is false,
  // at_least, preemptions and waits are meaningless; if `faults_known` is false, `faults` and the addresses.
  bool switches_known = false, faults_known = false;
  // The log lost switches: preemptions, waits and migrations, with their times, are lower bounds.
  bool at_least = false;
  uint64_t preemptions = 0, preempted_ns = 0;  // The thread was runnable, but another one ran.
  // The thread slept or was blocked. waited_ns includes the time from its wake-up until it got a CPU: a thread's switch
  // records do not tell that from sleep.
  uint64_t waits = 0, waited_ns = 0;
  uint64_t migrations = 0;                     // Meaningless if `migrations_known` is false.
  uint64_t faults = 0;
  static constexpr size_t kMaxAddresses = 16;
  std::array<uint64_t, kMaxAddresses> fault_addresses{};  // Of the frame's first faults that are in the log.
  size_t fault_address_count = 0;

  // Without that log (perf is forbidden, or memory ran out), events of FrameOptions::events replace it: task-clock sets
  // `off_cpu_ns`, context-switches `switches`, page-faults `faults`, and cpu-migrations `migrations`. An event that was
  // off the PMU for a part of the frame (in a group) replaces nothing.
  bool off_cpu_known = false;       // If false, `off_cpu_ns` is meaningless.
  bool switch_count_known = false;  // If false, `switches` is meaningless.
  bool migrations_known = false;    // By the log, or by cpu-migrations.
  uint64_t off_cpu_ns = 0;          // wall_ns less the thread's CPU time.
  uint64_t switches = 0;            // Preemptions and waits.
};

// The accounting of a FrameCounter about itself.
struct FrameStats {
  uint64_t frames = 0;
  uint64_t zones = 0;          // Zones that were entered and left.
  uint64_t dropped = 0;        // Zones beyond a limit, without memory, or in a signal handler that interrupted a mark,
                               // a zone's start or end, or a read of the results. Their time counts for the parent.
  uint64_t mismatched = 0;     // Zones that were left without having been entered; and those that were still open when
                               // a zone around them was left, or when their thread ended or was detached.
  uint64_t cross_thread = 0;   // Zones that were left on another thread than entered on, while that one was attached:
                               // not counted.
  uint64_t foreign_marks = 0;  // Marks by a thread that does not own the frames: ignored.
  uint64_t unplaced = 0;       // Values per frame that no histogram had room for: missing in percentiles.
  uint64_t hitches = 0;
  uint32_t threads = 0;          // Number of threads attached now, including the marking one.
  uint32_t refused_threads = 0;  // Threads beyond FrameOptions::max_threads: not counted.
  // Calibrated cost of all threads' zones and of the marks, divided by the time of the marking thread's frames. The
  // cost is that of the marking thread's read paths: too low if another thread got slower ones, e.g. because no more
  // file descriptors were left. Then FormatZones has a warning.
  double overhead_fraction = 0;
};

}  // namespace PERFKIT_NAMESPACE
