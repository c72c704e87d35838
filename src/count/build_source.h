// Opens a Source: checks the request, builds the Source, and builds it again if the first attempt does not hold.
#pragma once

#include <memory>

#include <string>

#include "src/count/source_builder.h"

namespace perfkit::count {

// Keeps the place of an event that could not be resolved. It is refused before anything is opened: a kernel-side event
// in user space only would count 0 for ever.
EventConfig Placeholder(std::string name);

// Errors: as CounterSet::Open.
absl::StatusOr<std::unique_ptr<Source>> BuildSource(Groups groups, const Target& target, const CounterOptions& options);

}  // namespace perfkit::count
