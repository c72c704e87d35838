// The report: where the time went, whether all of it is told, and what the telling cost.
#pragma once

#include <perfkit/sampler.h>

#include <vector>

#include "options.h"
#include "profile.h"

namespace record {

// Prints to stdout. `samplers` have stopped and are drained; `seconds` went by while they ran.
void Report(const Options& options, const std::vector<perfkit::Sampler>& samplers, Profile& profile, double seconds);

}  // namespace record
