// Formats counts as `perf stat` and `simpleperf stat` do, so that they can be compared side by side.
//
//      1,234,567   instructions      # 1.84 insn/cycle  (62 % coverage, scaled)
//            n/a   cycles            # no hardware counters on this machine
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

// A line of the table, as text.
struct Cells {
  std::string value{}, unit{}, name{}, comment{}, worth{}, note{};
  bool is_reason = false;  // The comment says why there is no number: it may be long.
};

Cells CellsOf(std::span<const NamedCount> counts, const TableRow& row, size_t i, uint64_t wall_ns) {
  Cells cells{.value = FormatValue(row), .unit = row.unit, .name = row.name, .note = row.note};
  if (!HasNumber(row.count)) {
    cells.comment = row.reason.empty() ? std::string(WhyNone(row.count)) : row.reason;
    cells.is_reason = true;
    return cells;
  }
  if (const std::optional<MetricValue> metric = MetricFor(counts, i, wall_ns)) cells.comment = FormatMetric(*metric);
  cells.worth = FormatWorth(row.count.coverage(), row.count.validity);
  return cells;
}

Cells CellsOf(const Metric& metric, std::span<const NamedCount> counts, uint64_t wall_ns) {
  MetricValue value = metric.Evaluate(counts, wall_ns);
  Cells cells{.value = "n/a", .unit = metric.unit(), .name = metric.name()};
  if (!value.has_value()) {
    cells.comment = value.reason;
    cells.is_reason = true;
    return cells;
  }
  if (value.unit != "/s") value.unit.clear();  // It has a column of its own, unless it is shown as K/s.
  cells.value = FormatMetric(value);
  if (!value.unit.empty()) cells.unit.clear();
  cells.worth = FormatWorth(value.coverage, value.validity);
  return cells;
}

// Widths of the columns: that of the widest cell; of names, 40 at most. Reasons may be sentences, and do not count.
struct Widths {
  explicit Widths(std::span<const Cells> lines) {
    for (const Cells& cells : lines) {
      value = std::max(value, cells.value.size());
      unit = std::max(unit, cells.unit.size());
      name = std::max(name, std::min<size_t>(cells.name.size(), 40));
      if (!cells.is_reason) comment = std::max(comment, cells.comment.size());
    }
  }
  size_t value = 12, unit = 0, name = 16, comment = 0;
};

void AppendLine(std::string* out, const Widths& widths, const Cells& cells) {
  std::string line =
      absl::StrFormat("%*s %-*s  %-*s", widths.value, cells.value, widths.unit, cells.unit, widths.name, cells.name);
  if (!cells.comment.empty() || !cells.worth.empty()) {
    absl::StrAppendFormat(&line, "  # %-*s", cells.worth.empty() ? 0 : widths.comment, cells.comment);
  }
  if (!cells.worth.empty()) absl::StrAppendFormat(&line, "%s(%s)", widths.comment == 0 ? "" : "  ", cells.worth);
  if (!cells.note.empty()) absl::StrAppendFormat(&line, "  (%s)", cells.note);
  line.erase(line.find_last_not_of(' ') + 1);
  *out += line + '\n';
}

}  // namespace

std::string_view WhyNone(const Count& count) {
  if (count.validity.has(Validity::kOtherThread)) {
    return "was read on another thread than it counts (ThreadSlots counts each)";
  }
  if (!count.validity.counted()) return "not counted";
  return "never was on a counter";
}

bool HasNumber(const Count& count) {
  return count.validity.counted() && (count.time_enabled_ns == 0 || count.time_running_ns > 0);
}

std::string FormatValue(const TableRow& row) {
  if (!HasNumber(row.count)) return "n/a";
  const uint64_t value = row.count.scaled().value_or(row.count.value);
  if (row.scale == 1) return FormatNumber(value);
  return absl::StrFormat("%.2f", static_cast<double>(value) * row.scale);
}

std::string FormatWorth(double coverage, Validity validity) {
  std::string worth;
  const bool some_cpus = validity.has(Validity::kSomeCpus);
  if (coverage < 1) {
    AppendWorth(&worth, absl::StrFormat("%.0f %% coverage, %sscaled", coverage * 100, some_cpus ? "not " : ""));
  }
  if (some_cpus) AppendWorth(&worth, "on one kind of core only");
  if (validity.has(Validity::kUserOnly)) AppendWorth(&worth, "user space only");
  if (validity.has(Validity::kFallback)) AppendWorth(&worth, "read by a slower path");
  return worth;
}

}  // namespace count

std::vector<NamedCount> NamedCounts(std::span<const TableRow> rows) {
  std::vector<NamedCount> counts;
  for (const TableRow& row : rows) counts.push_back({row.name, row.count, row.scale, row.reason});
  return counts;
}

std::string FormatRows(std::span<const TableRow> rows, uint64_t wall_ns, std::span<const Metric> metrics) {
  const std::vector<NamedCount> counts = NamedCounts(rows);
  std::vector<count::Cells> lines;
  for (size_t i = 0; i < rows.size(); ++i) lines.push_back(count::CellsOf(counts, rows[i], i, wall_ns));
  for (const Metric& metric : metrics) lines.push_back(count::CellsOf(metric, counts, wall_ns));
  const count::Widths widths(lines);
  std::string out;
  for (const count::Cells& cells : lines) count::AppendLine(&out, widths, cells);
  return out;
}

std::string FormatNumber(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace perfkit
