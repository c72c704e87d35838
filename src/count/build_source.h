// Opens a Source: checks the request, builds the Source, and builds it again if its self-test found a way of reading
// wrong, or if threads were started meanwhile.
#pragma once

#include <memory>
#include <string>

#include "src/count/source_builder.h"

namespace perfkit::count {

// Returns an event that stands for one that could not be resolved, so that later events keep their indexes. It is
// a kernel-side event that excludes the kernel, which would always count 0. So it is refused before anything is opened.
EventConfig Placeholder(std::string name);

// `migrations_by_records`: as SourceBuilder's. Errors: as CounterSet::Open.
absl::StatusOr<std::unique_ptr<Source>> BuildSource(Groups groups, const Target& target, const CounterOptions& options,
                                                    std::optional<bool> migrations_by_records = std::nullopt);

}  // namespace perfkit::count
