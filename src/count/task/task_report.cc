// The report of tasks: one table for each counter, with a row for each name and zone, so that all numbers in a column
// are comparable.
//
//   run, ms             created     ended      runs     moved     total      self       p50 …
//   texture                   4         4        16        12     31.40      0.20      7.70 …
//     decompress                                  4               31.20     31.20
//   outside of tasks                                              12.60
//
// The totals of the names and the row below them add up to what the threads have counted. Percentiles are over tasks
// that have ended, so zones have none. ">=" marks sums of tasks that were not counted for a time (at_least).
#include "src/count/task/task_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/one_line.h"
#include "src/count/frame/report_table.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {
namespace {

constexpr NumberStyle kTime{true};

// The numbers of a report: copies of the same moment, if no task is switched meanwhile.
struct Report {
  const EventPlan& plan;
  std::vector<TaskZoneStats> zones;
  TaskTotals outside;
};

bool IsName(const TaskZoneStats& zone) { return zone.depth == 0; }
std::string Label(const TaskZoneStats& zone) { return std::string(2 * zone.depth, ' ') + base::OneLine(zone.name); }
std::string CountText(const Count& count, bool at_least, const NumberStyle& style) {
  const std::optional<uint64_t> value = count.scaled();
  return SumCell(value ? std::optional<double>(*value) : std::nullopt, at_least, style);
}
// Returns a time. If parts of it were not counted, a time of 0 is n/a.
std::string TimeText(uint64_t ns, bool at_least) {
  return SumCell(at_least && ns == 0 ? std::nullopt : std::optional<double>(ns), at_least, kTime);
}

// Appends the quantiles of a name; no text for a zone, which has none.
void AppendQuantilesOf(const TaskZoneStats& zone, const Quantiles& quantiles, const NumberStyle& style,
                       TableCells* row) {
  if (IsName(zone)) return AppendQuantileCells(quantiles, style, row);
  row->resize(row->size() + 4);
}

// Appends the row of what was counted outside of tasks, as wide as the others.
void AppendOutside(std::string value, size_t column, std::vector<TableCells>* rows) {
  TableCells row((*rows)[0].size());
  row[0] = "outside of tasks";
  row[column] = std::move(value);
  rows->push_back(std::move(row));
}

void AppendRuns(const Report& report, std::string* out) {
  constexpr size_t kTotal = 5;
  std::vector<TableCells> rows = {
      {"run, ms", "created", "ended", "runs", "moved", "total", "self", "p50", "p95", "p99", "max"}};
  for (const TaskZoneStats& zone : report.zones) {
    const auto of_name = [&zone](uint64_t number) { return IsName(zone) ? FormatNumber(number) : ""; };
    TableCells row = {Label(zone),
                      of_name(zone.created),
                      of_name(zone.ended),
                      FormatNumber(zone.calls),
                      of_name(zone.migrations),
                      TimeText(zone.run_ns, zone.at_least),
                      TimeText(zone.self_run_ns, zone.at_least)};
    AppendQuantilesOf(zone, zone.run_quantiles, kTime, &row);
    rows.push_back(std::move(row));
  }
  AppendOutside(TimeText(report.outside.run_ns, false), kTotal, &rows);
  AppendTable(rows, out);
}

// Returns the time for which threads were off the CPU while they ran these tasks. Returns "n/a" without a task-clock
// that has no modifiers and was never off its counter.
std::string OffCpuText(const Report& report, const TaskZoneStats& zone) {
  const std::optional<size_t> clock = report.plan.IndexOf(sys::kSwTaskClock);
  if (!clock || !zone.total[*clock].validity.counted() || zone.total[*clock].coverage() < 1) return "n/a";
  const uint64_t on_cpu_ns = zone.total[*clock].value;
  // The two clocks differ in their last digits.
  return TimeText(zone.run_ns - std::min(zone.run_ns, on_cpu_ns), zone.at_least);
}

// Appends the table of waits. "between": from a suspension to the next resumption. "off CPU": while the task ran, its
// thread waited for a CPU or in the kernel.
void AppendWaits(const Report& report, std::string* out) {
  std::vector<TableCells> rows = {{"waits, ms", "ended", "off CPU", "between", "p50", "p95", "p99", "max"}};
  for (const TaskZoneStats& zone : report.zones) {
    if (!IsName(zone)) continue;
    TableCells row = {Label(zone), FormatNumber(zone.ended), OffCpuText(report, zone),
                      TimeText(zone.wait_ns, zone.at_least)};
    AppendQuantileCells(zone.wait_quantiles, kTime, &row);
    rows.push_back(std::move(row));
  }
  AppendTable(rows, out);
}

// Returns the lowest coverage of all rows.
double CoverageOf(const Report& report, size_t i) {
  double coverage = 1;
  LowerCoverage(report.outside.counts[i], &coverage);
  for (const TaskZoneStats& zone : report.zones) {
    LowerCoverage(zone.total[i], &coverage);
    LowerCoverage(zone.self[i], &coverage);
  }
  return coverage;
}

void AppendCounter(const Report& report, size_t i, std::string* out) {
  constexpr size_t kTotal = 2;
  const NumberStyle style = StyleOf(report.plan, i);
  std::vector<TableCells> rows = {
      {CounterTitle(report.plan, i, CoverageOf(report, i)), "runs", "total", "self", "p50", "p95", "p99", "max"}};
  for (const TaskZoneStats& zone : report.zones) {
    TableCells row = {Label(zone), FormatNumber(zone.calls), CountText(zone.total[i], zone.at_least, style),
                      CountText(zone.self[i], zone.at_least, style)};
    AppendQuantilesOf(zone, zone.quantiles[i], style, &row);
    rows.push_back(std::move(row));
  }
  AppendOutside(CountText(report.outside.counts[i], false, style), kTotal, &rows);
  AppendTable(rows, out);
}

std::vector<MetricPart> PartsOf(const EventPlan& plan, const std::array<Count, kMaxEvents>& counts) {
  std::vector<MetricPart> parts;
  for (size_t i = 0; i < plan.size(); ++i) parts.push_back(PartOf(plan, i, counts[i]));
  return parts;
}

void AppendMetric(const Report& report, const Metric& metric, std::string* out) {
  MetricTable table(metric, "runs");
  for (const TaskZoneStats& zone : report.zones) {
    const MetricValue total = metric.Evaluate(PartsOf(report.plan, zone.total), zone.run_ns);
    const MetricValue self = metric.Evaluate(PartsOf(report.plan, zone.self), zone.self_run_ns);
    table.Add({Label(zone), zone.calls, zone.at_least}, total, self);
  }
  table.AppendTo(out);
}

void AppendStats(const TaskStats& stats, std::string* out) {
  const std::array notes = {
      ReportNote{stats.cross_thread, "task", "tasks",
                 "that another thread suspended, ended, or left a zone of: not counted after the last switch (n/a, >= "
                 "or (part) above), the time is in \"outside of tasks\""},
      ReportNote{stats.mismatched, "call", "calls",
                 "ignored: Resume of a task that runs, Suspend of one that is not its thread's innermost"},
      ReportNote{stats.dropped, "name or zone", "names or zones",
                 "beyond max_zones (in \"(more names)\", or in the parent)"},
      ReportNote{stats.refused_threads, "thread", "threads",
                 "not counted (more than max_threads; tasks that ran there are n/a, >= or (part) above)"},
      ReportNote{stats.unplaced, "value", "values", "in no percentile (histograms full)"},
  };
  AppendNotes(notes, out);
}

}  // namespace

std::string FormatTasks(const TaskCounterImpl& impl, std::span<const Metric> metrics) {
  const Report report{impl.plan(), impl.Zones(), impl.Outside()};
  std::string out;
  if (!report.zones.empty()) {
    AppendRuns(report, &out);
    AppendWaits(report, &out);
    for (size_t i = 0; i < report.plan.size(); ++i) {
      if (report.plan.reason(i).empty()) AppendCounter(report, i, &out);
    }
    for (const Metric& metric : metrics) AppendMetric(report, metric, &out);
  }
  AppendNotCounted(report.plan, &out);
  AppendStats(impl.Stats(), &out);
  return out;
}

}  // namespace perfkit::count
