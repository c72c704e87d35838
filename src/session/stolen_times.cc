// Two readings are compared once the records up to the second one are known: the thread was seen on a CPU, or back on
// it, later than that. Only what exceeds the inaccuracy of the readings counts.
#include "src/session/stolen_times.h"

#include <algorithm>
#include <utility>

#include "src/profile/stolen_time.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

// Records of switches differ from the CPU clock by some 2 us for each switch.
constexpr uint64_t kMinStolenNs = 300'000;
// A reading that took longer was interrupted itself.
constexpr uint64_t kMaxReadNs = 50'000;

}  // namespace

void StolenTimes::Read(uint32_t thread, uint32_t tid) {
  const uint64_t before_ns = sys::ClockNs(CLOCK_MONOTONIC);
  const uint64_t cpu_ns = sys::ClockNs(sys::ThreadCpuClock(static_cast<pid_t>(tid)));
  const uint64_t after_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (cpu_ns != 0 && after_ns - before_ns <= kMaxReadNs) {
    AddReading(thread, before_ns + (after_ns - before_ns) / 2, cpu_ns);
  }
}

void StolenTimes::AddReading(uint32_t thread, uint64_t at_ns, uint64_t cpu_ns) {
  Thread& state = threads_[thread];
  state.readings.push_back({at_ns, cpu_ns});
  if (state.readings.size() > kMaxReadings) state.readings.pop_front();
}

void StolenTimes::AddOff(uint32_t thread, uint64_t from_ns, uint64_t to_ns) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  found->second.off.emplace_back(from_ns, to_ns);
  Ran(thread, to_ns);
}

void StolenTimes::Ran(uint32_t thread, uint64_t at_ns) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  Thread& state = found->second;
  while (state.readings.size() >= 2 && state.readings[1].at_ns <= at_ns) {
    Compare(thread, state);
    state.readings.pop_front();
  }
  const uint64_t known_ns = state.readings.empty() ? 0 : state.readings.front().at_ns;
  while (!state.off.empty() && state.off.front().second <= known_ns) state.off.pop_front();
}

// Compares the first two readings.
void StolenTimes::Compare(uint32_t thread, Thread& state) {
  const Reading &first = state.readings[0], &second = state.readings[1];
  uint64_t on_ns = second.at_ns - std::min(first.at_ns, second.at_ns);
  for (const auto& [from_ns, to_ns] : state.off) {
    const uint64_t begin_ns = std::max(from_ns, first.at_ns), end_ns = std::min(to_ns, second.at_ns);
    if (begin_ns < end_ns) on_ns -= std::min(on_ns, end_ns - begin_ns);
  }
  const uint64_t cpu_ns = second.cpu_ns - std::min(first.cpu_ns, second.cpu_ns);
  if (on_ns < cpu_ns + kMinStolenNs) return;
  stolen_.push_back({thread, first.at_ns, second.at_ns, on_ns - cpu_ns});
  is_check_due_ = true;
  if (stolen_.size() > kMaxStolen) stolen_.pop_front();
}

void StolenTimes::Restart() { threads_.clear(); }

void StolenTimes::Check(uint64_t losses) {
  if (losses != std::exchange(losses_, losses)) {
    std::erase_if(stolen_, [](const Stolen& one) { return !one.is_checked; });
    Restart();
  }
  for (Stolen& one : stolen_) one.is_checked = true;
  is_check_due_ = false;
}

void StolenTimes::Retire(std::span<const uint32_t> renamed) {
  const auto is_retired = [&](uint32_t thread) { return thread < renamed.size() && renamed[thread] != thread; };
  std::erase_if(threads_, [&](const auto& entry) { return is_retired(entry.first); });
  std::erase_if(stolen_, [&](const Stolen& one) { return is_retired(one.thread); });
}

void StolenTimes::AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const {
  std::map<uint32_t, ProfileCounter> counters;  // by thread
  for (const Stolen& one : stolen_) {
    const bool is_asked = one.from_ns >= from_ns && one.to_ns <= to_ns && one.thread < profile.threads.size() &&
                          times.Overlaps(one.thread, one.from_ns, one.to_ns);
    if (!is_asked) continue;
    std::vector<ProfileCounter::Point>& points = counters[one.thread].points;
    if (points.empty() || points.back().time_ns < one.from_ns) points.push_back({one.from_ns, 0});
    points.push_back({one.to_ns, static_cast<double>(one.ns)});
  }
  if (counters.empty()) return;
  profile.strings.emplace_back(profile::kStolenCounter);
  for (auto& [thread, counter] : counters) {
    counter.name = static_cast<uint32_t>(profile.strings.size() - 1);
    counter.unit = ProfileUnit::kNanoseconds;
    counter.thread = thread;
    profile.counters.push_back(std::move(counter));
  }
}

}  // namespace perfkit::session
