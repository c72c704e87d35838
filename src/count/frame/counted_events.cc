// The less frequent operations: the times and the missing events of an interval, and operations on whole Sums. Sums and
// differences are modulo 2^64, so a result is right if the true one fits in 64 bits.
#include "src/count/frame/counted_events.h"

namespace perfkit::count {

void Sums::Merge(const Sums& other) {
  calls += other.calls;
  ticks += other.ticks;
  missing |= other.missing;
  at_least |= other.at_least;
  for (size_t i = 0; i < kMaxEvents; ++i) {
    values[i] += other.values[i];
    times[i].enabled_ns += other.times[i].enabled_ns;
    times[i].running_ns += other.times[i].running_ns;
  }
}

void Sums::Subtract(const Sums& other) {
  ticks -= other.ticks;
  missing |= other.missing;
  for (size_t i = 0; i < kMaxEvents; ++i) {
    values[i] -= other.values[i];
    times[i].enabled_ns -= other.times[i].enabled_ns;
    times[i].running_ns -= other.times[i].running_ns;
  }
}

void CountedEvents::AddRest(uint32_t& missing, Snapshot::Times* times, const Snapshot& begin,
                            const Snapshot& end) const {
  for (uint32_t left = multiplexable_; left != 0; left &= left - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(left));
    times[i].enabled_ns += end.times[i].enabled_ns - begin.times[i].enabled_ns;
    times[i].running_ns += end.times[i].running_ns - begin.times[i].running_ns;
  }
  missing |= MissingBetween(begin, end);
}

void CountedEvents::Raise(Sums& sums, const Sums& other) const {
  sums.ticks = std::max(sums.ticks, other.ticks);
  sums.missing |= other.missing;
  for (size_t i = 0; i < events_; ++i) {
    sums.values[i] = std::max(sums.values[i], other.values[i]);
    sums.times[i].enabled_ns = std::max(sums.times[i].enabled_ns, other.times[i].enabled_ns);
    sums.times[i].running_ns = std::max(sums.times[i].running_ns, other.times[i].running_ns);
  }
}

void CountedEvents::Copy(const Snapshot& from, Snapshot& to) const {
  to.ticks = from.ticks;
  to.missing = from.missing;
  for (size_t i = 0; i < value_count_; ++i) to.values[i] = from.values[i];
  for (uint32_t left = multiplexable_; left != 0; left &= left - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(left));
    to.times[i] = from.times[i];
  }
}

}  // namespace perfkit::count
