// Formats counts as `perf stat` and `simpleperf stat` do, so that they can be compared side by side.
//
//        1,234,567      instructions        #  1.84 insn/cycle         (62 % coverage, scaled)
//              n/a      cycles              #  no hardware counters on this machine
#include "src/count/table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"

namespace perfkit {
namespace count {
namespace {

void AppendWorth(std::string* text, std::string_view piece) {
  if (!text->empty()) *text += "; ";
  *text += piece;
}

// Returns why a count has no number, if no reason is known.
std::string_view WhyNone(const Count& count) {
  if (count.validity.has(Validity::kOtherThread)) return "began and ended on different threads";
  if (!count.validity.counted()) return "not counted";
  return "never was on a counter";
}

bool Numbered(const Count& count) {
  return count.validity.counted() && (count.time_enabled_ns == 0 || count.time_running_ns > 0);
}

std::string Comment(std::span<const NamedCount> named, const TableRow& row, size_t i, uint64_t wall_ns) {
  if (!Numbered(row.count)) return row.reason.empty() ? std::string(WhyNone(row.count)) : row.reason;
  const std::optional<Metric> metric = MetricFor(named, i, wall_ns);
  return metric ? FormatMetric(*metric) : "";
}

// Widths of the columns: as wide as the widest cell, up to a bound.
struct Widths {
  size_t value = 12, unit = 0, name = 16, comment = 0;
};

void AppendRow(std::string* out, const Widths& widths, const TableRow& row, const std::string& comment) {
  std::string line =
      absl::StrFormat("%*s %-*s  %-*s", widths.value, FormatValue(row), widths.unit, row.unit, widths.name, row.name);
  const std::string worth = Numbered(row.count) ? FormatWorth(row.count) : "";
  if (!comment.empty() || !worth.empty()) {
    absl::StrAppendFormat(&line, "  # %-*s", worth.empty() ? 0 : widths.comment, comment);
  }
  if (!worth.empty()) absl::StrAppendFormat(&line, "%s(%s)", widths.comment == 0 ? "" : "  ", worth);
  if (!row.note.empty()) absl::StrAppendFormat(&line, "  (%s)", row.note);
  line.erase(line.find_last_not_of(' ') + 1);
  *out += line + '\n';
}

}  // namespace

std::string FormatValue(const TableRow& row) {
  if (!Numbered(row.count)) return "n/a";
  const uint64_t value = row.count.scaled().value_or(row.count.value);
  if (row.scale == 1) return FormatNumber(value);
  return absl::StrFormat("%.2f", static_cast<double>(value) * row.scale);
}

std::string FormatWorth(const Count& count) {
  std::string worth;
  const bool some_cpus = count.validity.has(Validity::kSomeCpus);
  if (count.coverage() < 1) {
    AppendWorth(&worth, absl::StrFormat("%.0f %% coverage, %sscaled", count.coverage() * 100, some_cpus ? "not " : ""));
  }
  if (some_cpus) AppendWorth(&worth, "on one kind of core only");
  if (count.validity.has(Validity::kUserOnly)) AppendWorth(&worth, "user space only");
  if (count.validity.has(Validity::kFallback)) AppendWorth(&worth, "read by a slower path");
  return worth;
}

}  // namespace count

std::string FormatRows(std::span<const TableRow> rows, uint64_t wall_ns) {
  std::vector<NamedCount> named;
  for (const TableRow& row : rows) named.push_back({row.name, row.count});
  std::vector<std::string> comments;
  count::Widths widths;
  for (size_t i = 0; i < rows.size(); ++i) {
    comments.push_back(count::Comment(named, rows[i], i, wall_ns));
    widths.value = std::max(widths.value, count::FormatValue(rows[i]).size());
    widths.unit = std::max(widths.unit, rows[i].unit.size());
    widths.name = std::max(widths.name, std::min<size_t>(rows[i].name.size(), 40));
    if (count::Numbered(rows[i].count)) widths.comment = std::max(widths.comment, comments[i].size());
  }
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) count::AppendRow(&out, widths, rows[i], comments[i]);
  return out;
}

std::string FormatNumber(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace perfkit
