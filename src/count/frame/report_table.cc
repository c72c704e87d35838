// The tables of the reports of zones and of tasks.
#include "src/count/frame/report_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/one_line.h"
#include "src/count/table.h"

namespace perfkit::count {
namespace {

// Appends a line for each reason, with the events that have it. A reason begins with the request and a colon ("event
// 'cycles' on this thread: …"). That part differs from event to event and is left out.
template <class ReasonOf>
void AppendReasons(const EventPlan& plan, std::string_view what, ReasonOf reason_of, std::string* out) {
  std::vector<std::pair<std::string, std::string>> names_by_reason;
  for (size_t i = 0; i < plan.size(); ++i) {
    std::string reason = reason_of(i);
    if (reason.empty()) continue;
    if (const size_t asked = reason.find(": "); asked != std::string::npos) reason.erase(0, asked + 2);
    const auto known = std::ranges::find(names_by_reason, reason, [](const auto& entry) { return entry.first; });
    if (known == names_by_reason.end()) {
      names_by_reason.emplace_back(std::move(reason), plan.name(i));
    } else {
      absl::StrAppendFormat(&known->second, ", %s", plan.name(i));
    }
  }
  for (const auto& [reason, names] : names_by_reason) {
    absl::StrAppendFormat(out, "%s: %s: %s\n", what, base::OneLine(names), reason);
  }
}

}  // namespace

std::string NumberStyle::Text(double value) const {
  constexpr double kNsPerMs = 1e6;
  if (scale != 1) return absl::StrFormat("%.3f", value * scale);
  if (!is_time) return FormatNumber(static_cast<uint64_t>(value + 0.5));
  const auto hundredths = static_cast<uint64_t>(value / kNsPerMs * 100 + 0.5);
  return absl::StrFormat("%s.%02d", FormatNumber(hundredths / 100), hundredths % 100);
}

NumberStyle StyleOf(const EventPlan& plan, size_t i) { return {plan.unit(i) == "ns", plan.scale(i)}; }

// Names may be data of the program, of any length, and each row is as wide as the longest.
void AppendTable(std::vector<TableCells> rows, std::string* out) {
  constexpr size_t kMaxLabel = 200;
  for (TableCells& row : rows) row[0] = base::CutMiddle(row[0], kMaxLabel);
  std::vector<size_t> widths(rows[0].size());
  for (const TableCells& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const TableCells& row : rows) {
    absl::StrAppendFormat(out, "%-*s", std::max<size_t>(widths[0], 24), row[0]);
    for (size_t c = 1; c < row.size(); ++c) {
      if (widths[c] > 0) absl::StrAppendFormat(out, "  %*s", std::max<size_t>(widths[c], 8), row[c]);
    }
    out->erase(out->find_last_not_of(' ') + 1);  // Padding of empty cells.
    out->append("\n");
  }
  out->append("\n");
}

void AppendQuantileCells(const Quantiles& quantiles, const NumberStyle& style, TableCells* row) {
  for (const uint64_t value : {quantiles.p50, quantiles.p95, quantiles.p99, quantiles.max}) {
    row->push_back(quantiles.count > 0 ? style.Text(static_cast<double>(value)) : "n/a");
  }
}

std::string CounterTitle(const EventPlan& plan, size_t i, double coverage) {
  std::string title(plan.name(i));
  if (plan.unit(i) == "ns") {
    title += ", ms";
  } else if (!plan.unit(i).empty()) {
    absl::StrAppendFormat(&title, ", %s", plan.unit(i));
  }
  if (const std::string restriction = plan.Restriction(i); !restriction.empty()) title += " (" + restriction + ")";
  if (coverage < 1) absl::StrAppendFormat(&title, " (%.0f %% coverage, scaled)", coverage * 100);
  return title;
}

void LowerCoverage(const Count& count, double* coverage) {
  if (count.validity.counted()) *coverage = std::min(*coverage, count.coverage());
}

std::string SumCell(std::optional<double> sum, bool at_least, const NumberStyle& style) {
  if (!sum) return "n/a";
  return (at_least ? ">=" : "") + style.Text(*sum);
}

MetricPart PartOf(const EventPlan& plan, size_t i, const Count& count) {
  return NamedCount{plan.name(i), count, plan.scale(i), plan.cause(i)};
}

MetricTable::MetricTable(const Metric& metric, std::string_view calls)
    : metric_(metric), rows_({{metric.name(), std::string(calls), "total", "self"}}) {
  if (!metric.unit().empty()) rows_[0][0] += ", " + metric.unit();
}

void MetricTable::Add(Row row, MetricValue total, MetricValue self) {
  any_ = any_ || total.has_value() || self.has_value();
  if (!weakest_) weakest_ = total;
  for (const MetricValue* const value : {&total, &self}) {
    if (value->has_value() && (!weakest_->has_value() || value->coverage < weakest_->coverage)) weakest_ = *value;
  }
  for (MetricValue* const value : {&total, &self}) {
    if (value->unit != "/s") value->unit.clear();  // The first row has it.
  }
  const auto cell = [&row](const MetricValue& value) {
    return value.has_value() ? FormatMetric(value) + (row.at_least ? " (part)" : "") : "n/a";
  };
  rows_.push_back({std::move(row.label), FormatNumber(row.calls), cell(total), cell(self)});
}

void MetricTable::AppendTo(std::string* out) {
  if (!any_) {
    const std::string_view reason = weakest_ ? std::string_view(weakest_->reason) : "";
    absl::StrAppendFormat(out, "no value: %s: %s\n", metric_.name(), reason);
    return;
  }
  const std::string worth = weakest_->has_value() ? FormatWorth(weakest_->coverage, weakest_->validity) : "";
  if (!worth.empty()) rows_[0][0] += " (" + worth + ")";
  AppendTable(rows_, out);
}

void AppendNotes(std::span<const ReportNote> notes, std::string* out) {
  for (const ReportNote& note : notes) {
    if (note.number == 0) continue;
    absl::StrAppendFormat(out, "%s %s %s\n", FormatNumber(note.number), note.number == 1 ? note.one : note.many,
                          note.what);
  }
}

void AppendNotCounted(const EventPlan& plan, std::string* out) {
  AppendReasons(
      plan, "not counted", [&](size_t i) { return std::string(plan.reason(i)); }, out);
  AppendReasons(
      plan, "not counted on some threads", [&](size_t i) { return plan.later_reason(i); }, out);
  if (plan.left_out().empty()) return;
  absl::StrAppendFormat(out, "not counted: %s: more than the %d events that are counted at a time\n",
                        base::OneLine(plan.left_out()), kMaxEvents);
}

}  // namespace perfkit::count
