// The nearest known names to a mistyped one, for "did you mean" in errors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::base {

// Returns the number of edits that turn `a` into `b`: insert, delete, replace, swap of neighbours. Letter case is free.
// Compares the first 128 characters of each.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns at most `most` of `known`, nearest first, ties in their given order. Leaves out names that are further away
// than a third of the compared length (at least 2 edits), unless they contain the typed text.
std::vector<std::string> Nearest(std::string_view typed, std::span<const std::string> known, size_t most = 3);

}  // namespace perfkit::base
