// Compares a measurement with an earlier one in a file, or writes it there if PERFKIT_BASELINE_UPDATE is set.
//
// A number is only compared with one of the same backend, because steppers and counters differ by a few instructions. A
// noisy number (cost.steady() is false) is also compared on its own machine only. So the file may hold several numbers
// of one event. One that the file lacks is unmeasurable and no failure: a test must not fail on a machine just because
// it is new.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_format.h"
#include "perfkit/testing.h"
#include "src/base/variables.h"
#include "src/testing/matchers/baseline_file.h"
#include "src/testing/matchers/surroundings.h"

namespace perfkit {
namespace {

using matchers::ByEvent;
using matchers::Unmeasurable;

// Numbers of different backends, and noisy numbers of different machines, can't be compared.
std::string BackendOf(const Cost& cost) {
  return cost.steady() ? cost.read_path : absl::StrFormat("%s @%s", cost.read_path, matchers::ThisMachine());
}

// Returns true if PERFKIT_BASELINE_UPDATE asks for an update. Errors: InvalidArgument for a word that is neither a yes
// nor a no, because an update overwrites the baseline.
absl::StatusOr<bool> WantsUpdate() {
  const char* const word = std::getenv("PERFKIT_BASELINE_UPDATE");
  if (const std::optional<bool> answer = base::YesOrNo(word)) return *answer;
  return absl::InvalidArgumentError(absl::StrFormat(
      "PERFKIT_BASELINE_UPDATE is '%s'. Remedy: set it to 1 to write the baseline, or to 0 to compare with it", word));
}

// Passes if all costs were written. A cost that could not be measured makes the verdict unmeasurable; the file keeps
// its older number.
Verdict Update(const Measurement& measurement, const std::string& name, const std::string& file) {
  ByEvent entry;
  Verdict verdict{Outcome::kPass, absl::StrFormat("baseline '%s' written to %s", name, file)};
  for (const Cost& cost : measurement.costs) {
    if (cost.measured()) entry[std::string(cost.event.name)][BackendOf(cost)] = cost.value();
    if (!cost.measured()) verdict = verdict && Unmeasurable(cost.event, cost.unmeasurable);
  }
  const absl::Status written = matchers::UpdateBaseline(file, name, entry);
  if (!written.ok()) return {Outcome::kFail, std::string(written.message())};
  return verdict;
}

Verdict JudgeOne(const Cost& cost, const ByEvent& entry, std::string_view name, Percent tolerance,
                 const std::string& file) {
  if (!cost.measured()) return Unmeasurable(cost.event, cost.unmeasurable);
  const auto event = entry.find(std::string(cost.event.name));
  const std::string backend = BackendOf(cost);
  if (event == entry.end() || !event->second.contains(backend)) {
    return Unmeasurable(cost.event, absl::StrFormat("baseline '%s' has no number by '%s' in %s. Remedy: run once with "
                                                    "PERFKIT_BASELINE_UPDATE=1",
                                                    name, backend, file));
  }
  const auto was = static_cast<double>(event->second.at(backend));
  double margin = std::abs(was) * tolerance.value / 100;
  if (std::isinf(tolerance.value)) margin = tolerance.value;  // Infinity times 0 is not a number.
  const Interval now = cost.interval();
  const std::string why =
      absl::StrFormat("baseline '%s' is %s, within %g %%: %s", name,
                      detail::FormatAmount(cost.event, event->second.at(backend)), tolerance.value, cost.ToString());
  // A noisy cost is an interval: one inside the margin passes, one outside of it fails, and one that overlaps its end
  // says nothing.
  if (now.low >= was - margin && now.high <= was + margin) return {Outcome::kPass, why};
  if (cost.steady() || now.high < was - margin || now.low > was + margin) {
    return {Outcome::kFail, why + "; PERFKIT_BASELINE_UPDATE=1 makes it the new baseline"};
  }
  return Unmeasurable(cost.event, "too noisy to tell: " + why);
}

}  // namespace

Verdict JudgeBaseline(const Measurement& measurement, std::string_view name, Percent tolerance,
                      const std::string& file) {
  if (!matchers::IsFactor(tolerance.value)) {
    return {Outcome::kFail,
            absl::StrFormat("baseline '%s': a tolerance of %g %% is none: write 0 or more", name, tolerance.value)};
  }
  if (measurement.costs.empty()) {
    return {Outcome::kFail, absl::StrFormat("baseline '%s': no event was measured: name events for Measure", name)};
  }
  const absl::StatusOr<bool> update = WantsUpdate();
  if (!update.ok()) return {Outcome::kFail, std::string(update.status().message())};
  if (*update) return Update(measurement, std::string(name), file);
  // A damaged file fails. It must not pass for an empty one, which makes every cost unmeasurable.
  const absl::StatusOr<matchers::Baselines> baselines = matchers::ReadBaselines(file);
  if (!baselines.ok()) return {Outcome::kFail, std::string(baselines.status().message())};
  const auto entry = baselines->find(std::string(name));
  Verdict verdict{Outcome::kPass, absl::StrFormat("baseline '%s'", name)};
  for (const Cost& cost : measurement.costs) {
    verdict = verdict && JudgeOne(cost, entry == baselines->end() ? ByEvent{} : entry->second, name, tolerance, file);
  }
  return verdict;
}

std::string detail::PathBeside(const char* source_file) {
  if (const char* const path = std::getenv("PERFKIT_BASELINE"); path != nullptr && *path != '\0') return path;
  const std::string_view source = source_file;
  const size_t slash = source.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : source.substr(0, slash + 1));
  return folder + "perfkit_baseline.json";
}

}  // namespace perfkit
