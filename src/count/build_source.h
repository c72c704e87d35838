// Opens a Source: checks, builds, and builds again where the first attempt turns out not to hold.
#pragma once

#include <memory>

#include "src/count/source_builder.h"

namespace perfkit::count {

// Errors: as CounterSet::Open.
absl::StatusOr<std::unique_ptr<Source>> BuildSource(Groups groups, const Target& target, const CounterOptions& options);

}  // namespace perfkit::count
