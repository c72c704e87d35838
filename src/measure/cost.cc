// Computes the numbers of a Cost and formats them. Of exact events the least value is the cost: whatever disturbs them
// can only add. Of noisy ones it is the median, with an interval that says how far it may be off.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "perfkit/measure.h"
#include "src/measure/statistics.h"

namespace perfkit {
namespace {

using detail::FormatAmount;

// Returns "; least 10, median 12, most 40 of 31", or "; 31 times the same"; "" for one value or none.
std::string Distribution(const EventType& event, const std::vector<int64_t>& values) {
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most) return values.size() == 1 ? "" : absl::StrFormat("; %d times the same", values.size());
  return absl::StrFormat("; least %s, median %s, most %s of %d", FormatAmount(event, *least),
                         FormatAmount(event, measure::Median(values)), FormatAmount(event, *most), values.size());
}

}  // namespace

std::string detail::FormatSigned(int64_t value) {
  return value < 0 ? "-" + FormatNumber(0 - static_cast<uint64_t>(value)) : FormatNumber(static_cast<uint64_t>(value));
}

std::string detail::FormatAmount(const EventType& event, int64_t value) {
  return FormatSigned(value) + (ClassOf(event) == EventClass::kTime ? " ns" : "");
}

std::string_view EventClassName(EventClass event_class) {
  switch (event_class) {
    case EventClass::kExact: return "exact";
    case EventClass::kNearExact: return "near-exact";
    case EventClass::kNoisy: return "noisy";
    case EventClass::kTime: return "time";
  }
  return "?";
}

int64_t Cost::value() const {
  if (values.empty()) return 0;
  return steady() ? *std::min_element(values.begin(), values.end()) : measure::Median(values);
}

Interval Cost::interval() const {
  if (values.empty()) return {};
  if (!steady()) return measure::MedianInterval(values);
  const auto least = static_cast<double>(value());
  // Near-exact: a few repetitions are disturbed, which says nothing about the region.
  if (event_class == EventClass::kNearExact) return {least, least};
  return {least, static_cast<double>(*std::max_element(values.begin(), values.end()))};
}

std::string Cost::ToString() const {
  std::string text(event.name);
  if (!measured()) return text + " unmeasurable: " + unmeasurable;
  absl::StrAppendFormat(&text, " %s (%s, %s%s", FormatAmount(event, value()), EventClassName(event_class), read_path,
                        Distribution(event, values));
  if (empty != 0) absl::StrAppendFormat(&text, "; %s of an empty region subtracted", FormatAmount(event, empty));
  if (dropped != 0) absl::StrAppendFormat(&text, "; %d dropped for a context switch", dropped);
  if (switched) text += "; switched in too many repetitions to leave them out";
  return text + ")";
}

const Cost* Measurement::Find(const EventType& event) const {
  for (const Cost& cost : costs) {
    if (cost.event == event) return &cost;
  }
  return nullptr;
}

std::string Measurement::ToString() const {
  std::string text;
  for (const Cost& cost : costs) text += (text.empty() ? "" : "\n") + cost.ToString();
  if (!by_zone.empty()) text += "\nby zone, in a run of its own:\n" + by_zone;
  return text;
}

std::optional<Interval> Comparison::Ratio(const EventType& event) const {
  const Cost* const ours = subject.Find(event);
  const Cost* const theirs = reference.Find(event);
  if (ours == nullptr || theirs == nullptr || !ours->measured() || !theirs->measured()) return std::nullopt;
  if (ours->steady()) {
    const Interval a = ours->interval(), b = theirs->interval();
    if (b.low <= 0) return std::nullopt;
    return Interval{a.low / b.high, a.high / b.low};
  }
  std::vector<double> ratios;
  // Values of one index are of one round (TakeRound): both regions had the same machine, so their ratio is steadier
  // than the ratio of two medians.
  for (size_t i = 0; i < std::min(ours->values.size(), theirs->values.size()); ++i) {
    if (theirs->values[i] <= 0) return std::nullopt;
    ratios.push_back(static_cast<double>(ours->values[i]) / static_cast<double>(theirs->values[i]));
  }
  if (ratios.empty()) return std::nullopt;
  return measure::MedianInterval(std::move(ratios));
}

std::string Comparison::ToString() const {
  std::string text = "subject: " + subject.ToString() + "\nreference: " + reference.ToString();
  for (const Cost& cost : subject.costs) {
    if (const std::optional<Interval> ratio = Ratio(cost.event)) {
      absl::StrAppendFormat(&text, "\nratio of %s: %.4g to %.4g", cost.event.name, ratio->low, ratio->high);
    }
  }
  return text;
}

std::string ScalingResult::ToString() const {
  std::string text;
  for (size_t i = 0; i < at.size(); ++i) {
    absl::StrAppendFormat(&text, "%sn = %s: %s", i == 0 ? "" : "\n", FormatNumber(sizes[i]), at[i].ToString());
  }
  return text;
}

}  // namespace perfkit
