// What a picture of a frame can't show must be said beside it: an empty place looks like "nothing happened".
#include "src/exporters/frame_gaps.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace perfkit::exporters {
namespace {

bool HasWakers(const Profile& profile) {
  return profile.EventIndex("sched:sched_waking") != profile.events.size() ||
         std::any_of(profile.waits.begin(), profile.waits.end(),
                     [](const ProfileWait& wait) { return wait.waker != 0; });
}

void AddRecordingGaps(const Profile& profile, std::vector<std::string>& gaps) {
  if (profile.EventIndex(kOffCpuEvent) == profile.events.size()) {
    gaps.push_back("time off the CPU was not recorded: \"ran\" includes it (SessionClock::kWall)");
  } else if (!HasWakers(profile)) {
    gaps.push_back("who woke the threads is not known (SessionOptions::wakers, and the right to use tracepoints)");
  }
  const auto is_user_only = [](const ProfileEvent& event) { return event.user_only; };
  if (std::any_of(profile.events.begin(), profile.events.end(), is_user_only)) {
    gaps.push_back("no stacks of the kernel: this user may not observe it");
  }
}

// A profile that is handed over while its session runs has no accounting.
void AddLosses(const Profile& profile, std::vector<std::string>& gaps) {
  const auto has_accounting = [](const ProfileEvent& event) {
    return event.accounting.counted != 0 || event.accounting.accounted() != 0;
  };
  if (std::none_of(profile.events.begin(), profile.events.end(), has_accounting)) {
    gaps.push_back("what was lost is not known here: the accounting comes with the session's whole profile");
  }
  for (const ProfileEvent& event : profile.events) {
    const auto& kernel = event.accounting;
    if (kernel.lost != 0)
      gaps.push_back(absl::StrFormat("%s: %d samples lost in the whole run", event.name, kernel.lost));
    if (kernel.paused != 0) gaps.push_back(event.name + ": the session was paused, and threads seem to run meanwhile");
  }
  if (profile.accounting.zone_records_lost != 0) {
    gaps.push_back(absl::StrFormat("%d begins and ends of zones lost in the whole run: parts may be wrong there",
                                   profile.accounting.zone_records_lost));
  }
}

}  // namespace

std::vector<std::string> FrameGaps(const profile::FrameCut& cut) {
  std::vector<std::string> gaps;
  if (!cut.profile.zones[cut.frame.zone].is_whole) {
    gaps.push_back("some of its waits, zones or samples are not in the profile");
  }
  AddRecordingGaps(cut.profile, gaps);
  AddLosses(cut.profile, gaps);
  if (cut.silent_threads != 0) {
    gaps.push_back(absl::StrFormat("threads that left no record in this time: %d", cut.silent_threads));
  }
  return gaps;
}

}  // namespace perfkit::exporters
