// Removes threads from a profile with all that refers to them, and renumbers the threads in the rest. All counters of a
// session belong to threads.
#include "src/session/drop_threads.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace perfkit::session {

namespace {

constexpr uint32_t kDropped = UINT32_MAX;
static_assert(kDropped == ProfileWait::kNoHolder);

// Drops what the threads did. Returns how many samples that was.
uint64_t DropActivity(Profile& profile, const std::vector<bool>& is_dropped) {
  uint64_t dropped = 0;
  for (const ProfileSample& sample : profile.samples) dropped += is_dropped[sample.thread] ? sample.samples : 0;
  std::erase_if(profile.samples, [&](const ProfileSample& sample) { return is_dropped[sample.thread]; });
  std::erase_if(profile.zones, [&](const ProfileZone& zone) { return is_dropped[zone.thread]; });
  std::erase_if(profile.task_parts, [&](const ProfileTaskPart& part) { return is_dropped[part.thread]; });
  std::erase_if(profile.counters, [&](const ProfileCounter& counter) { return is_dropped[counter.thread]; });
  return dropped;
}

// Returns which threads hold locks that others wait for.
std::vector<bool> Holders(const Profile& profile) {
  std::vector<bool> is_holder(profile.threads.size());
  for (const ProfileSample& sample : profile.samples) {
    if (sample.wait == ProfileSample::kNoWait) continue;
    const uint32_t holder = profile.waits[sample.wait].holder;
    if (holder != ProfileWait::kNoHolder) is_holder[holder] = true;
  }
  return is_holder;
}

}  // namespace

uint64_t DropThreads(Profile& profile, const std::vector<bool>& is_dropped) {
  const uint64_t dropped = DropActivity(profile, is_dropped);
  const std::vector<bool> is_holder = Holders(profile);
  std::vector<uint32_t> renamed;
  std::vector<ProfileThread> threads;
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    const bool stays = !is_dropped[i] || is_holder[i];
    renamed.push_back(stays ? static_cast<uint32_t>(threads.size()) : kDropped);
    if (stays) threads.push_back(profile.threads[i]);
  }
  for (ProfileSample& sample : profile.samples) sample.thread = renamed[sample.thread];
  for (ProfileZone& zone : profile.zones) zone.thread = renamed[zone.thread];
  for (ProfileTaskPart& part : profile.task_parts) part.thread = renamed[part.thread];
  for (ProfileCounter& counter : profile.counters) counter.thread = renamed[counter.thread];
  for (ProfileWait& wait : profile.waits) {
    if (wait.holder != ProfileWait::kNoHolder) wait.holder = renamed[wait.holder];
  }
  profile.threads = std::move(threads);
  return dropped;
}

void KeepThreads(Profile& profile, const KeptThreads& kept) {
  std::vector<bool> is_dropped(profile.threads.size()), is_listed(profile.threads.size(), kept.listed.empty());
  uint64_t others = 0;
  for (const uint32_t thread : kept.listed) is_listed[thread] = true;
  for (const uint32_t thread : kept.unused) is_dropped[thread] = true;
  for (size_t i = 0; i < is_dropped.size(); ++i) {
    const bool has_name =
        kept.name.empty() || fnmatch(kept.name.c_str(), profile.strings[profile.threads[i].name].c_str(), 0) == 0;
    if (is_dropped[i] || (is_listed[i] && has_name)) continue;
    is_dropped[i] = true;
    others += std::max<uint64_t>(profile.threads[i].ended, 1);  // a sum has several
  }
  const uint64_t dropped = DropThreads(profile, is_dropped);
  if (kept.name.empty() && kept.listed.empty()) return;
  const std::string listed =
      kept.listed.empty() ? "" : absl::StrFormat(" of the %d in SessionOptions::threads", kept.listed.size());
  const std::string named = kept.name.empty() ? "" : absl::StrFormat(" named \"%s\"", kept.name);
  profile.accounting.notes.push_back(absl::StrFormat(
      "only threads%s%s: %d samples of %d other threads are in the accounting, and not in the profile", listed, named,
      dropped, others));
}

}  // namespace perfkit::session
