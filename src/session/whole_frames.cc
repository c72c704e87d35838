// The oldest samples are merged first, and the oldest zones are forgotten first. So each thread has a time from which
// its frames are whole.
#include "src/session/whole_frames.h"

#include <algorithm>
#include <vector>

namespace perfkit::session {
namespace {

// Returns for each thread the time from which all of its zones and waits are known. Profile::samples begins with the
// merged ones, which have no times. A thread's waits are merged in their order, so all are known from its first wait
// with a time on. Samples of other threads say nothing: a wait has the time of its begin, and may begin before those
// that were merged and end after them.
std::vector<uint64_t> KnownFrom(const Profile& profile, std::span<const uint64_t> zones_known_ns) {
  std::vector<uint64_t> known_ns(profile.threads.size());
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != off_cpu) continue;
    uint64_t& known = known_ns[sample.thread];
    if (sample.merged()) {
      known = UINT64_MAX;
    } else if (known == UINT64_MAX) {
      known = sample.time_ns;
    }
  }
  for (size_t i = 0; i < known_ns.size(); ++i) known_ns[i] = std::max(known_ns[i], zones_known_ns[i]);
  return known_ns;
}

}  // namespace

void MarkWholeFrames(Profile& profile, std::span<const uint64_t> zones_known_ns) {
  const std::vector<uint64_t> known_ns = KnownFrom(profile, zones_known_ns);
  for (ProfileZone& zone : profile.zones) {
    if (zone.is_frame && zone.from_ns < known_ns[zone.thread]) zone.is_whole = false;
  }
}

}  // namespace perfkit::session
