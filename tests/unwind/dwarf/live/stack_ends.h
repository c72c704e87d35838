// The number of StackEnd's values, for counts by end.
#pragma once

#include <cstddef>

#include "perfkit/stack_frame.h"

namespace perfkit::testing {

inline constexpr size_t kStackEnds = static_cast<size_t>(StackEnd::kNotReady) + 1;

}  // namespace perfkit::testing
