// Names of other programs in text that a terminal shows.
#pragma once

#include <string>
#include <string_view>

namespace perfkit::base {

// Returns `name` as one line: control characters become spaces, bytes that are no UTF-8 question marks.
std::string OneLine(std::string_view name);

}  // namespace perfkit::base
