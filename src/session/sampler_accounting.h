// The accounting of samplers as a profile has it.
#pragma once

#include "perfkit/profile.h"
#include "perfkit/sampler_stats.h"

namespace perfkit::session {

// Adds what a sampler has counted, lost and cost. Its events are the first ones of the profile.
void AddAccounting(Profile& profile, const SamplerStats& stats);

}  // namespace perfkit::session
