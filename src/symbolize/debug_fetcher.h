// The interface between a Symbolizer and the component perfkit::dwarf, which downloads separate debug files. The core
// library does not link that component, so it calls it through this class only.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::symbolize {

// Not thread-safe.
class DebugFetcher {
 public:
  virtual ~DebugFetcher() = default;

  // Returns the path of the debug file of the build `build_id`. May take seconds. Errors: NotFound if no server has it;
  // others if no server could be asked.
  virtual absl::StatusOr<std::string> Fetch(base::Bytes build_id) = 0;
};

}  // namespace perfkit::symbolize
