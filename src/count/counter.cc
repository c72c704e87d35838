// CounterSet and Counter: the public interface of a Source. A set keeps copies of what the inline half of CounterReader
// needs, so that reading does not follow a pointer to the Source for it.
#include "perfkit/counter.h"

#include <utility>

#include "src/count/build_source.h"
#include "src/count/source.h"
#include "src/sys/perf_abi.h"

namespace perfkit {

CounterSet::CounterSet(std::unique_ptr<count::Source> source) : owned_(std::move(source)) {
  plan_ = &owned_->plan();
  source_ = owned_.get();
  size_ = owned_->slots().size();
  multiplexable_ = owned_->multiplexable();
  gapped_ = owned_->gapped();
  for (size_t i = 0; i < size_; ++i) {
    fixed_flags_[i] = owned_->slots()[i].fixed_flags;
    kinds_[i] = owned_->KindOf(i);
  }
}

// The CounterReader part of a moved-from set must not point to the Source that another set owns now.
CounterSet::CounterSet(CounterSet&& other) noexcept
    : CounterReader(std::exchange(static_cast<CounterReader&>(other), CounterReader())),
      owned_(std::move(other.owned_)) {}

CounterSet& CounterSet::operator=(CounterSet&& other) noexcept {
  CounterSet taken(std::move(other));  // Also correct for self-assignment.
  std::swap(static_cast<CounterReader&>(*this), static_cast<CounterReader&>(taken));
  owned_.swap(taken.owned_);
  return *this;
}

CounterSet::~CounterSet() = default;

absl::StatusOr<CounterSet> CounterSet::Open(std::initializer_list<EventSpec> events, Target target,
                                            const CounterOptions& options) {
  return Open(std::span<const EventSpec>(events.begin(), events.size()), target, options);
}

absl::StatusOr<CounterSet> CounterSet::Open(std::span<const EventSpec> events, Target target,
                                            const CounterOptions& options) {
  std::vector<std::vector<EventConfig>> groups;
  std::vector<std::pair<size_t, absl::Status>> refused;
  for (const EventSpec& spec : events) {
    absl::StatusOr<EventConfig> event = ResolveEvent(spec);
    // A name that this user may not look up is not wrong: it is an event that can't be counted.
    const bool may_stay = !options.require_all && absl::IsPermissionDenied(event.status());
    if (!event.ok() && !may_stay) return event.status();
    if (!event.ok()) refused.emplace_back(groups.size(), event.status());
    groups.push_back({event.ok() ? *std::move(event) : count::Placeholder(spec.text)});
  }
  absl::StatusOr<std::unique_ptr<count::Source>> source = count::BuildSource(groups, target, options);
  if (!source.ok()) return source.status();
  for (auto& [i, reason] : refused) (*source)->SetReason(i, std::move(reason));
  return CounterSet(*std::move(source));
}

absl::StatusOr<CounterSet> CounterSet::Open(std::span<const std::vector<EventConfig>> groups, Target target,
                                            const CounterOptions& options) {
  absl::StatusOr<std::unique_ptr<count::Source>> source = count::BuildSource(groups, target, options);
  if (!source.ok()) return source.status();
  return CounterSet(*std::move(source));
}

std::string_view CounterSet::name(size_t i) const { return event(i).name; }
const EventConfig& CounterSet::event(size_t i) const { return owned_->slots()[i].event; }
ReadPath CounterSet::path(size_t i) const { return owned_->slots()[i].path; }
absl::Status CounterSet::reason(size_t i) const { return owned_->ReasonOf(i); }

absl::Status CounterSet::Switch(unsigned long ioctl_request) {
  if (owned_ == nullptr) return absl::FailedPreconditionError("this set was moved from: it has no events");
  return owned_->SwitchGroups(ioctl_request);
}

absl::Status CounterSet::Enable() { return Switch(sys::kIocEnable); }
absl::Status CounterSet::Disable() { return Switch(sys::kIocDisable); }

// Events run from the moment they are open. A Counter's number is the difference to this first reading: nothing is
// reset.
Counter::Counter(CounterSet set) : set_(std::move(set)) { set_.Read(opened_); }

absl::StatusOr<Counter> Counter::Open(const EventSpec& event, Target target, const CounterOptions& options) {
  absl::StatusOr<CounterSet> set = CounterSet::Open(std::span(&event, 1), target, options);
  if (!set.ok()) return set.status();
  return Counter(*std::move(set));
}

bool Counter::Read(Count& out) const noexcept {
  Snapshot now;
  set_.Read(now);
  out = set_.Difference(opened_, now, 0);
  return out.validity.counted();
}

}  // namespace perfkit
