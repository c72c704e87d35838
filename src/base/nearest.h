// The nearest known names to a mistyped one, for "did you mean" in errors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::base {

// Edits (insert, delete, replace, swap of neighbours; letter case is free) that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// At most `most` of `known`, nearest first, ties in their given order. Names further away than a third of the
// typed length (at least 2 edits) are no help and are left out, except those that contain what was typed.
std::vector<std::string> Nearest(std::string_view typed, std::span<const std::string> known, size_t most = 3);

}  // namespace perfkit::base
