// A waker is known by its name and number only: threads are found by these.
#include "src/exporters/arrows.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/profile/wait_text.h"

namespace perfkit::exporters {
namespace {

constexpr uint32_t kSeveral = UINT32_MAX;

// Threads by the name that ProfileWait::waker has.
std::map<std::string, uint32_t> ThreadsByName(const Profile& profile) {
  std::map<std::string, uint32_t> threads;
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    ProfileWait wait;
    wait.holder = i;
    const auto [entry, is_new] = threads.try_emplace(profile::HolderName(profile, wait), i);
    if (!is_new) entry->second = kSeveral;
  }
  return threads;
}

}  // namespace

std::vector<Arrow> FindArrows(const Profile& profile) {
  std::vector<Arrow> arrows;
  const std::map<std::string, uint32_t> threads = ThreadsByName(profile);
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (uint32_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    if (sample.event != off_cpu || sample.merged() || sample.wait == ProfileSample::kNoWait) continue;
    const ProfileWait& wait = profile.waits[sample.wait];
    if (wait.holder != ProfileWait::kNoHolder && wait.holder != sample.thread) {
      arrows.push_back({Arrow::Kind::kHeld, wait.holder, sample.thread, sample.time_ns, i});
    }
    const auto waker = wait.waker == 0 ? threads.end() : threads.find(profile.strings[wait.waker]);
    if (waker == threads.end() || waker->second == kSeveral || waker->second == sample.thread) continue;
    const uint64_t end_ns = sample.time_ns + std::min(sample.weight, UINT64_MAX - sample.time_ns);
    arrows.push_back({Arrow::Kind::kWoke, waker->second, sample.thread, end_ns, i});
  }
  std::stable_sort(arrows.begin(), arrows.end(), [](const Arrow& a, const Arrow& b) { return a.at_ns < b.at_ns; });
  return arrows;
}

}  // namespace perfkit::exporters
