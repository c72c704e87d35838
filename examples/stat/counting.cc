// One CounterSet a target. All have the same events, and the targets do not overlap: so their counts add up.
#include "counting.h"

#include <cmath>
#include <cstdio>

namespace stat_tool {
namespace {

bool CountsAnything(const perfkit::CounterSet& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    if (set.reason(i).ok()) return true;
  }
  return false;
}

// Why no event of the set is counted. Prefers a reason that concerns the target: the kernel refuses an event that this
// machine does not have before it checks this user's rights (Linux 6.1, kernel/events/core.c, perf_event_open).
absl::Status WhyNothing(const perfkit::CounterSet& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    const absl::Status reason = set.reason(i);
    if (absl::IsPermissionDenied(reason) || absl::IsNotFound(reason)) return reason;
  }
  return set.reason(0);
}

// As perf names an event that it had to restrict: "cycles:u".
std::string NameOf(const perfkit::CounterSet& set, size_t i, const perfkit::Count& count) {
  std::string name(set.name(i));
  if (!count.validity.has(perfkit::Validity::kUserOnly) || set.event(i).privilege_given) return name;
  return name + (name.find_first_of(":/") == name.npos ? ":u" : "u");
}

// The mean, and its standard error as a fraction of it.
struct Spread {
  double mean = 0;
  std::optional<double> relative;
};

Spread SpreadOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / n;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.relative = spread.mean == 0 ? 0 : std::sqrt(squares / (n - 1) / n) / spread.mean;
  return spread;
}

std::string Percent(double fraction) {
  char text[32];
  snprintf(text, sizeof(text), "+- %.2f %%", 100 * fraction);
  return text;
}

// Event `i` of several runs.
Row MeanRow(const std::vector<Measurement>& runs, size_t i) {
  Row mean = runs.front().rows[i];
  std::vector<double> values;
  uint64_t enabled_ns = 0, running_ns = 0, sum = 0;
  for (const Measurement& run : runs) {
    const perfkit::Count& count = run.rows[i].cells.count;
    const std::optional<uint64_t> scaled = count.validity.counted() ? count.scaled() : std::nullopt;
    if (!count.validity.counted()) return run.rows[i];  // a mean of the others would be of other runs
    values.push_back(static_cast<double>(scaled.value_or(count.value)));
    mean.cells.count.validity.flags |= count.validity.flags;
    sum += count.value;
    enabled_ns += count.time_enabled_ns;
    running_ns += count.time_running_ns;
  }
  const uint64_t n = runs.size();
  mean.cells.count.value = (sum + n / 2) / n;
  mean.cells.count.time_enabled_ns = enabled_ns / n;
  mean.cells.count.time_running_ns = running_ns / n;
  mean.spread = SpreadOf(values).relative;
  if (mean.spread) mean.cells.note = Percent(*mean.spread);
  return mean;
}

}  // namespace

absl::StatusOr<Counting> Counting::Open(const std::string& events, const std::vector<perfkit::Target>& targets) {
  const auto groups = perfkit::ParseEventList(events);
  if (!groups.ok()) return groups.status();
  Counting counting;
  for (const perfkit::Target& target : targets) {
    auto set = perfkit::CounterSet::Open(*groups, target, {.require_all = false});
    if (!set.ok()) return set.status();
    if (!CountsAnything(*set)) return WhyNothing(*set);
    counting.sets_.push_back(*std::move(set));
  }
  counting.last_.resize(counting.sets_.size());
  for (size_t s = 0; s < counting.sets_.size(); ++s) counting.sets_[s].Read(counting.last_[s]);
  return counting;
}

std::vector<Row> Counting::Take() {
  perfkit::ScopeTotals total;
  for (size_t s = 0; s < sets_.size(); ++s) {
    perfkit::Snapshot now;
    sets_[s].Read(now);
    total.Add(sets_[s], last_[s], now);
    last_[s] = now;
  }
  const std::vector<perfkit::TableRow> first = perfkit::TableRows(sets_.front(), total);
  std::vector<Row> rows;
  for (size_t i = 0; i < first.size(); ++i) {
    perfkit::TableRow cells = first[i];
    for (const perfkit::CounterSet& set : sets_) {
      if (!cells.count.validity.counted()) break;
      perfkit::TableRow other = perfkit::TableRows(set, total)[i];
      other.count.validity.flags |= cells.count.validity.flags;
      cells = other;
    }
    rows.push_back({cells, NameOf(set(), i, cells.count), std::nullopt});
  }
  return rows;
}

Measurement Mean(const std::vector<Measurement>& runs) {
  if (runs.size() == 1) return runs.front();
  Measurement mean;
  std::vector<double> walls;
  for (const Measurement& run : runs) walls.push_back(static_cast<double>(run.wall_ns));
  const Spread wall = SpreadOf(walls);
  mean.wall_ns = static_cast<uint64_t>(wall.mean);
  mean.ended_s = wall.mean / 1e9;
  mean.wall_spread = wall.relative;
  mean.runs = static_cast<int>(runs.size());
  for (size_t i = 0; i < runs.front().rows.size(); ++i) mean.rows.push_back(MeanRow(runs, i));
  return mean;
}

}  // namespace stat_tool
