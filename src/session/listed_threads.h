// The threads that SessionOptions::threads lists.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::session {

struct ListedThread {
  uint32_t tid = 0;
  std::string name;
};

// Returns the threads of this process with these tids, each once. Errors: NotFound if one does not exist.
absl::StatusOr<std::vector<ListedThread>> FindThreads(std::span<const pid_t> tids);

}  // namespace perfkit::session
