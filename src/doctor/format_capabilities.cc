// Formats capabilities as a page of text: a table of all, a paragraph with cause and remedy for each one that is
// missing, and the hints.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/capabilities.h"
#include "src/base/text.h"

namespace perfkit {
namespace {

constexpr size_t kColumns = 100;
// By CapabilityState.
constexpr std::string_view kMarks[] = {"yes", "no", "?"};

// Returns `text` broken at blanks into lines of kColumns; all but the first begin with `indent` blanks.
std::string Wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  base::ForEachPiece(text, ' ', [&](std::string_view word) {
    if (column > indent && column + word.size() + 1 > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  });
  return out;
}

std::string TableLine(const Capability& row, size_t width) {
  const std::string_view mark = kMarks[static_cast<size_t>(row.state)];
  const std::string_view what = row.state == CapabilityState::kMissing ? std::string_view(row.cause) : row.found;
  // Lines that are wrapped go on below the text, not below the name.
  const std::string start = absl::StrFormat("%-*s  %-3s  ", width, row.name, mark);
  return start + Wrapped(what, start.size()) + "\n";
}

std::string Obstacle(const Capability& row) {
  constexpr size_t kIndent = 12;
  return absl::StrFormat("%s\n  %-10s%s\n  %-10s%s\n  %-10s%s\n", row.name, "tried", Wrapped(row.probe, kIndent),
                         "cause", Wrapped(row.cause, kIndent), "remedy", Wrapped(row.remedy, kIndent));
}

}  // namespace

std::string FormatCapabilities(const Capabilities& capabilities) {
  size_t width = 0;
  for (const Capability& row : capabilities.rows) width = std::max(width, row.name.size());
  std::string text, obstacles;
  for (const Capability& row : capabilities.rows) {
    text += TableLine(row, width);
    if (row.state == CapabilityState::kMissing) obstacles += "\n" + Obstacle(row);
  }
  if (!obstacles.empty()) text += "\nWhat is missing, with remedies\n" + obstacles;
  if (!capabilities.hints.empty()) text += "\nAbout this machine\n";
  for (const std::string& hint : capabilities.hints) text += "  * " + Wrapped(hint, 4) + "\n";
  return text;
}

}  // namespace perfkit
