// Opens a Source: checks the request, builds the Source, and builds it again if the first attempt does not hold.
#pragma once

#include <memory>

#include "src/count/source_builder.h"

namespace perfkit::count {

// Errors: as CounterSet::Open.
absl::StatusOr<std::unique_ptr<Source>> BuildSource(Groups groups, const Target& target, const CounterOptions& options);

}  // namespace perfkit::count
