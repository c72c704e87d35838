// What becomes of the profile: reports on the terminal, and files.
#pragma once

#include <absl/status/status.h>
#include <perfkit/profile.h>

#include "options.h"

namespace record {

// InvalidArgument if no format that is linked has the extension of an output: to be known before anything is sampled.
absl::Status CheckOutputs(const Options& options);

// Prints one report for each event, and writes the outputs.
absl::Status Report(const Options& options, const perfkit::Profile& profile);

}  // namespace record
