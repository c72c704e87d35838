// One pass over the samples: those of the clock say where threads ran, those of off-CPU time when they did not. A
// thread that waits is put on a CPU some microseconds after it was woken, so its waker ran just before the wait ended.
#include "src/profile/thread_activity.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/profile/frame_counts.h"

namespace perfkit::profile {
namespace {

constexpr uint64_t kWakeUpNs = 200'000;  // from the waker's call to the end of the wait, on an idle CPU
constexpr uint64_t kStopNs = 500'000;    // from the end of the wait to that of the waker's work, which was to wake it

struct Open {
  ThreadActivity activity;
  uint64_t off_since_ns = 0;  // of a time off the CPU that lasts until to_ns
  uint64_t longest_ns = 0;
  uint32_t blocked_stack = ProfileStack::kRoot;
  StackQuality blocked_quality = StackQuality::kNone;
  std::map<uint32_t, uint32_t> stacks;  // samples by stack
};

bool IsAbout(uint64_t time_ns, uint64_t end_ns) { return time_ns + kWakeUpNs >= end_ns && time_ns <= end_ns + kStopNs; }

// Until when a blocked thread surely was not runnable.
uint64_t ShownUntil(const ProfileWait& wait, uint64_t end_ns) { return wait.waker != 0 ? end_ns : wait.examined_ns; }

void AddOffCpu(const Profile& profile, const ProfileSample& sample, uint64_t from_ns, uint64_t to_ns, Open& thread) {
  const uint64_t end_ns = sample.time_ns + std::min(sample.weight, UINT64_MAX - sample.time_ns);
  const ProfileWait wait = sample.wait != ProfileSample::kNoWait ? profile.waits[sample.wait] : ProfileWait{};
  const bool preempted = wait.preempted;
  if (!preempted && IsAbout(sample.time_ns, to_ns)) thread.activity.stopped = true;
  const uint64_t begin_ns = std::max(sample.time_ns, from_ns), limit_ns = std::min(end_ns, to_ns);
  if (limit_ns <= begin_ns) return;
  (preempted ? thread.activity.preempted_ns : thread.activity.blocked_ns) += limit_ns - begin_ns;
  const uint64_t shown_ns = std::min(ShownUntil(wait, end_ns), limit_ns);
  if (!preempted) thread.activity.shown_ns += shown_ns - std::min(shown_ns, begin_ns);
  // It ran right before, and right after.
  if (sample.time_ns > from_ns) thread.activity.last_run_ns = std::max(thread.activity.last_run_ns, sample.time_ns);
  if (end_ns < to_ns) thread.activity.last_run_ns = std::max(thread.activity.last_run_ns, end_ns);
  if (end_ns >= to_ns) thread.off_since_ns = sample.time_ns;
  if (preempted || limit_ns - begin_ns <= thread.longest_ns) return;
  thread.longest_ns = limit_ns - begin_ns;
  thread.blocked_stack = sample.stack;
  thread.blocked_quality = sample.quality;
}

void AddOnCpu(const ProfileSample& sample, Open& thread) {
  ThreadActivity& activity = thread.activity;
  activity.sampled_ns += sample.weight;
  activity.shown_ns += sample.weight;
  activity.last_run_ns = std::max(activity.last_run_ns, sample.time_ns);
  const uint32_t count = thread.stacks[sample.stack] += sample.samples;
  if (activity.stack != ProfileStack::kRoot && count <= thread.stacks[activity.stack]) return;
  activity.stack = sample.stack;
  activity.quality = sample.quality;
}

ThreadActivity Closed(const Open& thread, uint64_t to_ns) {
  ThreadActivity activity = thread.activity;
  // Back on a CPU before the end, or sampled, and nothing says that it left.
  if (activity.last_run_ns != 0 && thread.off_since_ns == 0) activity.last_run_ns = to_ns;
  const bool blocked = activity.blocked_ns > activity.sampled_ns || activity.stack == ProfileStack::kRoot;
  if (blocked && thread.blocked_stack != ProfileStack::kRoot) {
    activity.stack = thread.blocked_stack;
    activity.quality = thread.blocked_quality;
  }
  return activity;
}

}  // namespace

std::map<uint32_t, ThreadActivity> ActivityBeside(const Profile& profile, uint32_t thread, uint64_t from_ns,
                                                  uint64_t to_ns) {
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  const size_t clock = ClockOf(profile, {.from_ns = from_ns, .to_ns = to_ns, .thread = thread});
  std::map<uint32_t, Open> open;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.time_ns >= to_ns + kStopNs) break;
    const bool is_other = sample.thread != thread && profile.threads[sample.thread].pid == profile.threads[thread].pid;
    if (!is_other || sample.merged()) continue;
    if (sample.event == off_cpu) {
      AddOffCpu(profile, sample, from_ns, to_ns, open[sample.thread]);
    } else if (sample.event == clock && sample.time_ns >= from_ns && sample.time_ns < to_ns) {
      AddOnCpu(sample, open[sample.thread]);
    }
  }
  std::map<uint32_t, ThreadActivity> activity;
  for (const auto& [index, one] : open) {
    if (one.activity.blocked_ns + one.activity.runnable_ns() + one.activity.last_run_ns == 0) continue;
    if (IsOfSession(profile.strings[profile.threads[index].name])) continue;
    activity[index] = Closed(one, to_ns);
    if (IsAbout(profile.threads[index].last_ns, to_ns)) activity[index].stopped = true;
  }
  return activity;
}

std::optional<uint32_t> LikelyWaker(const Profile& profile, const std::map<uint32_t, ThreadActivity>& activity,
                                    uint64_t from_ns, uint64_t to_ns) {
  std::optional<uint32_t> waker;
  std::tuple<bool, bool, uint64_t, uint64_t> best{};
  for (const auto& [thread, one] : activity) {
    const bool ran_at_end = one.last_run_ns != 0 && one.last_run_ns + kWakeUpNs >= to_ns;
    const bool could_run = one.runnable_ns() >= (to_ns - from_ns) / 2;
    if (profile.threads[thread].is_sum() || (!ran_at_end && !could_run)) continue;
    const std::tuple rank(ran_at_end, one.stopped, one.runnable_ns(), one.last_run_ns);
    if (waker && rank <= best) continue;
    waker = thread;
    best = rank;
  }
  return waker;
}

std::string ZoneAt(const Profile& profile, uint32_t thread, uint64_t time_ns) {
  const ProfileZone* innermost = nullptr;
  for (const ProfileZone& zone : profile.zones) {
    const bool is_open = zone.from_ns <= time_ns && time_ns < zone.to_ns;
    if (zone.thread != thread || zone.is_frame || !is_open) continue;
    if (innermost == nullptr || zone.to_ns - zone.from_ns < innermost->to_ns - innermost->from_ns) innermost = &zone;
  }
  return innermost != nullptr ? profile.strings[innermost->name] : "";
}

}  // namespace perfkit::profile
