// Resolves and opens events, and turns every failure into the reason of its event. An event keeps its index even if it
// can't be opened, because programs ask for counts by index.
#include "src/count/frame/event_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/count/build_source.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {

EventPlan::EventPlan(std::span<const EventSpec> events, std::optional<ReadPath> only_path) : only_path_(only_path) {
  for (const EventSpec& spec : events) Add(spec);
}

// Adds an event, or the groups of a list. A text with braces is a list, because no event's text has any.
void EventPlan::Add(const EventSpec& spec) {
  if (size() == kMaxEvents) return;
  absl::Status status;
  if (!spec.type && spec.text.find('{') != std::string::npos) {
    absl::StatusOr<std::vector<std::vector<EventConfig>>> groups = ParseEventList(spec.text);
    status = groups.status();
    for (size_t g = 0; status.ok() && g < groups->size(); ++g) AddGroup(std::move((*groups)[g]));
  } else {
    absl::StatusOr<EventConfig> config = ResolveEvent(spec);
    status = config.status();
    if (status.ok()) AddGroup({*std::move(config)});
  }
  if (status.ok()) return;
  AddGroup({Placeholder(spec.text)});
  reasons_.back() = std::string(status.message());
}

// Ignores a group that exceeds kMaxEvents. A smaller group after it may still fit.
void EventPlan::AddGroup(std::vector<EventConfig> group) {
  if (size() + group.size() > kMaxEvents) return;
  for (size_t member = 0; member < group.size(); ++member) {
    positions_.push_back({groups_.size(), member});
    names_.push_back(group[member].name);
    reasons_.emplace_back();
  }
  groups_.push_back(std::move(group));
}

std::optional<size_t> EventPlan::IndexOf(uint64_t software_config) const {
  for (size_t i = 0; i < size(); ++i) {
    const EventConfig::Part& part = event(i).parts[0];
    if (part.type != sys::kTypeSoftware || part.config != software_config) continue;
    // With a modifier it counts something else than the rings of HitchWatch record, and can't replace them
    // (LogSubstitutes).
    if (reasons_[i].empty() && !event(i).privilege_given) return i;
  }
  return std::nullopt;
}

std::optional<CounterSet> EventPlan::Open(bool self_test, absl::Status* status) const {
  if (groups_.empty()) return std::nullopt;
  CounterOptions options;
  options.require_all = false;
  options.only_path = only_path_;
  options.self_test = self_test;
  absl::StatusOr<CounterSet> set = CounterSet::Open(groups_, Target::ThisThread(), options);
  if (set.ok()) return *std::move(set);
  *status = set.status();
  return std::nullopt;
}

std::optional<CounterSet> EventPlan::OpenFirst() {
  absl::Status status;
  std::optional<CounterSet> set = Open(true, &status);
  for (size_t i = 0; i < size(); ++i) {
    const absl::Status reason = set ? set->reason(i) : status;
    if (!reason.ok() && reasons_[i].empty()) reasons_[i] = std::string(reason.message());
    fixed_flags_[i] = set ? set->fixed_flags(i) : Validity{Validity::kNotCounted};
    if (!reasons_[i].empty()) never_ |= 1u << i;
    if (!reason.ok()) continue;
    paths_[i] = set->path(i);
    // A cheaper path may have been refused by the self-test: later threads must not trust it untested.
    if (paths_[i] == ReadPath::kGroupRead || paths_[i] == ReadPath::kUsage) test_each_ = !only_path_;
  }
  if (set) multiplexable_ = set->multiplexable();
  return set;
}

std::optional<CounterSet> EventPlan::OpenNext() const {
  absl::Status ignored;  // An event that only this thread lacks is missing in its snapshots.
  return Open(test_each_, &ignored);
}

}  // namespace perfkit::count
