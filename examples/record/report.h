// Prints the profile as reports, and writes it to files.
#pragma once

#include <absl/status/status.h>
#include <perfkit/profile.h>

#include "options.h"
#include "tool/output.h"

namespace record {

// Returns InvalidArgument if no linked format has the extension of an output. Call it before sampling.
absl::Status CheckOutputs(const Options& options);

// Prints one report for each event, and writes the files.
absl::Status Report(const Options& options, const perfkit::Profile& profile, tool::Output& output);

}  // namespace record
