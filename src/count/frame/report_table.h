// The common parts of the reports of zones and of tasks: tables, numbers as text, and what was not counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/frame.h"
#include "perfkit/metric.h"
#include "src/count/frame/event_plan.h"

namespace perfkit::count {

// How the numbers of a table are written.
struct NumberStyle {
  bool is_time;                          // Nanoseconds, shown as milliseconds.
  double scale = 1;                      // Value of one count.
  std::string Text(double value) const;  // "1,234", "1,234.50" or, with a scale, "0.125".
};

// Returns the style of event i's table.
NumberStyle StyleOf(const EventPlan& plan, size_t i);

using TableCells = std::vector<std::string>;

// Appends the rows, in aligned columns, and an empty line. Columns without any text are left out. Requires at least one
// row, and rows of equal length, the first cell a label, which is cut if it is very long.
void AppendTable(std::vector<TableCells> rows, std::string* out);

// Appends the cells p50, p95, p99 and max; "n/a" each if there are no values.
void AppendQuantileCells(const Quantiles& quantiles, const NumberStyle& style, TableCells* row);

// Returns the head of event i's table: "task-clock, ms (user space only) (62 % coverage, scaled)".
std::string CounterTitle(const EventPlan& plan, size_t i, double coverage);

// Lowers `*coverage` to that of `count`, if that is a number: a column's coverage is the lowest of its rows.
void LowerCoverage(const Count& count, double* coverage);

// Returns the cell of a sum: "n/a" for nullopt; ">=1.50" if `at_least`, i.e. parts of it were not counted.
std::string SumCell(std::optional<double> sum, bool at_least, const NumberStyle& style);

// Returns event i as a part of a metric. Valid as long as `plan`: it has views of its names.
MetricPart PartOf(const EventPlan& plan, size_t i, const Count& count);

// The table of one metric. It has no percentiles: the percentiles of a quotient's two parts are those of different
// frames or tasks.
class MetricTable {
 public:
  // `metric` must outlive it. `calls`: the head of the column beside the labels.
  MetricTable(const Metric& metric, std::string_view calls);

  struct Row {
    std::string label;
    uint64_t calls;
    bool at_least;  // Its sums lack a part. So its values are marked: a quotient of such sums is no lower bound.
  };
  void Add(Row row, MetricValue total, MetricValue self);
  // Appends the table, or why no row has a value. The head has what limits the weakest value. Call it once.
  void AppendTo(std::string* out);

 private:
  const Metric& metric_;
  std::vector<TableCells> rows_;
  bool any_ = false;
  std::optional<MetricValue> weakest_;  // Of all totals and selfs: the one with the lowest coverage.
};

// A line of a report about what was not counted: "1 zone dropped", "2 zones dropped".
struct ReportNote {
  uint64_t number;
  std::string_view one, many;  // The noun: "zone", "zones".
  std::string_view what;
};

// Appends the notes whose number is not 0.
void AppendNotes(std::span<const ReportNote> notes, std::string* out);

// Lists the events without a count, grouped by reason.
void AppendNotCounted(const EventPlan& plan, std::string* out);

}  // namespace perfkit::count
