// Adds tallies by event and column name, and makes the row of their sums. A column's name tells its quality
// ("page-faults:u"), so tallies of different quality have different names: neither is then counted on every thread, and
// the row has a note instead of a sum of unlike numbers. Two events may have one column name: an ordinary user's
// "page-faults" and "page-faults:u".
#include "src/benchmark/adapter/run_sum.h"

#include <algorithm>
#include <utility>

#include "src/benchmark/adapter/head_reasons.h"

namespace perfkit::adapter {
namespace {

double Coverage(const Tally& tally) {
  if (tally.running_ns >= tally.enabled_ns) return 1;
  return static_cast<double>(tally.running_ns) / static_cast<double>(tally.enabled_ns);
}

void AddColumns(const std::string& name, double value, double coverage, std::vector<BenchmarkColumn>& columns) {
  if (coverage == 1) {
    columns.push_back({name, value});
    return;
  }
  columns.push_back({name + "(scaled)", value});
  columns.push_back({name + "(covered%)", coverage * 100});
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

// As the name of an event's column.
std::string ColumnName(const Metric& metric, Validity validity) {
  std::string name = metric.name();
  if (validity.has(Validity::kUserOnly)) name += ":u";
  if (!metric.unit().empty()) name += "[" + metric.unit() + "]";
  return name;
}

void AddMetric(const WantedMetric& wanted, std::span<const MetricPart> parts, std::vector<BenchmarkColumn>& columns,
               std::vector<Missing>& missing) {
  if (!wanted.metric) return AddMissing(missing, wanted.name, ReasonForRow(wanted.name, wanted.why_not));
  const MetricValue value = wanted.metric->Evaluate(parts);
  if (!value.has_value()) return AddMissing(missing, wanted.name, value.reason);
  AddColumns(ColumnName(*wanted.metric, value.validity), value.value, value.coverage, columns);
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
                     std::span<const WantedMetric> metrics) {
  BenchmarkRow row;
  std::vector<Missing> missing;
  std::vector<std::string> reasons;
  for (const Tally& tally : tallies) {
    reasons.push_back(ReasonForRow(tally.event, WhyNot(tally, threads)));
    if (reasons.back().empty() && iterations <= 0) reasons.back() = "no iteration";
    if (tally.for_metrics) continue;
    if (reasons.back().empty()) {
      AddColumns(tally.name, tally.value / static_cast<double>(iterations), Coverage(tally), row.columns);
    } else {
      AddMissing(missing, tally.name, reasons.back());
    }
  }
  std::vector<MetricPart> parts;
  for (size_t i = 0; i < tallies.size(); ++i) parts.push_back(PartOf(tallies[i], iterations, reasons[i]));
  for (const WantedMetric& wanted : metrics) AddMetric(wanted, parts, row.columns, missing);
  for (const Missing& m : missing) {
    row.note += (row.note.empty() ? "" : "; ") + m.names + " n/a (" + m.reason + ")";
  }
  return row;
}

std::string JoinLabel(const std::string& label, const std::string& note) {
  if (label.empty() || note.empty()) return label.empty() ? note : label;
  return label + "; " + note;
}

void RunSum::Arrive(int64_t iterations, std::vector<Tally> tallies, std::vector<WantedMetric> metrics) {
  const std::lock_guard lock(mutex_);
  iterations_ += iterations;
  if (arrived_.empty()) metrics_ = std::move(metrics);
  arrived_.push_back(std::move(tallies));
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
    row = MakeRow(sums, iterations_, static_cast<int>(arrived_.size()), metrics_);
    if (!row.note.empty()) row.label = JoinLabel(label_, row.note);
    note_ = row.note;
  }
  row.note = note_;
  if (++left_ == arrived_.size()) {
    arrived_.clear();
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
