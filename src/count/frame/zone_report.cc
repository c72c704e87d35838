// The report: one table for each counter, with one row for each zone, so that the numbers of a column can be compared.
//
//   wall, ms            calls      total       self        p50        p95        p99        max
//   frame                 600   9,981.20     120.10      16.61      16.90      17.20      31.00
//     physics             600   4,210.00      10.00       7.01       ...
//
// perfkit's own cost (own_cost.h) is subtracted. A zone's total is without the cost of its own readings and of all
// zones below it. Its self is without the cost of its own readings, and without what its children's readings add around
// them.
#include "src/count/frame/zone_report.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/one_line.h"
#include "src/count/frame/report_table.h"

namespace perfkit::count {
namespace {

uint64_t ToNs(const FrameCounterImpl& impl, uint64_t ticks) { return TicksToNs(ticks, impl.ns_per_tick_q32()); }

// `any_part`: any of the zone was counted on its own thread.
Count CountOf(const FrameCounterImpl& impl, const Sums& sums, size_t i, bool any_part) {
  if (((impl.plan().never() | sums.missing) >> i & 1) != 0) return {};
  if (!any_part) return {.validity = {Validity::kOtherThread}};
  return MakeCount(sums.values[i], sums.times[i], impl.plan().fixed_flags(i));
}

// Return false if nothing in the total, or in the self, was counted: all calls ended on another thread (WallNs).
bool HasTotal(const ZoneStats& zone) { return !zone.at_least || zone.calls > 0 || zone.wall_ns > 0; }
bool HasSelf(const ZoneStats& zone) { return !zone.at_least || zone.calls > 0 || zone.self_wall_ns > 0; }

uint64_t ChildrenWallNs(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, size_t node);

// Returns a zone's elapsed time: its ticks, rounded down. If no self of it was counted, returns the children's sum, so
// that its self is 0, and not what the rounding of several children leaves.
uint64_t WallNs(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, size_t node) {
  const Sums& total = group.zones.nodes()[node].total;
  const bool has_self = !total.at_least || total.calls > 0 || group.zones.Self(node).ticks != 0;
  return has_self ? ToNs(impl, total.ticks) : ChildrenWallNs(impl, group, node);
}

// Adds nanoseconds, not ticks: self + children must be exactly the total.
uint64_t ChildrenWallNs(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, size_t node) {
  uint64_t sum = 0;
  for (size_t child = 1; child < group.zones.nodes().size(); ++child) {
    if (group.zones.nodes()[child].parent == node) sum += WallNs(impl, group, child);
  }
  return sum;
}

ZoneStats StatsOf(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, size_t node) {
  const ZoneMerge::Node& zone = group.zones.nodes()[node];
  const Sums self = group.zones.Self(node);
  ZoneStats stats;
  stats.name = zone.name;
  stats.thread = group.name;
  stats.threads = zone.threads;
  stats.calls = zone.total.calls;
  stats.frames = zone.frames;
  stats.at_least = zone.total.at_least;
  stats.wall_ns = WallNs(impl, group, node);
  stats.self_wall_ns = stats.wall_ns - ChildrenWallNs(impl, group, node);
  stats.wall_quantiles = zone.histograms[0].Summary(group.zones.pool());
  stats.last = zone.last;
  for (size_t i = 0; i < impl.plan().size(); ++i) {
    stats.total[i] = CountOf(impl, zone.total, i, HasTotal(stats));
    stats.self[i] = CountOf(impl, self, i, HasSelf(stats));
    stats.quantiles[i] = zone.histograms[1 + i].Summary(group.zones.pool());
  }
  return stats;
}

// Appends `node` and what is below it. The depth of a tree is bounded by FrameOptions::max_depth.
void AppendBelow(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, size_t node, size_t parent,
                 uint32_t depth, std::vector<ZoneStats>* out) {
  const size_t index = out->size();
  ZoneStats& stats = out->emplace_back(StatsOf(impl, group, node));
  stats.depth = depth;
  stats.parent = depth == 0 ? index : parent;
  for (size_t child = 1; child < group.zones.nodes().size(); ++child) {
    if (group.zones.nodes()[child].parent == node) AppendBelow(impl, group, child, index, depth + 1, out);
  }
}

// The total and the self of one zone, without perfkit's own cost.
struct Adjusted {
  double total = 0, self = 0;
};

// Subtracts perfkit's own cost from the numbers of the zones. `which` is 0 for the elapsed time, 1 + i for event i.
class Adjuster {
 public:
  Adjuster(const std::vector<ZoneStats>& zones, const OwnCost& cost) : zones_(zones), cost_(cost) {
    below_.resize(zones.size());
    children_.resize(zones.size());
    for (size_t z = zones.size(); z-- > 0;) {  // children come after their parents
      if (zones[z].parent == z) continue;
      below_[zones[z].parent] += below_[z] + zones[z].calls;
      children_[zones[z].parent] += zones[z].calls;
    }
  }

  Adjusted For(size_t z, size_t which, double total, double self) const {
    const double within = cost_.within[which], around = cost_.around[which];
    // The root is a frame, not a zone: no reading lies within it.
    const double own = zones_[z].parent == z ? 0 : within * static_cast<double>(zones_[z].calls);
    const double below = (within + around) * static_cast<double>(below_[z]);
    return {std::max(0.0, total - own - below), std::max(0.0, self - own - around * static_cast<double>(children_[z]))};
  }

 private:
  const std::vector<ZoneStats>& zones_;
  const OwnCost& cost_;
  std::vector<uint64_t> below_, children_;  // calls of all zones below, and of those right below
};

TableCells Head() { return {"", "calls", "total", "self", "p50", "p95", "p99", "max"}; }

std::string Label(const ZoneStats& zone) {
  if (zone.depth > 0) return std::string(2 * zone.depth, ' ') + base::OneLine(zone.name);
  if (zone.thread.empty()) return "frame";
  return absl::StrFormat("%s (%d thread%s)", base::OneLine(zone.thread), zone.threads, zone.threads == 1 ? "" : "s");
}

// The numbers of a zone in one table. A sum is nullopt if it was not counted.
struct RowNumbers {
  std::optional<double> total, self;
  Quantiles quantiles;
};

TableCells RowOf(const ZoneStats& zone, const RowNumbers& numbers, const NumberStyle& style) {
  TableCells row = {Label(zone), FormatNumber(zone.calls), SumCell(numbers.total, zone.at_least, style),
                    SumCell(numbers.self, zone.at_least, style)};
  AppendQuantileCells(numbers.quantiles, style, &row);
  return row;
}

void AppendWall(const std::vector<ZoneStats>& zones, const Adjuster& adjuster, std::string* out) {
  std::vector<TableCells> rows = {Head()};
  rows[0][0] = "wall, ms";
  for (size_t z = 0; z < zones.size(); ++z) {
    const Adjusted sums =
        adjuster.For(z, 0, static_cast<double>(zones[z].wall_ns), static_cast<double>(zones[z].self_wall_ns));
    RowNumbers numbers{.quantiles = zones[z].wall_quantiles};
    if (HasTotal(zones[z])) numbers.total = sums.total;
    if (HasSelf(zones[z])) numbers.self = sums.self;
    rows.push_back(RowOf(zones[z], numbers, {true}));
  }
  AppendTable(rows, out);
}

// Returns the lowest coverage of all rows.
double CoverageOf(const std::vector<ZoneStats>& zones, size_t i) {
  double coverage = 1;
  for (const ZoneStats& zone : zones) {
    LowerCoverage(zone.total[i], &coverage);
    LowerCoverage(zone.self[i], &coverage);
  }
  return coverage;
}

void AppendCounter(const FrameCounterImpl& impl, const std::vector<ZoneStats>& zones, const Adjuster& adjuster,
                   size_t i, std::string* out) {
  const NumberStyle style = StyleOf(impl.plan(), i);
  std::vector<TableCells> rows = {Head()};
  rows[0][0] = CounterTitle(impl.plan(), i, CoverageOf(zones, i));
  for (size_t z = 0; z < zones.size(); ++z) {
    const std::optional<uint64_t> total = zones[z].total[i].scaled(), self = zones[z].self[i].scaled();
    const Adjusted sums =
        adjuster.For(z, 1 + i, static_cast<double>(total.value_or(0)), static_cast<double>(self.value_or(0)));
    RowNumbers numbers;
    if (total) numbers = {.total = sums.total, .quantiles = zones[z].quantiles[i]};
    if (self) numbers.self = sums.self;
    rows.push_back(RowOf(zones[z], numbers, style));
  }
  AppendTable(rows, out);
}

// The parts of a zone's metrics: its totals and its selfs, as the tables above show them.
struct ZoneParts {
  std::vector<MetricPart> total, self;
};

ZoneParts PartsOf(const EventPlan& plan, const std::vector<ZoneStats>& zones, const Adjuster& adjuster, size_t z) {
  ZoneParts parts;
  for (size_t i = 0; i < plan.size(); ++i) {
    MetricPart total = PartOf(plan, i, zones[z].total[i]), self = PartOf(plan, i, zones[z].self[i]);
    const double scale = plan.scale(i);
    const Adjusted sums = adjuster.For(z, 1 + i, total.value / scale, self.value / scale);
    total.value = sums.total * scale;
    self.value = sums.self * scale;
    parts.total.push_back(total);
    parts.self.push_back(self);
  }
  return parts;
}

void AppendMetric(const FrameCounterImpl& impl, const std::vector<ZoneStats>& zones, const Adjuster& adjuster,
                  const Metric& metric, std::string* out) {
  MetricTable table(metric, "calls");
  for (size_t z = 0; z < zones.size(); ++z) {
    const ZoneParts parts = PartsOf(impl.plan(), zones, adjuster, z);
    const Adjusted wall =
        adjuster.For(z, 0, static_cast<double>(zones[z].wall_ns), static_cast<double>(zones[z].self_wall_ns));
    const MetricValue total = metric.Evaluate(parts.total, static_cast<uint64_t>(wall.total));
    const MetricValue self = metric.Evaluate(parts.self, static_cast<uint64_t>(wall.self));
    table.Add({Label(zones[z]), zones[z].calls, zones[z].at_least}, total, self);
  }
  table.AppendTo(out);
}

void AppendHitches(const FrameCounterImpl& impl, std::string* out) {
  const HitchWatch& watch = impl.watch();
  if (watch.count() == 0) return;
  absl::StrAppendFormat(out, "%s hitch%s over the budget of %s ms", FormatNumber(watch.count()),
                        watch.count() == 1 ? "" : "es", NumberStyle{true}.Text(static_cast<double>(impl.budget_ns())));
  if (watch.count() > watch.kept()) absl::StrAppendFormat(out, ", the last %d", watch.kept());
  *out += ":\n";
  for (size_t h = 0; h < watch.kept(); ++h) {
    const Hitch& hitch = watch[h];
    absl::StrAppendFormat(out, "  frame %d: %s ms: %s", hitch.frame,
                          NumberStyle{true}.Text(static_cast<double>(hitch.wall_ns)), base::OneLine(hitch.cause));
    if (*hitch.worst_zone != '\0') {
      absl::StrAppendFormat(out, "; worst zone '%s', %s ms over its median", base::OneLine(hitch.worst_zone),
                            NumberStyle{true}.Text(static_cast<double>(hitch.worst_excess_ns)));
    }
    *out += '\n';
  }
  *out += '\n';
}

void AppendOwnCost(const FrameCounterImpl& impl, const FrameStats& stats, std::string* out) {
  const OwnCost& cost = impl.own_cost();
  absl::StrAppendFormat(out,
                        "own cost: %.0f ns a zone (%.0f within, %.0f around), %.0f ns a mark: %.3f %% of the time; "
                        "subtracted above from totals and selfs, and the remaining error is %.1f ns a zone\n",
                        cost.zone_ns(), cost.within[0], cost.around[0], cost.mark_ns, stats.overhead_fraction * 100,
                        cost.residue[0]);
  if (impl.plan().has_other_paths()) {
    *out +=
        "WARNING: some threads read events by other paths than the marking thread: their own cost is not the one "
        "subtracted, and may be much higher\n";
  }
  constexpr double kTooMuch = 0.10;
  if (stats.overhead_fraction > kTooMuch) {
    absl::StrAppendFormat(out, "WARNING: counting takes %.0f %% of the time; use fewer zones, or coarser ones\n",
                          stats.overhead_fraction * 100);
  }
}

void AppendSelfAccounting(const FrameStats& stats, std::string* out) {
  const std::array notes = {
      ReportNote{stats.dropped, "zone", "zones", "dropped (too deep or too many: the time is in the parent)"},
      ReportNote{stats.mismatched, "zone", "zones", "left without having been entered, or never left"},
      ReportNote{stats.cross_thread, "zone", "zones",
                 "ended on another thread: not counted (n/a, >= or (part) above), the time is in the parent. "
                 "Remedy: TaskCounter::Zone for code that changes threads"},
      ReportNote{stats.foreign_marks, "mark", "marks", "by a thread that the frame does not belong to (ignored)"},
      ReportNote{stats.refused_threads, "thread", "threads", "not counted (more than max_threads)"},
      ReportNote{stats.unplaced, "value", "values", "in no percentile (histograms full)"},
  };
  AppendNotes(notes, out);
}

}  // namespace

void AppendStats(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, std::vector<ZoneStats>* out) {
  if (!group.zones.nodes().empty()) AppendBelow(impl, group, 0, 0, 0, out);
}

std::string FormatReport(FrameCounterImpl& impl, std::span<const Metric> metrics) {
  if (!impl.MayCount()) return "# the frames belong to the parent process: this one has counted nothing\n";
  std::vector<ZoneStats> zones;
  for (const FrameCounterImpl::Group& group : impl.Groups()) AppendStats(impl, group, &zones);
  std::string out;
  if (!zones.empty()) {
    const Adjuster adjuster(zones, impl.own_cost());
    AppendWall(zones, adjuster, &out);
    for (size_t i = 0; i < impl.plan().size(); ++i) {
      if (impl.plan().reason(i).empty()) AppendCounter(impl, zones, adjuster, i, &out);
    }
    for (const Metric& metric : metrics) AppendMetric(impl, zones, adjuster, metric, &out);
  }
  AppendNotCounted(impl.plan(), &out);
  AppendHitches(impl, &out);
  const FrameStats stats = impl.Stats();
  AppendSelfAccounting(stats, &out);
  AppendOwnCost(impl, stats, &out);
  return out;
}

}  // namespace perfkit::count
