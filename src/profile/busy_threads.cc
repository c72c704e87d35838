// One pass over the samples of the frame's time.
#include "src/profile/busy_threads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/profile/frame_counts.h"
#include "src/profile/thread_activity.h"

namespace perfkit::profile {

std::vector<FrameThread> BusyBeside(const Profile& profile, const ProfileZone& frame) {
  const size_t clock = ClockOf(profile, frame);
  if (clock >= profile.events.size() || profile.events[clock].unit != ProfileUnit::kNanoseconds) return {};
  std::map<uint32_t, FrameThread> threads;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> stacks;  // by thread and stack
  for (const ProfileSample& sample : SamplesIn(profile, frame)) {
    const ProfileThread& thread = profile.threads[sample.thread];
    const bool is_other = sample.thread != frame.thread && thread.pid == profile.threads[frame.thread].pid;
    if (!is_other || sample.event != clock || IsOfSession(profile.strings[thread.name])) continue;
    FrameThread& busy = threads.try_emplace(sample.thread, FrameThread{.thread = sample.thread}).first->second;
    busy.ns += sample.weight;
    const uint64_t stack_ns = stacks[{sample.thread, sample.stack}] += sample.weight;
    if (stack_ns <= busy.stack_ns) continue;
    busy.stack_ns = stack_ns;
    busy.stack = sample.stack;
    busy.quality = sample.quality;
  }
  std::vector<FrameThread> busy;
  for (const auto& [thread, one] : threads) {
    if (one.ns >= (frame.to_ns - frame.from_ns) / 10) busy.push_back(one);
  }
  std::ranges::stable_sort(busy, [](const FrameThread& a, const FrameThread& b) { return a.ns > b.ns; });
  return busy;
}

}  // namespace perfkit::profile
