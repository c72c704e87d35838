// Names of the reasons for which unwinding stops.
#include "perfkit/stack_frame.h"

namespace perfkit {

std::string_view StackEndName(StackEnd end) {
  constexpr std::string_view kNames[] = {"root",        "truncated", "no mapping", "no info",     "unreadable",
                                         "no progress", "limit",     "no stack",   "no registers",
                                         "not ready"};
  const auto index = static_cast<size_t>(end);
  return index < std::size(kNames) ? kNames[index] : "";
}

}  // namespace perfkit
