// From thread to thread: who held the lock that another one waited for, and who woke it.
#pragma once

#include <cstdint>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

struct Arrow {
  enum class Kind : uint8_t {
    kHeld,  // `from` held the lock when `to` was examined; `at_ns` is the begin of the wait.
    kWoke,  // `from` woke `to` at `at_ns`, the end of the wait.
  };
  Kind kind = Kind::kHeld;
  uint32_t from = 0, to = 0;  // In Profile::threads.
  uint64_t at_ns = 0;
  uint32_t sample = 0;  // The wait, in Profile::samples.
};

// Returns the arrows of all waits that have a time, sorted by at_ns. A waker that is no thread of the profile, or whose
// name and number several threads have, has none.
std::vector<Arrow> FindArrows(const Profile& profile);

}  // namespace perfkit::exporters
