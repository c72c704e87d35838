// What two snapshots say: the pure half of counting.
#include "perfkit/count.h"
#include "src/base/scale.h"

namespace perfkit {

std::string_view ReadPathName(ReadPath path) {
  switch (path) {
    case ReadPath::kUserPage: return "user page";
    case ReadPath::kRing: return "ring";
    case ReadPath::kThreadClock: return "thread clock";
    case ReadPath::kGroupRead: return "group read";
    case ReadPath::kUsage: return "getrusage";
  }
  return "unknown";
}

std::optional<uint64_t> Count::scaled() const {
  if (!validity.counted()) return std::nullopt;
  return base::Scale(value, time_enabled_ns, time_running_ns);
}

Count MakeCount(uint64_t value, Snapshot::Times times, Validity validity) {
  if (validity.has(Validity::kNotCounted)) return {.validity = {Validity::kNotCounted}};
  if (validity.has(Validity::kOtherThread)) return {.validity = {Validity::kOtherThread}};
  // Asked for, and never on a counter: there was nothing to see, which is not the same as seeing nothing.
  if (times.enabled_ns > 0 && times.running_ns == 0) return {.validity = {Validity::kNotCounted}};
  if (times.running_ns < times.enabled_ns) validity.flags |= Validity::kMultiplexed;
  return {value, times.enabled_ns, times.running_ns, validity};
}

Count CounterReader::Difference(const Snapshot& begin, const Snapshot& end, size_t i) const noexcept {
  const bool missing = i >= size_ || ((begin.missing | end.missing) >> i & 1) != 0;
  Validity validity = standing(i) | SharedValidity(begin, end);
  if (((begin.fallback | end.fallback) >> i & 1) != 0) validity.flags |= Validity::kFallback;
  // Told apart from "not counted": the events are there, the region was not one thread's.
  if (missing && !validity.has(Validity::kOtherThread)) return {};
  if (validity.has(Validity::kOtherThread)) return MakeCount(0, {}, validity);
  Snapshot::Times times{};
  if ((timed_ >> i & 1) != 0) {
    times = {end.times[i].enabled_ns - begin.times[i].enabled_ns, end.times[i].running_ns - begin.times[i].running_ns};
  }
  return MakeCount(end.values[i] - begin.values[i], times, validity);
}

}  // namespace perfkit
