// Adds tallies by event and column name, and makes the row of their sums. A column's name tells its quality
// ("page-faults:u"), so tallies of different quality have different names: neither is then counted on every thread, and
// the row has a note instead of a sum of unlike numbers. Two events may have one column name: an ordinary user's
// "page-faults" and "page-faults:u". They are the same number, and have one column. No other two numbers have one: a
// metric, or an event that has the name of a counter of the benchmark's own, has a note instead.
#include "src/benchmark/adapter/run_sum.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/benchmark/adapter/head_reasons.h"

namespace perfkit::adapter {
namespace {

double Coverage(const Tally& tally) {
  if (tally.running_ns >= tally.enabled_ns) return 1;
  return static_cast<double>(tally.running_ns) / static_cast<double>(tally.enabled_ns);
}

std::vector<BenchmarkColumn> ColumnsOf(const std::string& name, double value, double coverage) {
  if (coverage == 1) return {{name, value}};
  return {{name + "(scaled)", value}, {name + "(covered%)", coverage * 100}};
}

std::string WhyNot(const Tally& tally, int threads) {
  if (!tally.why_not.empty()) return tally.why_not;
  return tally.threads == threads ? "" : "not counted on every thread";
}

// Events that are missing for the same reason share it: "cycles, instructions n/a (no PMU)".
struct Missing {
  std::string names, reason;
};

void AddMissing(std::vector<Missing>& missing, const std::string& name, std::string reason) {
  for (Missing& m : missing) {
    if (m.reason != reason) continue;
    m.names += ", " + name;
    return;
  }
  missing.push_back({name, std::move(reason)});
}

// A row as it is made.
class RowMaker {
 public:
  explicit RowMaker(std::span<const std::string> own) : own_(own) {}

  void AddEvent(const Tally& tally, const std::string& reason, int64_t iterations) {
    if (!reason.empty()) return AddMissing(missing_, tally.name, reason);
    const auto columns = ColumnsOf(tally.name, tally.value / static_cast<double>(iterations), Coverage(tally));
    if (!IsTaken(columns)) Add(tally.name, columns);  // Otherwise the same event by another name.
  }

  void AddMetric(const WantedMetric& wanted, std::span<const MetricPart> parts) {
    if (!wanted.metric) return AddMissing(missing_, wanted.name, ReasonForRow(wanted.name, wanted.why_not));
    const MetricValue value = wanted.metric->Evaluate(parts);
    if (!value.has_value()) return AddMissing(missing_, wanted.name, value.reason);
    const std::string name = ColumnName(*wanted.metric, value.validity);
    const std::vector<BenchmarkColumn> columns = ColumnsOf(name, value.value, value.coverage);
    if (!IsTaken(columns)) return Add(name, columns);
    AddMissing(missing_, name, absl::StrFormat("a column is called '%s'", name));
  }

  BenchmarkRow Finish() {
    for (const Missing& m : missing_) {
      row_.note += (row_.note.empty() ? "" : "; ") + m.names + " n/a (" + m.reason + ")";
    }
    return std::move(row_);
  }

 private:
  // As the name of an event's column.
  static std::string ColumnName(const Metric& metric, Validity validity) {
    std::string name = metric.name();
    if (validity.has(Validity::kUserOnly)) name += ":u";
    if (!metric.unit().empty()) name += "[" + metric.unit() + "]";
    return name;
  }

  // Returns true if the row has a column with the name of one of `columns`.
  bool IsTaken(const std::vector<BenchmarkColumn>& columns) const {
    return std::ranges::any_of(columns, [&](const BenchmarkColumn& column) {
      return std::ranges::find(row_.columns, column.name, &BenchmarkColumn::name) != row_.columns.end();
    });
  }

  void Add(const std::string& name, const std::vector<BenchmarkColumn>& columns) {
    const auto is_own = [&](const BenchmarkColumn& column) {
      return std::ranges::find(own_, column.name) != own_.end();
    };
    if (std::ranges::any_of(columns, is_own)) {
      return AddMissing(missing_, name, "the benchmark has a counter of this name");
    }
    row_.columns.insert(row_.columns.end(), columns.begin(), columns.end());
  }

  std::span<const std::string> own_;
  BenchmarkRow row_;
  std::vector<Missing> missing_;
};

MetricPart PartOf(const Tally& tally, int64_t iterations, const std::string& reason) {
  MetricPart part;
  part.name = tally.event;
  part.reason = reason;
  if (!reason.empty()) {
    part.validity = {Validity::kNotCounted};
    return part;
  }
  part.value = tally.value / static_cast<double>(iterations);
  part.coverage = Coverage(tally);
  if (tally.user_only) part.validity = {Validity::kUserOnly};
  return part;
}

void Merge(std::vector<Tally>& tallies, const Tally& tally) {
  for (Tally& t : tallies) {
    if (t.name != tally.name || t.event != tally.event) continue;
    if (t.why_not.empty()) t.why_not = tally.why_not;
    t.value = t.of_machine ? std::max(t.value, tally.value) : t.value + tally.value;
    t.enabled_ns += tally.enabled_ns;
    t.running_ns += tally.running_ns;
    t.threads += tally.threads;
    return;
  }
  tallies.push_back(tally);
}

}  // namespace

BenchmarkRow MakeRow(const std::vector<Tally>& tallies, int64_t iterations, int threads,
                     std::span<const WantedMetric> metrics, std::span<const std::string> own) {
  RowMaker row(own);
  std::vector<std::string> reasons;
  for (const Tally& tally : tallies) {
    reasons.push_back(ReasonForRow(tally.event, WhyNot(tally, threads)));
    if (reasons.back().empty() && iterations <= 0) reasons.back() = "no iteration";
    if (!tally.for_metrics) row.AddEvent(tally, reasons.back(), iterations);
  }
  std::vector<MetricPart> parts;
  for (size_t i = 0; i < tallies.size(); ++i) parts.push_back(PartOf(tallies[i], iterations, reasons[i]));
  for (const WantedMetric& wanted : metrics) row.AddMetric(wanted, parts);
  return row.Finish();
}

std::string JoinLabel(const std::string& label, const std::string& note) {
  if (label.empty() || note.empty()) return label.empty() ? note : label;
  return label + "; " + note;
}

void RunSum::Arrive(int64_t iterations, std::vector<Tally> tallies, std::vector<WantedMetric> metrics,
                    std::vector<std::string> own) {
  const std::lock_guard lock(mutex_);
  iterations_ += iterations;
  if (arrived_.empty()) metrics_ = std::move(metrics);
  arrived_.push_back(std::move(tallies));
  own_.insert(own_.end(), own.begin(), own.end());
}

BenchmarkRow RunSum::Leave() {
  const std::lock_guard lock(mutex_);
  BenchmarkRow row;
  // The first thread that leaves: all have arrived, as the library's barrier is between the two.
  if (left_ == 0) {
    std::vector<Tally> sums;
    for (const std::vector<Tally>& tallies : arrived_) {
      for (const Tally& tally : tallies) Merge(sums, tally);
    }
    row = MakeRow(sums, iterations_, static_cast<int>(arrived_.size()), metrics_, own_);
    if (!row.note.empty()) row.label = JoinLabel(label_, row.note);
    note_ = row.note;
  }
  row.note = note_;
  if (++left_ == arrived_.size()) {
    arrived_.clear();
    own_.clear();
    iterations_ = 0;
    left_ = 0;
  }
  return row;
}

void RunSum::Begin() {
  const std::lock_guard lock(mutex_);
  if (!ahead_) label_.clear();
}

void RunSum::End() {
  const std::lock_guard lock(mutex_);
  ahead_ = false;
}

// Calls `set` under the lock, so that the last composed label is also the last one set.
void RunSum::SetLabel(const std::string* label, const std::string& note, bool begun,
                      absl::FunctionRef<void(const std::string&)> set) {
  const std::lock_guard lock(mutex_);
  if (label != nullptr) label_ = *label;
  if (!begun) ahead_ = true;
  set(JoinLabel(label_, note));
}

}  // namespace perfkit::adapter
