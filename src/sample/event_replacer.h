// Replaces the events of a sampler by new ones: the contents of a sample are fixed when its event is opened, and
// threads that have inherited an event keep its period.
//
// Events are replaced as a whole. The new ones are opened beside the open ones, disabled; until TakeOver the open ones
// are those that count, and Drop leaves all as it was. The side band and the tracking events have no part in it.
#pragma once

#include <cstdint>

#include "src/sample/loss_accounting.h"
#include "src/sample/thread_attacher.h"

namespace perfkit::sample {

// Not thread-safe.
class EventReplacer {
 public:
  // The arguments must outlive the object.
  EventReplacer(const Plan& plan, SamplerRings& rings, WriterIndex& writers, DuplicateFilter& duplicates,
                ThreadAttacher& attacher, LossAccounting& losses)
      : plan_(plan), rings_(rings), writers_(writers), duplicates_(duplicates), attacher_(attacher), losses_(losses) {}

  // Opens events at `level` for all existing threads: those that had inherited events get their own. With
  // Rings::kPerThread only for threads that have a ring; others are newcomers. On an error no new event is open.
  absl::Status Open(const SamplingLevel& level);
  // Closes the new events.
  void Drop();
  // Closes the events that an earlier TakeOver has replaced. Until then they may still finish a sample.
  void CloseReplaced();
  // Enables the new events, then disables the open ones, so that no sample is missed. Returns a time at which
  // both were enabled. Requires TakeOver.
  uint64_t SwitchOver();
  // Puts the new events in the place of the open ones, which wait for CloseReplaced. `drained_ns`: all earlier records
  // have been read. The index of writers must be rebuilt.
  void TakeOver(uint64_t drained_ns);

 private:
  uint64_t Now() const;
  // Exchanges the open events of the sets of samples for the new ones.
  void Swap();
  void Retire(RingSet& set);

  const Plan& plan_;
  SamplerRings& rings_;
  WriterIndex& writers_;
  DuplicateFilter& duplicates_;
  ThreadAttacher& attacher_;
  LossAccounting& losses_;
};

}  // namespace perfkit::sample
