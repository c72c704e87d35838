// The accounting of a sampler: where each sample went, what was lost and when, and what sampling has cost (sampler.h).
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <vector>

namespace perfkit {

// Where the stack of each sample went, with CallStack::Live; all 0 for events with SampledEvent::stack = false. For the
// others, accounted() equals the event's EventAccounting::accounted().
struct StackAccounting {
  uint64_t delivered = 0;   // LiveStacks delivered to a visitor.
  uint64_t duplicates = 0;  // Stacks of duplicate samples.
  uint64_t stale = 0;       // SIGTRAP was blocked, or its handler running, and the thread had gone on since the sample.
  uint64_t walk_limit = 0;  // Too soon after the last walk: walks take at most a quarter of a thread's time.
  uint64_t no_ring = 0;     // No ring was free for the thread (SamplerOptions::memory_bytes).
  uint64_t ring_full = 0;   // The ring was full because Drain was called too late.
  uint64_t paused = 0;      // Between Pause and Resume.
  uint64_t given_up = 0;    // Stacks were switched off to keep within SamplerOptions::cpu_budget.
  // Samples without a signal of their own, or whose signal has not arrived yet. The kernel merges the signals of
  // samples during one system call or interrupt, while the thread blocks SIGTRAP, and of events that happen at once. A
  // thread that ends gets no signal.
  uint64_t coalesced = 0;

  uint64_t skipped() const { return stale + walk_limit + no_ring + ring_full + paused + given_up + coalesced; }
  uint64_t accounted() const { return delivered + duplicates + skipped(); }
};

// Accounting of one event, over all threads and CPUs. Events that a kernel filter drops are not included.
struct EventAccounting {
  // The kernel's count: events, for clocks nanoseconds. While a sampler with RingMode::kOverwrite runs, what it has
  // counted since the last Snapshot is still in its rings, and not included (Sampler::counts includes it). With
  // SamplerOptions::Rings::kPerCpu, tracepoints about another thread (sched:sched_waking) are counted for both, but
  // sampled once.
  uint64_t counted = 0;
  uint64_t delivered = 0;  // Samples delivered to a visitor.
  // Samples that perfkit dropped because the thread had two copies of the event: because it started while the sampler
  // attached it, or because the event that it had inherited was being replaced (SetRate).
  uint64_t duplicates = 0;
  uint64_t lost = 0;       // Samples that the kernel dropped because the ring was full.
  uint64_t paused = 0;     // Samples between Pause and Resume.
  uint64_t malformed = 0;  // Samples too short for their first fields. Sample::Parse checks the others.
  uint64_t foreign = 0;    // Part of delivered: SamplerRecord::foreign.
  uint64_t throttled = 0;  // Times that the kernel stopped the event because it came too often.
  // Sum of the periods of the delivered samples: events, for clocks nanoseconds. 0 for events at a Frequency other than
  // clocks, and at Period{1} for tracepoints that may count several at once (sched:sched_stat_runtime, and those known
  // by their number only): their samples have the period (Sample::period).
  uint64_t represented = 0;
  // Clocks: nanoseconds that no sample stands for.
  uint64_t unsampled_ns = 0;
  StackAccounting stacks;  // With CallStack::Live.
  // A count could not be read; `counted` includes its last known value.
  bool counted_is_lower_bound = false;

  // Returns the number of samples accounted for: `counted` for events of Period{1}, once the sampler is stopped and
  // drained. With RingMode::kOverwrite it lacks the samples that were overwritten.
  uint64_t accounted() const { return delivered + duplicates + lost + paused + malformed; }
};

// The kernel's count of one event on one thread or CPU (Sampler::counts).
struct SamplerCount {
  uint32_t event = 0;  // Index in SamplerOptions::events.
  // The thread it was opened on, with all that inherited it. -1: all threads (whole CPUs), or if `cpu` is also -1,
  // threads whose events are closed: they have ended, or their events were replaced (Sampler::SetRate).
  int tid = -1;
  int cpu = -1;                         // -1: all CPUs.
  bool full_stack = false;              // The event's count for full dumps: SamplerStats::full.
  uint64_t counted = 0;                 // Events, for clocks nanoseconds.
  bool counted_is_lower_bound = false;  // As EventAccounting::counted_is_lower_bound.
};

// An interval in which ring `ring` lost `lost` records, because it was full or paused; times are by
// SamplerOptions::clock_id. Rings of samples have the numbers below Sampler::rings(); those of the side band follow.
struct LossInterval {
  uint64_t from_ns = 0, to_ns = 0;
  uint64_t lost = 0;
  uint32_t ring = 0;
};

// A change of what is sampled: to keep SamplerOptions::cpu_budget, or so that sampled threads advance.
struct SamplerDecision {
  enum class What : uint8_t {
    kStackBytes,  // The size of stacks: bytes of a dump, or calls of a chain.
    kStack,       // Whether samples have a stack.
    kSamples,     // The factor by which samples are rarer than asked for.
  };
  enum class Why : uint8_t {
    kCost,      // The cost exceeded the budget.
    kLoss,      // Samples were lost in two windows in a row.
    kHeadroom,  // The cost was far below the budget for a while.
    // Live stacks: a sampled thread did not advance, because handling one signal took until the next one came. The
    // event was disabled at once, for all threads that share it, and the next Drain lowers the rate. If Stop comes
    // before it, the rate stays: `from` is `to`.
    kNoProgress,
  };
  What what = What::kSamples;
  Why why = Why::kCost;
  uint64_t from = 0, to = 0;        // Bytes, calls, or the factor.
  double cost = 0;                  // Cost in the window before, as a fraction of one CPU. kNoProgress: 0.
  uint64_t from_ns = 0, to_ns = 0;  // No event was counted in this interval, by SamplerOptions::clock_id.
};

// The accounting of a sampler since Open.
struct SamplerStats {
  std::vector<EventAccounting> events;  // In the order of SamplerOptions::events.
  std::vector<EventAccounting> full;    // The same for full dumps; empty without FullDumps.
  std::vector<LossInterval> losses;     // The latest 256.
  uint64_t losses_forgotten = 0;        // Number of intervals before those.
  // EventAccounting::lost may be too low. Kernels before 6.0 count losses in LOST records only, not by event; so do all
  // kernels for inherited events with followers. Such a record names one event of its ring, so `lost` of one event may
  // contain losses of the others. Or a count could not be read
  // (EventAccounting::counted_is_lower_bound).
  bool lost_is_lower_bound = false;
  // Losses of a full ring and of a pause could not be told apart: they count as `lost`.
  bool paused_is_lower_bound = false;
  // Lost records other than samples: mappings and threads are not fully known. Does not include SWITCH records that are
  // not written between Pause and Resume.
  uint64_t side_band_lost = 0;
  // RingMode::kStream: drains that found a ring without room for its largest record. Unless a ring fills while it is
  // drained, records are lost only before such a drain.
  uint64_t drains_of_full_rings = 0;
  uint64_t malformed_bytes = 0;  // Bytes in rings that were not records.
  // RingMode::kOverwrite: bytes that were overwritten before a snapshot, or not delivered because a visitor threw.
  uint64_t overwritten_bytes = 0;
  // RingMode::kOverwrite: the time of the oldest record of the ring that went back least, among those that had been
  // overwritten when they were read; all records of later times were delivered. 0: no ring was overwritten.
  uint64_t overwritten_until_ns = 0;
  uint64_t late = 0;  // Records delivered after a later record of another ring.
  // Foreign samples (SamplerRecord::foreign) whose event is unknown, which are not delivered. Happens if several
  // software events are inherited, on kernels before 6.12.
  uint64_t unattributed = 0;
  // SamplerOptions::Rings::kPerThread: threads that ended before they were attached, or got no ring at first.
  uint64_t threads_missed = 0;
  // With side_band: processes that existed at the last Start and whose mappings could not be read. They belong to
  // another user (reading takes the right to trace the process), ended meanwhile, or were not read before Stop. Their
  // code has no names.
  uint64_t processes_unread = 0;
  // CPU time of this process for Drain, upkeep and walks of live stacks. A walk of more than 50 us may have waited for
  // a CPU and is not included; then at least the next 16 walks of its thread are timed by CPU time.
  uint64_t own_cpu_ns = 0;
  // Estimate of the kernel's CPU time for samples: a cost for each. That of a signal of a live stack is measured at Open,
  // the others were measured once, on a virtual machine with Linux 6.18.
  uint64_t kernel_cpu_ns = 0;
  std::vector<SamplerDecision> decisions;  // The latest 256.
  uint64_t decisions_forgotten = 0;        // Number of decisions before those.
  uint64_t decisions_refused = 0;          // Decisions that failed, e.g. because descriptors ran out.
  // Events of a running sampler that the kernel did not enable. Each Drain tries again.
  uint64_t events_stuck = 0;
};

}  // namespace perfkit
