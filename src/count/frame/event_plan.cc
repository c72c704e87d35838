// Resolves and opens events, and turns every failure into the reason of its event. An event keeps its index even if it
// can't be opened, because programs ask for counts by index.
#include "src/count/frame/event_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/count/build_source.h"
#include "src/sys/fork_registry.h"
#include "src/sys/perf_abi.h"
#include "src/sys/perf_error.h"

namespace perfkit::count {

EventPlan::EventPlan(std::span<const EventSpec> events, std::optional<ReadPath> only_path) : only_path_(only_path) {
  for (const EventSpec& spec : events) Add(spec);
}

// Adds an event, or the groups of a list. A text with braces is a list, because no event's text has any.
void EventPlan::Add(const EventSpec& spec) {
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
  if (AddGroup({Placeholder(spec.text)})) SetReason(size() - 1, status);
}

void EventPlan::SetReason(size_t i, const absl::Status& status) {
  reasons_[i] = std::string(status.message());
  causes_[i] = sys::CauseOf(status);
}

// A smaller group after one that does not fit may still fit.
bool EventPlan::AddGroup(std::vector<EventConfig> group) {
  if (size() + group.size() > kMaxEvents) {
    for (const EventConfig& event : group) left_out_ += (left_out_.empty() ? "" : ", ") + event.name;
    return false;
  }
  for (size_t member = 0; member < group.size(); ++member) {
    positions_.push_back({groups_.size(), member});
    names_.push_back(group[member].name);
    reasons_.emplace_back();
    causes_.emplace_back();
  }
  groups_.push_back(std::move(group));
  return true;
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

absl::StatusOr<std::unique_ptr<Source>> EventPlan::Open(bool self_test,
                                                        std::optional<bool> migrations_by_records) const {
  if (groups_.empty()) return absl::InvalidArgumentError("there are no events");
  CounterOptions options;
  options.require_all = false;
  options.only_path = only_path_;
  options.self_test = self_test;
  return BuildSource(groups_, Target::ThisThread(), options, migrations_by_records);
}

std::optional<CounterSet> EventPlan::OpenFirst() {
  absl::StatusOr<std::unique_ptr<Source>> source = Open(true, std::nullopt);
  const absl::Status status = source.status();
  std::optional<CounterSet> set;
  if (source.ok()) set = CounterSet(*std::move(source));
  for (size_t i = 0; i < size(); ++i) {
    const absl::Status reason = set ? set->reason(i) : status;
    if (!reason.ok() && reasons_[i].empty()) SetReason(i, reason);
    fixed_flags_[i] = set ? set->fixed_flags(i) : Validity{Validity::kNotCounted};
    if (!reasons_[i].empty()) never_ |= 1u << i;
    if (!reason.ok()) continue;
    paths_[i] = set->path(i);
    if (IsSoftware(event(i), sys::kSwCpuMigrations)) migrations_by_records_ = paths_[i] == ReadPath::kThreadClock;
    // A cheaper path may have been refused by the self-test: later threads must not trust it untested.
    if (paths_[i] == ReadPath::kGroupRead || paths_[i] == ReadPath::kUsage) test_each_ = !only_path_;
  }
  if (set) multiplexable_ = set->multiplexable(), gapped_ = set->gapped(), kinds_ = set->kinds();
  return set;
}

// Otherwise no sum of both is right: user space only, because the process has dropped its privileges; times of its own
// on one of them; records of switches, which may have gaps; getrusage's clock, which lacks stolen time.
bool EventPlan::IsLikeFirst(const Source& source, size_t i) const {
  return source.KindOf(i) == kinds_[i] && (source.gapped() >> i & 1) == (gapped_ >> i & 1);
}

std::string EventPlan::Restriction(size_t i) const {
  std::string text;
  const auto add = [&text](bool holds, std::string_view what) {
    if (holds) absl::StrAppendFormat(&text, "%s%s", text.empty() ? "" : ", ", what);
  };
  add(is_of_machine(i), "of the machine, once for each thread");
  add(fixed_flags_[i].has(Validity::kUserOnly), "user space only");
  add(fixed_flags_[i].has(Validity::kSomeCpus), "on some CPUs");
  return text;
}

bool EventPlan::counts_kernel(size_t i) const {
  return fixed_flags_[i].counted() && !fixed_flags_[i].has(Validity::kUserOnly) && CanBeUserOnly(event(i)) &&
         !event(i).privilege_given;
}

// Returns true if migrations are not counted, although the first thread counts them. This thread may have fewer rights.
bool EventPlan::LacksMigrations(const Source& source) const {
  for (size_t i = 0; i < size() && migrations_by_records_; ++i) {
    const bool counted = source.slots()[i].fixed_flags.counted();
    if (IsSoftware(event(i), sys::kSwCpuMigrations) && fixed_flags_[i].counted() && !counted) return true;
  }
  return false;
}

void EventPlan::SetLaterReason(size_t i, const absl::Status& status) const {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(later_mutex_);
  if (later_reasons_[i].empty()) later_reasons_[i] = std::string(status.message());
}

std::string EventPlan::later_reason(size_t i) const {
  const std::lock_guard<std::mutex> lock(later_mutex_);
  return later_reasons_[i];
}

// How migrations are counted depends on the rights of the thread. It is assumed to have those of the first one, because
// reading them takes a fifth of the time of a thread's first zone.
std::optional<CounterSet> EventPlan::OpenNext() const {
  absl::StatusOr<std::unique_ptr<Source>> source = Open(test_each_, migrations_by_records_);
  if (source.ok() && LacksMigrations(**source)) {
    source->reset();  // Closes everything before it is opened again.
    source = Open(test_each_, std::nullopt);
  }
  for (size_t i = 0; i < size(); ++i) {
    if (!fixed_flags_[i].counted()) continue;
    if (!source.ok() || !(*source)->slots()[i].fixed_flags.counted()) {
      // An event that only this thread lacks is missing in its snapshots.
      SetLaterReason(i, source.ok() ? (*source)->ReasonOf(i) : source.status());
      continue;
    }
    const Source::Slot& slot = (*source)->slots()[i];
    if (slot.path != paths_[i]) has_other_paths_.store(true, std::memory_order_relaxed);
    if (IsLikeFirst(**source, i)) continue;
    const absl::Status differs = absl::UnavailableError(
        "they have other rights, descriptors or locked memory than the first one had, and would count something else");
    SetLaterReason(i, differs);
    (*source)->Exclude(i, differs);
  }
  if (!source.ok()) return std::nullopt;
  return CounterSet(*std::move(source));
}

}  // namespace perfkit::count
