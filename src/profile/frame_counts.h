// What happened in a frame beside the passing of time: page faults, and whatever else was counted or sampled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// "audio" of "audio 12": FrameCounter numbers its frames.
std::string_view FrameKind(std::string_view name);

// The median of `count` values, of which those that are not in the list are 0. 0 if there are none. Requires that the
// list has at most `count` values, none of them negative.
template <class Value>
Value Median(std::vector<Value> values, size_t count) {
  const size_t middle = count / 2, zeros = count - values.size();
  // The values as if they were sorted with all zeros first: the middle one is a zero, or at middle - zeros of the rest.
  if (count == 0 || middle < zeros) return {};
  const auto at = values.begin() + static_cast<ptrdiff_t>(middle - zeros);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Returns the samples of all threads and events in a frame's time, in order of time, without merged ones.
std::span<const ProfileSample> SamplesIn(const Profile& profile, const ProfileZone& frame);

// Returns the event whose samples say where the threads of the frame's process ran: the first clock, else the first
// event. In a merged profile, which may have several clocks, the one whose samples of the frame's time stand for most.
size_t ClockOf(const Profile& profile, const ProfileZone& frame);

// Returns the mean time between the samples of clock `event` on a thread; of all threads, if it has none; 0 without any.
uint64_t IntervalOf(const Profile& profile, size_t event, uint32_t thread);

// Whether an event that fulfils `is_event` was sampled in the thread's process. Of several processes, whose profiles
// were merged, it was not in those without any such sample.
bool IsSampled(const Profile& profile, uint32_t thread, absl::FunctionRef<bool(uint16_t event)> is_event);

// Whether times off the CPU were recorded of the thread's process.
bool HasOffCpuTimes(const Profile& profile, uint32_t thread);

// The medians of the frames that others are compared with. Each is computed once: there may be many frames to explain.
class UsualCounts {
 public:
  // `compared`: frames of one kind, in Profile::zones. Both must outlive the object.
  UsualCounts(const Profile& profile, std::span<const uint32_t> compared) : profile_(profile), compared_(compared) {}

  // Returns the median of the points of Profile::counters[counter]; 0 if there are none.
  double OfCounter(size_t counter);
  // Returns the median of the weights of an event's samples in a frame, on its thread.
  double OfEvent(size_t event);

 private:
  const Profile& profile_;
  const std::span<const uint32_t> compared_;
  std::map<size_t, double> counters_, events_;
};

// Returns the counts of a frame, sorted by name, without those of times. A value is that of the counter with the name,
// else the sum of the samples on the frame's thread, of an event that was sampled in its process. `frame`: in
// Profile::zones, of the kind of those in `usual`.
std::vector<FrameCount> CountsOf(const Profile& profile, uint32_t frame, UsualCounts& usual);

// Returns the cycles for each ns that the frame's thread was on a CPU; 0 if not both were counted.
double FrequencyOf(const Profile& profile, const ProfileZone& frame);

// The page faults of a frame.
struct FrameFaults {
  double extra = 0;                      // more than usual; 0 if they are not conspicuous, or not counted
  uint32_t stack = ProfileStack::kRoot;  // of most of them
  StackQuality quality = StackQuality::kNone;
};

// Returns the page faults by a frame's counts: page-faults; without these, minor-faults and major-faults.
FrameFaults FaultsOf(const SlowFrame& frame);

}  // namespace perfkit::profile
