// Opens a Source: for each event the first path that works, then the proof of the inline ones.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/count/source.h"

namespace perfkit::count {

// Errors: as CounterSet::Open.
absl::StatusOr<std::unique_ptr<Source>> BuildSource(std::span<const std::vector<EventConfig>> groups,
                                                    const Target& target, const CounterOptions& options);

}  // namespace perfkit::count
