// The intervals are sorted and disjoint, so only the last one that begins before the end of a time has to be checked.
#include "src/session/kept_times.h"

#include <algorithm>

namespace perfkit::session {

void KeptTimes::Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread) {
  if (from_ns >= to_ns) return;
  (thread == kAllThreads ? of_all_ : of_thread_[thread]).emplace_back(from_ns, to_ns);
}

void KeptTimes::Join() {
  Join(of_all_);
  for (auto& [thread, times] : of_thread_) {
    times.insert(times.end(), of_all_.begin(), of_all_.end());
    Join(times);
  }
}

void KeptTimes::Join(Times& times) {
  std::sort(times.begin(), times.end());
  Times joined;
  for (const auto& [from_ns, to_ns] : times) {
    if (joined.empty() || joined.back().second < from_ns) {
      joined.emplace_back(from_ns, to_ns);
    } else {
      joined.back().second = std::max(joined.back().second, to_ns);
    }
  }
  times.swap(joined);
}

const KeptTimes::Times& KeptTimes::Of(uint32_t thread) const {
  const auto found = of_thread_.find(thread);
  return found != of_thread_.end() ? found->second : of_all_;
}

bool KeptTimes::Overlaps(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const {
  const Times& times = Of(thread);
  const auto next = std::partition_point(times.begin(), times.end(),
                                         [&](const auto& time) { return time.first < to_ns || time.first <= from_ns; });
  return next != times.begin() && std::prev(next)->second > from_ns;
}

bool KeptTimes::Covers(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const {
  const Times& times = Of(thread);
  const auto next =
      std::partition_point(times.begin(), times.end(), [&](const auto& time) { return time.first <= from_ns; });
  return next != times.begin() && std::prev(next)->second >= to_ns;
}

}  // namespace perfkit::session
