// The functions of count.h with PERFKIT_ENABLE=0. Included by count.h; do not include it directly.
#pragma once

#include "perfkit/count.h"

namespace PERFKIT_NAMESPACE {

inline std::string_view ReadPathName(ReadPath) { return "none"; }

// No count is multiplexed, except a Count whose times the program has set: that has no estimate.
inline std::optional<uint64_t> Count::scaled() const { return coverage() < 1 ? std::nullopt : std::optional(value); }

class CounterReader {
 public:
  void Read(Snapshot& now) const noexcept {
    now.ticks = 0;
    now.epoch = 0;
    now.cpu = Snapshot::kNoCpu;
    now.missing = ~0u;
    now.fallback = 0;
    now.other_thread = false;
  }
  size_t size() const noexcept { return 0; }
  Count Difference(const Snapshot&, const Snapshot&, size_t) const noexcept { return {}; }
  static Validity SharedValidity(const Snapshot&, const Snapshot&) noexcept { return {Validity::kNotCounted}; }
  uint32_t MissingBetween(const Snapshot&, const Snapshot&) const noexcept { return ~0u; }
  uint32_t gapped() const noexcept { return 0; }
  uint32_t multiplexable() const noexcept { return 0; }
  std::array<CountKind, kMaxEvents> kinds() const noexcept { return {}; }
  Validity fixed_flags(size_t) const noexcept { return {Validity::kNotCounted}; }
};

}  // namespace PERFKIT_NAMESPACE
