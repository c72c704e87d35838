// The report: where the time went, whether all of it is told, and what the telling cost.
#pragma once

#include <perfkit/sampler.h>

#include <vector>

#include "options.h"
#include "profile.h"

namespace record {

struct Durations {
  double sampled_s = 0;  // while the events were on
  double read_s = 0;     // until the rings were empty: after a short run most of the reading is still to be done
};

// Prints to stdout. `samplers` have stopped and are drained.
void Report(const Options& options, const std::vector<perfkit::Sampler>& samplers, Profile& profile,
            const Durations& durations);

}  // namespace record
