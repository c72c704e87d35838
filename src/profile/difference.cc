// The difference of two profiles.
//
// Both are made one profile with four events: the weights before and after, and their squares. So trees and flat
// profiles match the functions and the calls of both, and each of their sums comes with what its variance is made of:
// for a share p of samples with weights w, that is (sum of w^2 inside * (1 - 2p) + p^2 * sum of all w^2) / (sum of all
// w)^2, which is p(1 - p)/n if all weights are the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile_difference.h"
#include "src/profile/event_choice.h"
#include "src/profile/interval.h"
#include "src/profile/report_sections.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

using profile::Estimate;

// The events of the common profile: of each side the weights, then their squares.
enum CommonEvent : uint16_t { kBefore, kBeforeSquares, kAfter, kAfterSquares, kCommonEvents };

// One side's numbers. Weights are in units of the mean weight of a sample.
struct Side {
  CommonEvent event = kBefore;
  double samples = 0;      // of the whole
  double mean_weight = 0;  // of a sample
  double squares = 0;      // the sum over all samples, in units of the mean weight's square
  double iterations = 0;   // 0: shares
  // Factor of squares, which are integers in a profile. Less if their sum would not fit.
  double square_scale = 65536;
};
// The sum of all squares of a side fits in 64 bits, also after rounding.
constexpr double kMaxSquares = 0x1p62;

uint64_t SamplesIn(const ProfileSample& sample) { return std::max<uint32_t>(sample.samples, 1); }

// The sum of the squares of a sample's weights. A merged sample has only the sum of its parts, which are taken for
// equal: n parts of w/n each have w^2/n. In units of the mean weight's square.
double ExactSquareOf(const ProfileSample& sample, const Side& side) {
  if (side.mean_weight == 0) return 0;
  const double weight = static_cast<double>(sample.weight) / side.mean_weight;
  return weight * weight / static_cast<double>(SamplesIn(sample));
}

uint64_t SquareOf(const ProfileSample& sample, const Side& side) {
  return static_cast<uint64_t>(std::llround(side.square_scale * ExactSquareOf(sample, side)));
}

Side MakeSide(const Profile& profile, size_t event, CommonEvent as, double iterations) {
  Side side{.event = as, .iterations = iterations};
  double weight = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != event) continue;
    side.samples += static_cast<double>(SamplesIn(sample));
    weight += static_cast<double>(sample.weight);
  }
  if (side.samples != 0) side.mean_weight = weight / side.samples;
  double exact_squares = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == event) exact_squares += ExactSquareOf(sample, side);
  }
  if (exact_squares * side.square_scale > kMaxSquares) side.square_scale = kMaxSquares / exact_squares;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == event) side.squares += static_cast<double>(SquareOf(sample, side)) / side.square_scale;
  }
  return side;
}

// The code and the samples of one side, as two of the common events. Modules have neither folders nor build ids, so
// that two builds' are the same.
Profile CommonPart(const Profile& profile, size_t event, const Side& side) {
  Profile part;
  part.strings = profile.strings;
  part.modules = profile.modules;
  part.calls = profile.calls;
  part.locations = profile.locations;
  part.stacks = profile.stacks;
  part.threads.resize(1);
  for (const std::string_view name : {"before", "before^2", "after", "after^2"}) {
    part.events.push_back({.name = std::string(name)});
  }
  for (ProfileModule& module : part.modules) {
    part.strings.emplace_back(profile::FileName(profile.strings[module.path]));
    module = {.path = static_cast<uint32_t>(part.strings.size() - 1)};
  }
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != event) continue;
    ProfileSample weight{.weight = sample.weight,
                         .samples = static_cast<uint32_t>(SamplesIn(sample)),
                         .stack = sample.stack,
                         .event = side.event,
                         .quality = sample.quality};
    part.samples.push_back(weight);
    weight.weight = SquareOf(sample, side);
    weight.event = static_cast<uint16_t>(side.event + 1);
    part.samples.push_back(weight);
  }
  return part;
}

// Judges sums of the common events.
class Judge {
 public:
  Judge(const Side& before, const Side& after, const DifferenceOptions& options)
      : before_(before),
        after_(after),
        quantile_(profile::NormalQuantile(options.confidence)),
        design_effect_(options.design_effect) {}

  // `sum(event)`: a function's or a node's sum of a common event.
  template <class SumOf>
  ProfileChange Change(SumOf&& sum) const {
    const Estimate before = EstimateOf(before_, sum), after = EstimateOf(after_, sum);
    const Estimate difference = profile::DifferenceOf(before, after);
    return {.before = before.value,
            .after = after.value,
            .low = difference.low,
            .high = difference.high,
            .before_samples = sum(kBefore).samples,
            .after_samples = sum(kAfter).samples};
  }

 private:
  template <class SumOf>
  Estimate EstimateOf(const Side& side, SumOf&& sum) const {
    const double weight = side.mean_weight == 0 ? 0 : static_cast<double>(sum(side.event).weight) / side.mean_weight;
    const double squares =
        static_cast<double>(sum(static_cast<CommonEvent>(side.event + 1)).weight) / side.square_scale;
    return side.iterations != 0 ? Rate(side, weight, squares) : Share(side, weight, squares);
  }

  Estimate Share(const Side& side, double weight, double squares) const {
    if (side.samples == 0 || side.squares == 0) return profile::ShareEstimate(0, 0, quantile_);
    // In units of the mean weight, all weights together are the number of samples.
    const double share = std::min(weight / side.samples, 1.0);
    const double variance = (squares * (1 - 2 * share) + share * share * side.squares) / (side.samples * side.samples);
    // As many equal samples as have this variance. Where it says nothing (none or all), as all weights together are
    // worth.
    const double worth = share > 0 && share < 1 && variance > 0 ? share * (1 - share) / variance
                                                                : side.samples * side.samples / side.squares;
    return profile::ShareEstimate(share, std::min(worth, side.samples) / design_effect_, quantile_);
  }

  Estimate Rate(const Side& side, double weight, double squares) const {
    // Rates have a Poisson distribution, which is about counts of equal events. A sum of unequal weights is as certain
    // as that of sum^2/squares equal events of squares/sum each.
    const double whole = side.squares == 0 ? 1 : side.squares / std::max(side.samples, 1.0);
    // Each of `count` such events is worth `each` mean weights. Without samples it is what the events of the whole are
    // worth: "none" is then as certain as there are samples at all.
    const double each = (squares > 0 ? squares / weight : whole) * design_effect_;
    const double count = weight / each;
    return profile::RateEstimate(count, each * side.mean_weight / side.iterations, quantile_);
  }

  Side before_, after_;
  double quantile_, design_effect_;
};

// Weights are below 2^64, so that their squares divided by the square of its inverse are finite.
constexpr double kMaxOption = 1e30;

absl::Status Invalid(std::string_view what) {
  return absl::Status(absl::StatusCode::kInvalidArgument, absl::StrFormat("cannot compare the profiles: %s", what));
}

absl::Status CheckOptions(const DifferenceOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1)) return Invalid("confidence is not between 0 and 1");
  if (!(options.design_effect >= 1)) return Invalid("design_effect is less than 1");
  if (!(options.design_effect <= kMaxOption)) return Invalid("design_effect is too large");
  const bool before = options.before_iterations > 0, after = options.after_iterations > 0;
  if (before != after || !(options.before_iterations >= 0) || !(options.after_iterations >= 0)) {
    return Invalid("iterations are known of one only. Remedy: give both, or none for shares");
  }
  for (const double iterations : {options.before_iterations, options.after_iterations}) {
    if (before && !(iterations >= 1 / kMaxOption && iterations <= kMaxOption)) {
      return Invalid("iterations are not between 1e-30 and 1e30: rates would have no finite numbers");
    }
  }
  return absl::OkStatus();
}

// The index of the event in both profiles.
absl::StatusOr<std::pair<size_t, size_t>> CommonEventIndex(const Profile& before, const Profile& after,
                                                           const std::string& name) {
  for (const Profile* const profile : {&before, &after}) {
    if (absl::Status status = profile->Check(); !status.ok()) return status;
  }
  const absl::StatusOr<size_t> first = profile::ChooseEvent(before, name);
  if (!first.ok()) return first.status();
  const absl::StatusOr<size_t> second = profile::ChooseEvent(after, before.events[*first].name);
  if (!second.ok()) return second.status();
  if (before.events[*first].unit != after.events[*second].unit) return Invalid("the event's units differ");
  return std::pair(*first, *second);
}

void FillFunctions(const Profile& common, const Judge& judge, ProfileDifference& difference) {
  const FlatProfile flat(common, {.by_name = true});
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const FlatProfile::Row& row = flat.rows()[i];
    const bool has_module = row.module != ProfileLocation::kNoModule;
    difference.functions.push_back({.name = FunctionName(common, row.function),
                                    .module = has_module ? common.strings[common.modules[row.module].path] : "",
                                    .kernel = row.function.kernel,
                                    .self = judge.Change([&](CommonEvent event) { return flat.Self(i, event); }),
                                    .total = judge.Change([&](CommonEvent event) { return flat.Total(i, event); })});
  }
  std::stable_sort(difference.functions.begin(), difference.functions.end(), [](const auto& a, const auto& b) {
    return std::pair(a.self.is_noise(), -std::abs(a.self.change())) <
           std::pair(b.self.is_noise(), -std::abs(b.self.change()));
  });
}

void FillNodes(const Profile& common, const Judge& judge, ProfileDifference& difference) {
  const CallTree tree(common, {.by_name = true});
  // The tree numbers functions by itself. They are found in `difference.functions` by name and whether they are the
  // kernel's, which is what both tables tell functions apart by (by_name).
  std::vector<std::pair<std::pair<std::string_view, bool>, uint32_t>> index;
  for (uint32_t i = 0; i < difference.functions.size(); ++i) {
    index.push_back({{difference.functions[i].name, difference.functions[i].kernel}, i});
  }
  std::sort(index.begin(), index.end());
  std::vector<uint32_t> function_of;
  for (const ReportFunction& function : tree.functions()) {
    const std::string name = FunctionName(common, function);
    const std::pair<std::string_view, bool> key(name, function.kernel);
    const auto at = std::lower_bound(index.begin(), index.end(), std::pair(key, uint32_t{0}));
    function_of.push_back(at != index.end() && at->first == key ? at->second : UINT32_MAX);
  }
  for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    difference.nodes.push_back(
        {.parent = node.parent,
         .first_child = node.first_child,
         .children = node.children,
         .function = node.function == CallTree::kNoFunction ? UINT32_MAX : function_of[node.function],
         .self = judge.Change([&](CommonEvent event) { return tree.Self(i, event); }),
         .total = judge.Change([&](CommonEvent event) { return tree.Total(i, event); })});
  }
}

}  // namespace

absl::StatusOr<ProfileDifference> Difference(const Profile& before, const Profile& after,
                                             const DifferenceOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  const auto events = CommonEventIndex(before, after, options.event);
  if (!events.ok()) return events.status();
  const ProfileEvent& event = before.events[events->first];
  const Side first = MakeSide(before, events->first, kBefore, options.before_iterations);
  const Side second = MakeSide(after, events->second, kAfter, options.after_iterations);
  Profile common;
  common.Merge(CommonPart(before, events->first, first));
  common.Merge(CommonPart(after, events->second, second));
  ProfileDifference difference{.program = after.program,
                               .event = event.name,
                               .unit = event.unit,
                               .per_iteration = options.before_iterations > 0,
                               .confidence = options.confidence,
                               .before = before.Total(events->first),
                               .after = after.Total(events->second)};
  const ReportOptions report;
  difference.before_accounting = profile::AccountingSection({before, report, events->first, difference.before});
  difference.after_accounting = profile::AccountingSection({after, report, events->second, difference.after});
  // What a change is compared with: the weight per iteration, or for shares 1.
  const auto whole = [&](const Profile::Sum& sum, double iterations) {
    return iterations > 0 ? static_cast<double>(sum.weight) / iterations : sum.weight != 0 ? 1.0 : 0.0;
  };
  difference.before_whole = whole(difference.before, options.before_iterations);
  difference.after_whole = whole(difference.after, options.after_iterations);
  const Judge judge(first, second, options);
  FillFunctions(common, judge, difference);
  FillNodes(common, judge, difference);
  return difference;
}

}  // namespace perfkit
