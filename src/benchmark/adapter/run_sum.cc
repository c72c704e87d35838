// Adds tallies by name, and makes the row of their sums.
#include "src/benchmark/adapter/run_sum.h"

#include <utility>

namespace perfkit::adapter {
namespace {

double Coverage(const Tally& tally) {
  if (tally.running_ns >= tally.enabled_ns) return 1;
  return static_cast<double>(tally.running_ns) / static_cast<double>(tally.enabled_ns);
}

void AddColumns(const Tally& tally, int64_t iterations, std::vector<BenchmarkColumn>& columns) {
  const double value = tally.value / static_cast<double>(iterations);
  const double coverage = Coverage(tally);
  if (coverage == 1) {
    columns.push_back({tally.name, value});
    return;
  }
  columns.push_back({tally.name + "(scaled)", value});
  columns.push_back({tally.name + "(covered%)", coverage * 100});
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

void Merge(std::vector<Tally>& tallies, const Tally& tally) {
  for (Tally& t : tallies) {
    if (t.name != tally.name) continue;
    if (t.why_not.empty()) t.why_not = tally.why_not;
    t.value += tally.value;
    t.enabled_ns += tally.enabled_ns;
    t.running_ns += tally.running_ns;
    t.threads += tally.threads;
    return;
  }
  tallies.push_back(tally);
}

}  // namespace

BenchmarkRow MakeRow(const std::vector<Tally>& tallies, int64_t iterations, int threads) {
  BenchmarkRow row;
  std::vector<Missing> missing;
  for (const Tally& tally : tallies) {
    std::string why_not = WhyNot(tally, threads);
    if (why_not.empty() && iterations > 0) {
      AddColumns(tally, iterations, row.columns);
    } else {
      AddMissing(missing, tally.name, why_not.empty() ? "no iteration" : std::move(why_not));
    }
  }
  for (const Missing& m : missing) {
    row.note += (row.note.empty() ? "" : "; ") + m.names + " n/a (" + m.reason + ")";
  }
  return row;
}

std::string JoinLabel(const std::string& label, const std::string& note) {
  if (label.empty() || note.empty()) return label.empty() ? note : label;
  return label + "; " + note;
}

void RunSum::Arrive(int64_t iterations, std::vector<Tally> tallies) {
  const std::lock_guard lock(mutex_);
  iterations_ += iterations;
  arrived_.push_back(std::move(tallies));
}

BenchmarkRow RunSum::Leave() {
  const std::lock_guard lock(mutex_);
  BenchmarkRow row;
  if (left_ == 0) {
    std::vector<Tally> sums;
    for (const std::vector<Tally>& tallies : arrived_) {
      for (const Tally& tally : tallies) Merge(sums, tally);
    }
    row = MakeRow(sums, iterations_, static_cast<int>(arrived_.size()));
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
