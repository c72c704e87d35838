// Turns sums of scopes into counts with their validity. Sums are plain numbers, so that the end of a scope is a few
// additions; what limits them is kept as flags beside them, and a flag of one scope is a flag of the sum.
#include "perfkit/scope.h"

namespace perfkit {

void ScopeTotals::Merge(const ScopeTotals& other) noexcept {
  for (size_t i = 0; i < kMaxEvents; ++i) {
    values_[i] += other.values_[i];
    times_[i].enabled_ns += other.times_[i].enabled_ns;
    times_[i].running_ns += other.times_[i].running_ns;
  }
  shared_ = shared_ | other.shared_;
  missing_ |= other.missing_;
  fallback_ |= other.fallback_;
  AddKinds(other.kinds_);
  scopes_ += other.scopes_;
  cross_thread_ += other.cross_thread_;
}

Count ScopeTotals::count(const CounterReader& reader, size_t i) const noexcept {
  constexpr Validity kNone{Validity::kNotCounted};
  const Validity fixed_flags = reader.fixed_flags(i);
  if (!fixed_flags.counted() || i >= kMaxEvents || (missing_ >> i & 1) != 0) return {.validity = kNone};
  if (kinds_[i].mixed()) return {.validity = kNone};
  // Only cross-thread scopes: there is no number, but not because the event can't be counted.
  if (scopes_ == 0) return {.validity = cross_thread_ > 0 ? Validity{Validity::kOtherThread} : kNone};
  Validity validity = fixed_flags | shared_;
  if ((fallback_ >> i & 1) != 0) validity.flags |= Validity::kFallback;
  if (kinds_[i].has(CountKind::kUserOnly)) validity.flags |= Validity::kUserOnly;
  if (kinds_[i].has(CountKind::kSomeCpus)) validity.flags |= Validity::kSomeCpus;
  return MakeCount(values_[i], times_[i], validity);
}

}  // namespace perfkit
