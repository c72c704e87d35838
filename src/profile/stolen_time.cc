// Adds up the points of the counter that lie in the frame, each with the point before it.
#include "src/profile/stolen_time.h"

namespace perfkit::profile {

uint64_t StolenIn(const Profile& profile, const ProfileZone& frame) {
  double ns = 0;
  for (const ProfileCounter& counter : profile.counters) {
    const bool is_stolen = counter.unit == ProfileUnit::kNanoseconds && counter.thread == frame.thread &&
                           profile.strings[counter.name] == kStolenCounter;
    for (size_t i = 1; is_stolen && i < counter.points.size(); ++i) {
      const bool is_in = counter.points[i - 1].time_ns >= frame.from_ns && counter.points[i].time_ns <= frame.to_ns;
      if (is_in && counter.points[i].value > 0) ns += counter.points[i].value;
    }
  }
  const auto length_ns = static_cast<double>(frame.to_ns - frame.from_ns);
  return static_cast<uint64_t>(ns < length_ns ? ns : length_ns);
}

}  // namespace perfkit::profile
