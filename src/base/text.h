// Text helpers that C++20 lacks: trimming, cutting at a separator, visiting lines. All return views into the caller's
// text and allocate nothing.
#pragma once

#include <string_view>
#include <utility>

namespace perfkit::base {

constexpr std::string_view kBlanks = " \t\r\n";

// Returns `text` without blanks at either end.
constexpr std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Returns the text before the first `separator` and the text after it; {text, ""} if there is none.
constexpr std::pair<std::string_view, std::string_view> Cut(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

// Calls `visit` with each piece of `text` between separators, including empty ones; an empty text has no pieces.
template <class Visitor>
constexpr void ForEachPiece(std::string_view text, char separator, Visitor&& visit) {
  while (!text.empty()) {
    const size_t at = text.find(separator);
    visit(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

}  // namespace perfkit::base
