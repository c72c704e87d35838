// Adds the kernel's losses and counts to the accounting.
//
// Each loss that the kernel counts is added once: as `paused` if it came from a pause, else as `lost`. The kernel does
// not tell the two apart. A ring that was never nearly full has lost nothing but in a pause, so it matters when losses
// are read: at the edges of a pause if there may be losses of both kinds, else as rarely as possible, because a read
// costs a system call for each thread and CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "src/sample/accounting.h"
#include "src/sample/sampler_rings.h"
#include "src/sample/writer_index.h"

namespace perfkit::sample {

// The latest 256 pauses; losses in earlier ones count as `lost`. Does not allocate.
class PauseHistory {
 public:
  struct Pause {
    uint64_t end_ns = 0;    // Time just before the rings are resumed.
    bool was_full = false;  // A ring was nearly full at its begin or end: losses may have come from the full ring.
  };

  void Add(const Pause& pause) { pauses_[count_++ % kPauses] = pause; }
  // Calls `each` with the kept pauses that ended in this interval.
  template <class Each>
  void ForEachWithin(uint64_t from_ns, uint64_t to_ns, Each&& each) const {
    const uint64_t kept = std::min<uint64_t>(count_, kPauses);
    for (uint64_t i = 1; i <= kept && pauses_[(count_ - i) % kPauses].end_ns >= from_ns; ++i) {
      const Pause& pause = pauses_[(count_ - i) % kPauses];
      if (pause.end_ns <= to_ns) each(pause);
    }
  }

 private:
  static constexpr uint64_t kPauses = 256;
  std::array<Pause, kPauses> pauses_{};
  uint64_t count_ = 0;
};

// Not thread-safe.
class LossAccounting {
 public:
  using Kind = uint64_t EventAccounting::*;

  // The arguments must outlive the object.
  LossAccounting(const Plan& plan, SamplerRings& rings, WriterIndex& writers, Accounting& accounting)
      : plan_(plan), rings_(rings), writers_(writers), accounting_(accounting) {}

  bool is_paused() const { return paused_; }
  // Called before the rings are paused, and before they go on.
  void BeginPause();
  void EndPause();

  // Called before a drain, which empties the rings. Returns true if one was nearly full.
  bool SettleBeforeDrain();
  // Called before statistics.
  void SettleAtEnd();
  // Called before the rate of an open event changes: losses so far were at the old rate.
  void SettleRate(RingEvent& ring_event);
  // Adds the losses and the count of an event that is about to be closed.
  void SettleClosed(RingEvent& ring_event);
  // Adds a LOST record at `time_ns`, which was read from `slot`. Returns true if it is of the side band.
  bool Add(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns);
  // Adds the counts of the open events to `stats`, after SettleAtEnd. `without_rings`: without the events whose samples
  // are in the overwriting rings that are written now.
  void AddCounts(SamplerStats& stats, bool without_rings);
  // Overwriting rings, whose events are disabled, are about to be read.
  void WillRead(RingSet& set) const;
  // Returns Sampler::counts, with the plan's indices of events.
  std::vector<SamplerCount> Counts();

 private:
  bool IsNearlyFull() const { return rings_.active.IsNearlyFull(plan_.LargestRecord()); }
  // Returns the sum to which losses since the last Settle belong, by the table in loss_accounting.cc.
  Kind KindNow();
  // Adds the losses since the last call.
  void Settle(Kind into);
  // Returns false if its losses could not be read.
  bool SettleEvent(RingEvent& ring_event, Kind into);
  // Returns false if the count could not be read and its last known value was added.
  bool AddCount(RingEvent& ring_event, EventAccounting& event) const;
  // Returns LossInterval::ring.
  uint32_t NumberOf(const RingSlot& slot);
  // Returns true if the losses of a LOST record at `time_ns` came from a pause.
  bool IsOfPause(const RingSlot& slot, uint64_t time_ns);
  // Adds a LOST record to its event, on kernels that do not count losses by event.
  void AddTold(const LostRecord& lost, uint64_t since_ns, bool of_pause);

  const Plan& plan_;
  SamplerRings& rings_;
  WriterIndex& writers_;
  Accounting& accounting_;
  bool paused_ = false;
  bool paused_since_ = false;   // There was a pause since losses were settled: some of them count as `paused`.
  bool full_since_ = false;     // A ring was nearly full since then: some losses may be real.
  bool full_at_pause_ = false;  // `full_since_` when the last pause began, before it was settled.
  PauseHistory pauses_;
  bool unsettled_ = false;            // The last read of an event's losses failed.
  bool lost_is_lower_bound_ = false;  // The count of an event that was closed could not be read.
};

}  // namespace perfkit::sample
