// One table for each counter, with a row for each zone below the name of its threads, so that all numbers in a column
// are comparable:
//
//   wall, ms                        calls     total      self      each
//   main (1 thread)
//     tbb.flow: body                1,200     31.40      0.20      0.03
//
// Nothing is subtracted, and no number is estimated: children + self = total.
#include "src/itt/library/report.h"

#include <errno.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/one_line.h"
#include "src/count/frame/report_table.h"
#include "src/itt/collector.h"
#include "src/sys/kernel.h"

namespace perfkit::itt {
namespace {

using count::NumberStyle;
using count::TableCells;

constexpr NumberStyle kTime{true};

bool IsOfProgram(const ZoneStats& zone) { return !zone.thread.empty(); }  // The marking thread has no zones here.
bool IsThreads(const ZoneStats& zone) { return zone.depth == 0; }

std::string Label(const ZoneStats& zone) {
  if (!IsThreads(zone)) return std::string(2 * zone.depth, ' ') + base::OneLine(zone.name);
  return absl::StrFormat("%s (%d thread%s)", base::OneLine(zone.thread), zone.threads, zone.threads == 1 ? "" : "s");
}

std::string Each(double total, uint64_t calls, const NumberStyle& style) {
  if (calls == 0) return "n/a";  // No call of it has ended.
  const double each = total / static_cast<double>(calls);
  if (style.scale != 1) return style.Text(each);
  return style.is_time ? absl::StrFormat("%.3f us", each / 1000) : absl::StrFormat("%.2f", each);
}

TableCells RowOf(const ZoneStats& zone, std::optional<uint64_t> total, std::optional<uint64_t> self,
                 const NumberStyle& style) {
  TableCells row = {Label(zone), "", "", "", ""};
  if (IsThreads(zone)) return row;
  row[1] = FormatNumber(zone.calls);
  row[2] = total ? style.Text(static_cast<double>(*total)) : "n/a";
  row[3] = self ? style.Text(static_cast<double>(*self)) : "n/a";
  row[4] = total ? Each(static_cast<double>(*total), zone.calls, style) : "n/a";
  return row;
}

void AppendWall(const std::vector<ZoneStats>& zones, std::string* out) {
  std::vector<TableCells> rows = {{"wall, ms", "calls", "total", "self", "each"}};
  for (const ZoneStats& zone : zones) {
    if (!IsOfProgram(zone)) continue;
    const bool is_counted = zone.calls != 0 || !zone.at_least;  // Not if each call ended on another thread.
    rows.push_back(RowOf(zone, is_counted ? std::optional(zone.wall_ns) : std::nullopt,
                         is_counted ? std::optional(zone.self_wall_ns) : std::nullopt, kTime));
  }
  count::AppendTable(rows, out);
}

void AppendEvent(const std::vector<ZoneStats>& zones, const count::EventPlan& plan, size_t i, std::string* out) {
  const NumberStyle style = count::StyleOf(plan, i);
  double coverage = 1;
  std::vector<TableCells> rows = {{"", "calls", "total", "self", "each"}};
  for (const ZoneStats& zone : zones) {
    if (!IsOfProgram(zone)) continue;
    count::LowerCoverage(zone.total[i], &coverage);
    count::LowerCoverage(zone.self[i], &coverage);
    rows.push_back(RowOf(zone, zone.total[i].scaled(), zone.self[i].scaled(), style));
  }
  rows[0][0] = count::CounterTitle(plan, i, coverage);
  count::AppendTable(rows, out);
}

void AppendTimed(const TimedTasks::Totals& timed, std::string* out) {
  if (timed.by_name.empty()) return;
  std::vector<TableCells> rows = {{"times alone, ms", "calls", "total", "max"}};
  for (const auto& [name, sum] : timed.by_name) {
    rows.push_back({"  " + base::OneLine(name), FormatNumber(sum.calls), kTime.Text(static_cast<double>(sum.total_ns)),
                    kTime.Text(static_cast<double>(sum.max_ns))});
  }
  count::AppendTable(rows, out);
  *out += "overlapped tasks, regions and submitted frames belong to no thread: they have no counts\n";
}

struct Statement {
  uint64_t number;
  std::string_view what;
};

void Append(std::span<const Statement> statements, std::string* out) {
  for (const Statement& one : statements) {
    if (one.number > 0) absl::StrAppendFormat(out, "%s %s\n", FormatNumber(one.number), one.what);
  }
}

void AppendUncounted(const FrameStats& stats, const TimedTasks::Totals& timed, const Uncounted& uncounted,
                     uint32_t inside, std::string* out) {
  const std::array statements = {
      Statement{inside,
                "threads inside of a task at the exit: what they counted since they were last outside of all tasks is "
                "missing"},
      Statement{uncounted.unended,
                "tasks open at the end of their threads: in the totals up to then, but not in calls"},
      Statement{uncounted.cut, "tasks ended by the end of a task or frame around them"},
      Statement{uncounted.stray_ends, "ends without a begin on the same thread: ignored"},
      Statement{uncounted.paused, "tasks begun while collection was paused: not counted"},
      Statement{uncounted.late, "tasks begun after the table was taken: not counted"},
      Statement{uncounted.refused, "tasks on threads that were ending, or beyond 1,024 threads: not counted"},
      Statement{uncounted.in_handler, "tasks of signal handlers that interrupted the collector: not counted"},
      Statement{uncounted.jumped,
                "begins and ends left by siglongjmp in a handler, and tasks open around: not counted"},
      Statement{uncounted.too_deep, "tasks inside of 64 others: in the totals of those"},
      Statement{stats.dropped, "tasks beyond 512 paths of one thread: in the totals around them"},
      Statement{timed.open, "overlapped tasks and regions without an end"},
      Statement{timed.mismatched, "ends of overlapped tasks and regions without a begin"},
      Statement{timed.dropped, "overlapped tasks, regions and submitted frames beyond the memory for them"},
      Statement{timed.untimed, "submitted frames without valid times"},
  };
  Append(statements, out);
}

}  // namespace

std::string FormatTable(const FrameCounter& frames, const count::EventPlan& plan, const TimedTasks::Totals& timed,
                        const Uncounted& uncounted, uint32_t inside) {
  const std::vector<ZoneStats> zones = frames.zones();
  std::string out = absl::StrFormat("perfkit: ITT tasks of %s (process %d)\n\n",
                                    base::OneLine(program_invocation_short_name), sys::kernel().getpid());
  AppendWall(zones, &out);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan.reason(i).empty()) AppendEvent(zones, plan, i, &out);
  }
  AppendTimed(timed, &out);
  count::AppendNotCounted(plan, &out);
  AppendUncounted(frames.Stats(), timed, uncounted, inside, &out);
  return out;
}

}  // namespace perfkit::itt
