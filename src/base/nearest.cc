// Computes the Damerau-Levenshtein distance (optimal string alignment), three rows at a time.
#include "src/base/nearest.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace perfkit::base {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool Same(char a, char b) { return Lower(a) == Lower(b); }

bool Contains(std::string_view text, std::string_view part) {
  return !part.empty() && std::search(text.begin(), text.end(), part.begin(), part.end(), Same) != text.end();
}

// Longer names are compared by their beginnings: the cost grows with the product of the lengths.
constexpr size_t kLongestCompared = 128;

}  // namespace

// row[j] is the distance between the first i characters of `a` and the first j of `b`; `above` is the row of i - 1 and
// `before` that of i - 2, which a swap of two characters needs.
size_t EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongestCompared);
  b = b.substr(0, kLongestCompared);
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (Same(a[i - 1], b[j - 1]) ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && Same(a[i - 1], b[j - 2]) && Same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::vector<std::string> Nearest(std::string_view typed, std::span<const std::string> known, size_t most) {
  // A third of the letters may be wrong. A name that contains the typed text comes after all those.
  const size_t limit = std::max<size_t>(2, std::min(typed.size(), kLongestCompared) / 3);
  std::vector<std::pair<size_t, const std::string*>> ranked;
  for (const std::string& name : known) {
    const size_t distance = EditDistance(typed, name);
    if (distance <= limit) {
      ranked.emplace_back(distance, &name);
    } else if (Contains(name, typed)) {
      ranked.emplace_back(limit + 1, &name);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : ranked) {
    if (nearest.size() == most) break;
    nearest.push_back(*name);
  }
  return nearest;
}

}  // namespace perfkit::base
