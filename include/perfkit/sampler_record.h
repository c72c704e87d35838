// A record of a sampler's rings, with its origin: what Sampler::Drain gives to its visitor.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>

#include "perfkit/ring_reader.h"

namespace perfkit {

// A record with its origin. A view: valid until the visitor returns.
struct SamplerRecord : RawRecord {
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  // Index in SamplerOptions::events of the event that wrote it; kNoEvent for the side band, SWITCH and synthesized
  // records, and if the event is not known.
  uint32_t event = kNoEvent;
  bool synthesized = false;  // Made by perfkit for what existed when the sampler started.
  bool full_stack = false;   // An extra sample that was taken for its stack: FullDumps. Leave it out of sums.
  // A sample of a software event that another sampler (of this process, or perf's) also samples on this thread. The
  // kernel prepared the sample for that sampler: its id, time, stack and registers follow that sampler's options. If
  // that one asks for no id, as perf record does for a single event, only a time that can't be tells.
  bool foreign = false;
  // For samples: the number of events that this one represents; for clocks, of nanoseconds. The sum over an event's
  // samples without full_stack is EventAccounting::represented, if that is not 0. Those with full_stack represent the
  // same events again; their sum is in SamplerStats::full.
  uint64_t weight = 0;
  // The record's time by SamplerOptions::clock_id; for a foreign sample with a time of another clock, the time of the
  // record before it in its ring. 0 for synthesized records and for live stacks.
  uint64_t time_ns = 0;
};

}  // namespace perfkit
