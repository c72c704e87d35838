// Adds a sampler's accounting to that of a profile.
#pragma once

#include "perfkit/profile.h"
#include "perfkit/sampler_stats.h"

namespace perfkit::session {

// Returns a number that grows, at the latest with the next drain, when any record is lost.
uint64_t LossesOf(const SamplerStats& stats);

// Adds what a sampler has counted, lost and cost. Requires that the profile's first events are the sampler's, in order.
// Notes of its decisions say how long after `start_ns`, by its clock, they were.
void AddAccounting(Profile& profile, const SamplerStats& stats, uint64_t start_ns);

}  // namespace perfkit::session
