// What gets separate debug files from elsewhere: the door between the core, which knows what it lacks, and the
// component that knows servers. Only headers and bytes pass it, as with LineSource.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::symbolize {

// For one thread at a time.
class DebugFetcher {
 public:
  virtual ~DebugFetcher() = default;

  // Where the debug file of the build `build_id` is now. May take seconds. NotFound when nobody has it, another error
  // when nobody could be asked.
  virtual absl::StatusOr<std::string> Fetch(base::Bytes build_id) = 0;
};

}  // namespace perfkit::symbolize
