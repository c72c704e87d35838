// Takes threads out of a profile: what points to them goes, and what stays gets the new indexes of its threads. The
// counters of a session all belong to threads.
#include "src/session/drop_threads.h"

#include <fnmatch.h>

#include <utility>

#include "absl/strings/str_format.h"

namespace perfkit::session {

uint64_t DropThreads(Profile& profile, const std::vector<bool>& is_dropped) {
  constexpr uint32_t kDropped = UINT32_MAX;
  std::vector<uint32_t> renamed;
  std::vector<ProfileThread> threads;
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    renamed.push_back(is_dropped[i] ? kDropped : static_cast<uint32_t>(threads.size()));
    if (!is_dropped[i]) threads.push_back(profile.threads[i]);
  }
  uint64_t dropped = 0;
  for (ProfileSample& sample : profile.samples) {
    sample.thread = renamed[sample.thread];
    dropped += sample.thread == kDropped ? sample.samples : 0;
  }
  std::erase_if(profile.samples, [](const ProfileSample& sample) { return sample.thread == kDropped; });
  for (ProfileZone& zone : profile.zones) zone.thread = renamed[zone.thread];
  std::erase_if(profile.zones, [](const ProfileZone& zone) { return zone.thread == kDropped; });
  for (ProfileCounter& counter : profile.counters) counter.thread = renamed[counter.thread];
  std::erase_if(profile.counters, [](const ProfileCounter& counter) { return counter.thread == kDropped; });
  profile.threads = std::move(threads);
  return dropped;
}

void KeepThreads(Profile& profile, const std::string& pattern) {
  std::vector<bool> is_dropped;
  for (const ProfileThread& thread : profile.threads) {
    is_dropped.push_back(fnmatch(pattern.c_str(), profile.strings[thread.name].c_str(), 0) != 0);
  }
  const size_t threads = profile.threads.size();
  const uint64_t dropped = DropThreads(profile, is_dropped);
  profile.accounting.notes.push_back(absl::StrFormat(
      "only threads named \"%s\": %d samples of %d other threads are in the accounting, and not in the profile",
      pattern, dropped, threads - profile.threads.size()));
}

}  // namespace perfkit::session
