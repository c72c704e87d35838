// The accounting of a sampler: where each sample went, what was lost and when, and what sampling has cost (sampler.h).
#pragma once

#include <cstdint>
#include <vector>

namespace perfkit {

// Where each sample's stack went, with CallStack::Live: accounted() is the event's delivered + duplicates + lost +
// paused + malformed.
struct StackAccounting {
  uint64_t delivered = 0;   // LiveStacks that a visitor was given
  uint64_t duplicates = 0;  // as those of samples
  uint64_t stale = 0;       // the thread had blocked SIGTRAP, or was in the handler, and had gone on since the sample
  uint64_t budget = 0;      // the last walk took so long that this one would have slowed the thread down too much
  uint64_t no_ring = 0;     // more threads at once than rings, or nearly so (SamplerOptions::memory_bytes)
  uint64_t ring_full = 0;   // Drain came too late
  uint64_t paused = 0;      // between Pause and Resume
  uint64_t given_up = 0;    // while SamplerOptions::cpu_budget was too small for any
  // The kernel sent no signal of its own for it, or has not yet: samples during one call of the kernel or in one
  // interrupt (which came late), and all while the thread has SIGTRAP blocked, share one. So do several events at once;
  // and a thread that ends gets none.
  uint64_t coalesced = 0;

  uint64_t skipped() const { return stale + budget + no_ring + ring_full + paused + given_up + coalesced; }
  uint64_t accounted() const { return delivered + duplicates + skipped(); }
};

// Accounting of one event, over all threads and CPUs. What a kernel filter drops is in none of them.
struct EventAccounting {
  uint64_t counted = 0;    // the kernel's own count: events, or nanoseconds of a clock
  uint64_t delivered = 0;  // samples that a visitor was given
  // Dropped here: the kernel had two events for a thread that was born while being attached, or while events that it
  // had inherited were replaced (SetRate).
  uint64_t duplicates = 0;
  uint64_t lost = 0;       // the kernel had no room
  uint64_t paused = 0;     // between Pause and Resume
  uint64_t malformed = 0;  // samples that were not of the layout
  uint64_t foreign = 0;    // of those delivered: SamplerRecord::foreign
  uint64_t throttled = 0;  // times that the kernel stopped the event because it came too often
  // What the samples delivered stand for: each its period, in events, or in nanoseconds of a clock. 0 of events at a
  // Frequency, other than clocks: their samples say it themselves (Sample::period).
  uint64_t represented = 0;
  // Of clocks: the time that no sample stands for.
  uint64_t unsampled_ns = 0;
  StackAccounting stacks;  // with CallStack::Live
  // A count could not be read: `counted` has what was last known of it instead.
  bool counted_is_lower_bound = false;

  uint64_t accounted() const { return delivered + duplicates + lost + paused + malformed; }
};

// A time in which records were lost: in ring `ring`, `lost` of them, between these times. Rings of samples have the
// first numbers, up to Sampler::rings(); those of the side band follow.
struct LossInterval {
  uint64_t from_ns = 0, to_ns = 0;
  uint64_t lost = 0;
  uint32_t ring = 0;
};

// What a sampler gave up, or took back, to keep its cost (SamplerOptions::cpu_budget).
struct SamplerDecision {
  enum class What : uint8_t {
    kStackBytes,  // how much of the stack a sample has: bytes of a dump, or calls of a chain
    kStack,       // whether it has any
    kSamples,     // how many times fewer samples there are than was asked for
  };
  enum class Why : uint8_t {
    kCost,  // above the budget
    kLoss,  // samples were lost in one window after the other
    kRoom,  // far below it for a while
  };
  What what = What::kSamples;
  Why why = Why::kCost;
  uint64_t from = 0, to = 0;        // bytes, calls, or times
  double cost = 0;                  // in CPUs, in the window before
  uint64_t from_ns = 0, to_ns = 0;  // when it was made, by clock_id: in between no event was counted
};

struct SamplerStats {
  std::vector<EventAccounting> events;  // as in SamplerOptions::events
  std::vector<EventAccounting> full;    // the same of the samples that are taken beside them; empty without FullDumps
  std::vector<LossInterval> losses;  // the latest 256
  uint64_t losses_forgotten = 0;     // intervals before those
  // `lost` may be less than was lost: kernels before 6.0 do not count losses by event, only LOST records tell; or a
  // count could not be read (EventAccounting::counted_is_lower_bound).
  bool lost_is_lower_bound = false;
  // Losses while a ring was full and losses while paused could not be told apart: they are in `lost`.
  bool paused_is_lower_bound = false;
  uint64_t side_band_lost = 0;   // records other than samples: what is mapped, or who runs, is not fully known
  uint64_t malformed_bytes = 0;  // bytes in rings that were no records
  // RingMode::kOverwrite: written, and overwritten before a snapshot, or left by a visitor that threw.
  uint64_t overwritten_bytes = 0;
  uint64_t late = 0;  // delivered after a record of a later time, from another ring
  // Samples of foreign ids (SamplerRecord::foreign) of which nothing tells which event they are of: where several
  // software events are inherited, and the kernel is older than 6.12. They are not delivered.
  uint64_t unattributed = 0;
  uint64_t threads_missed = 0;  // Rings::kPerThread: ended before they were attached, or got no ring at first
  // What Drain, upkeep and walks of live stacks have taken of this process's CPU time. A thread's first walk of more
  // than 50 us is not in it, for it may have waited for its CPU; those after it are measured.
  uint64_t own_cpu_ns = 0;
  uint64_t kernel_cpu_ns = 0;  // about what the kernel has taken to write samples: so much for each, as measured
  std::vector<SamplerDecision> decisions;  // the latest 256
  uint64_t decisions_forgotten = 0;        // those before
  uint64_t decisions_refused = 0;          // could not be carried out: for want of descriptors, say
  // Events of a running sampler that the kernel did not switch on. Each Drain tries again.
  uint64_t events_stuck = 0;
};

}  // namespace perfkit
