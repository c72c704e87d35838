// Names of other programs in text that a terminal shows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace perfkit::base {

// Returns `name` as one line: control characters become spaces, bytes that are no UTF-8 question marks.
std::string OneLine(std::string_view name);

// Returns how many columns `text` takes: characters of UTF-8.
size_t Columns(std::string_view text);
// Returns at most `columns` of `text`: the middle of a longer one is replaced by "...".
std::string CutMiddle(std::string_view text, size_t columns);

}  // namespace perfkit::base
