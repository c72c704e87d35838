// Numbers, names and tables of reports. A weight has at most four digits, in the first unit where they suffice; more
// only in the largest unit. A table's columns are as wide as their widest cell, and names are cut in the middle if the
// page is narrower. Names come from other programs: bytes that are no text are replaced, so that a row is one line and
// a report can't control the terminal that shows it.
#include "src/profile/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace perfkit::profile {
namespace {

// A value with at most four digits, in the first unit where they suffice, or in the largest.
std::string Scaled(double value, double step, std::vector<std::string_view> units) {
  // "1023 B" has four digits. Larger units show at least one after the point: 999.96 would be "1000.0".
  size_t unit = 0;
  while (unit + 1 < units.size() && value >= (unit == 0 ? step : 999.95)) {
    value /= step;
    ++unit;
  }
  // The bounds are where rounding to that many digits would show one digit more: 9.9995 would be "10.000".
  const int digits = unit == 0 ? 0 : value < 9.9995 ? 3 : value < 99.995 ? 2 : 1;
  return absl::StrFormat("%.*f %s", digits, value, units[unit]);
}

std::string Aligned(std::string_view text, size_t columns, bool right) {
  const std::string blanks(columns - std::min(columns, Columns(text)), ' ');
  return right ? blanks + std::string(text) : std::string(text) + blanks;
}

}  // namespace

std::string CountText(uint64_t count) {
  std::string text = absl::StrFormat("%d", count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string WeightText(uint64_t weight, ProfileUnit unit) {
  switch (unit) {
    case ProfileUnit::kNanoseconds: return Scaled(static_cast<double>(weight), 1000, {"ns", "us", "ms", "s"});
    case ProfileUnit::kBytes: return Scaled(static_cast<double>(weight), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
    case ProfileUnit::kCount: break;
  }
  return CountText(weight);
}

std::string PercentText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.2f", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string_view FileName(std::string_view path) {
  const bool is_path = !path.starts_with("//") && !path.starts_with('[') && !path.ends_with('/');
  return is_path ? path.substr(path.rfind('/') + 1) : path;
}

std::string ThreadText(const Profile& profile, uint32_t thread) {
  if (profile.threads[thread].is_sum()) return profile.ThreadName(thread);
  return absl::StrFormat("%s-%d", profile.ThreadName(thread), profile.threads[thread].tid);
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) {
    column.title = OneLine(column.title);
    if (column.max != 0) column.title = CutMiddle(column.title, column.max);
  }
}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] = OneLine(cells[i]);
    if (columns_[i].max != 0) cells[i] = CutMiddle(cells[i], columns_[i].max);
  }
  rows_.push_back(std::move(cells));
}

// The width of each column, so that a line has at most `width` columns of text if names can be cut that far.
std::vector<size_t> TextTable::Widths(size_t width) const {
  constexpr size_t kIndent = 2, kGap = 2;
  std::vector<size_t> widths;
  size_t sum = kIndent;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(Columns(columns_[i].title));
    for (const std::vector<std::string>& row : rows_) widths[i] = std::max(widths[i], Columns(row[i]));
    sum += widths[i] + (i == 0 ? 0 : kGap);
  }
  // Which columns give way, and down to which width, in this order.
  constexpr std::pair<Shrink, size_t> kSteps[] = {{Shrink::kLong, 40}, {Shrink::kShort, 8}, {Shrink::kLong, 24}};
  for (const auto& [shrink, least] : kSteps) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].shrink != shrink || sum <= width) continue;
      const size_t gives = std::min(sum - width, widths[i] - std::min(widths[i], least));
      widths[i] -= gives;
      sum -= gives;
    }
  }
  return widths;
}

std::string TextTable::Format(size_t width, std::string_view indent) const {
  const std::vector<size_t> widths = Widths(width);
  std::string text;
  const auto add = [&](std::string_view first, const auto& cell) {
    std::string line(first);
    for (size_t i = 0; i < columns_.size(); ++i) {
      line += (i == 0 ? "" : "  ") + Aligned(CutMiddle(cell(i), widths[i]), widths[i], columns_[i].right);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  add("# ", [&](size_t i) -> std::string_view { return columns_[i].title; });
  for (const std::vector<std::string>& row : rows_) {
    add(indent, [&](size_t i) -> std::string_view { return row[i]; });
  }
  return text;
}

}  // namespace perfkit::profile
