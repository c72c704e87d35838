// Patterns of fnmatch(3).
#pragma once

#include <string_view>

namespace perfkit::base {

// Returns where the bracket expression ends with which `pattern` begins: after its ']'; npos if it does not end. A ']'
// that comes first is a member, as are those of classes such as "[:alpha:]".
constexpr size_t BracketEnd(std::string_view pattern) {
  size_t at = 1;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  for (const size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) return at + 1;
    if (pattern[at] == '\\') {
      ++at;
      continue;
    }
    const char kind = pattern[at] == '[' && at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (kind != ':' && kind != '.' && kind != '=') continue;
    const char end[] = {kind, ']'};
    const size_t closed = pattern.find(std::string_view(end, 2), at + 2);
    if (closed != std::string_view::npos) at = closed + 1;
  }
  return std::string_view::npos;
}

// Returns false if `pattern` has a '[' without its ']', or ends with the '\' of an escape: fnmatch compares the first
// as if it were escaped, and matches nothing by the second.
constexpr bool IsGlob(std::string_view pattern) {
  while (!pattern.empty()) {
    size_t length = 1;
    if (pattern[0] == '\\') length = 2;
    if (pattern[0] == '[') length = BracketEnd(pattern);
    if (length > pattern.size()) return false;
    pattern.remove_prefix(length);
  }
  return true;
}

}  // namespace perfkit::base
