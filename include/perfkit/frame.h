// What frames, zones and hitches are made of: plain data, as FrameCounter (frame_counter.h) hands it out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/count.h"

namespace PERFKIT_NAMESPACE {

// Names a zone by the address of its text, which costs one comparison on the hot path. Equal texts at different
// addresses are one zone. The text is copied when the zone is first seen; until then, and as long as the address is
// used, it must stay as it is: a literal, or what FrameCounter::DefineZone returned.
struct ZoneId {
  const char* name = nullptr;
};

// Names a chain of frames: 0 is the main one.
struct FrameId {
  uint32_t index = 0;
};

// One frame of one thread. `values[i]` is event i's count, as raw as it was read; meaningless where bit i of `missing`
// is set.
struct FrameRecord {
  uint64_t number = 0;   // counted from 0
  uint64_t wall_ns = 0;  // from Mark to Mark, by the tick counter
  std::array<uint64_t, kMaxEvents> values{};
  uint32_t missing = ~0u;
};

// The last frames, oldest first: a view that the next Mark changes.
class FrameHistory {
 public:
  FrameHistory(const FrameRecord* ring, size_t mask, uint64_t end, size_t size)
      : ring_(ring), mask_(mask), end_(end), size_(size) {}

  size_t size() const { return size_; }
  // `i` = size() - 1 is the newest.
  const FrameRecord& operator[](size_t i) const { return ring_[(end_ - size_ + i) & mask_]; }

 private:
  const FrameRecord* ring_;
  size_t mask_;
  uint64_t end_;
  size_t size_;
};

// Per-frame values of one counter: percentiles (too high by at most 1/32; exact below 64) and the exact maximum.
struct Quantiles {
  uint64_t p50 = 0, p95 = 0, p99 = 0, max = 0;
  uint64_t count = 0;  // frames; 0: nothing was counted, and the other numbers mean nothing
};

// One zone under one parent, over all frames so far: the sum over threads of the same name.
struct ZoneStats {
  std::string name;    // "" for the frame itself, the root of its tree
  std::string thread;  // the name given to AttachThread, else "workers"; "" for the thread that marks frames
  uint32_t depth = 0;  // 0: the frame itself
  size_t parent = 0;   // index in the list; its own for a root
  uint32_t threads = 0;
  uint64_t calls = 0;
  uint64_t frames = 0;  // in which it was entered
  // The clock on the wall, and the counts: total = self + the totals of all children, exactly.
  uint64_t wall_ns = 0, self_wall_ns = 0;
  std::array<Count, kMaxEvents> total{}, self{};
  // Of the sum over one frame (of one thread).
  Quantiles wall_quantiles;
  std::array<Quantiles, kMaxEvents> quantiles{};
  // The frame before the last Mark.
  FrameRecord last;
};

// A frame that took longer than its budget, and why. No pointer in it outlives the FrameCounter but `worst_zone`'s
// text, which lives as long.
struct Hitch {
  uint64_t frame = 0;
  uint64_t wall_ns = 0, budget_ns = 0;
  char cause[192] = {};         // a sentence, NUL-terminated
  const char* worst_zone = "";  // the zone that exceeded its own median most; "" when none did
  uint64_t worst_excess_ns = 0;

  // What the kernel did to the thread. `at_least`: the rings were too small for the frame, and older events are gone.
  // `known`: false when the kernel would not tell.
  bool switches_known = false, faults_known = false;
  bool at_least = false;
  uint64_t preemptions = 0, preempted_ns = 0;  // it could have run, another did
  uint64_t waits = 0, waited_ns = 0;           // it slept or blocked
  uint64_t migrations = 0;                     // means nothing without migrations_known
  uint64_t faults = 0;
  static constexpr size_t kMaxAddresses = 16;
  std::array<uint64_t, kMaxAddresses> fault_addresses{};  // of the first faults that are still known
  size_t fault_address_count = 0;

  // What the frame's own events tell where the kernel's log is not known (perf is forbidden, or out of memory): from
  // task-clock and context-switches, if they are counted. `faults` and `migrations` are then from page-faults and
  // cpu-migrations.
  bool away_known = false, switch_count_known = false;
  bool migrations_known = false;  // by the log, or by cpu-migrations
  uint64_t away_ns = 0;   // wall_ns without the thread's CPU time
  uint64_t switches = 0;  // preemptions and waits
};

// What the FrameCounter accounts for about itself.
struct FrameStats {
  uint64_t frames = 0;
  uint64_t zones = 0;          // entered and left
  uint64_t dropped = 0;        // too deep, too many, or in a signal handler at work: their time is in the parent
  uint64_t mismatched = 0;     // left without having been entered, or never left
  uint64_t cross_thread = 0;   // left on another thread than entered on: no number
  uint64_t foreign_marks = 0;  // Mark() by a thread that the frame does not belong to: ignored
  uint64_t unplaced = 0;       // per-frame values that no histogram had room for
  uint64_t hitches = 0;
  uint32_t threads = 0;          // attached now, the marking one included
  uint32_t refused_threads = 0;  // more than Options::max_threads: not counted
  double overhead_fraction = 0;  // calibrated cost of all zones and marks, over the time since the start
};

}  // namespace PERFKIT_NAMESPACE
