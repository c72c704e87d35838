// Each wait here belongs to one sample at most, so changing the wait changes that sample alone.
#include "src/session/lock_waits.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "src/session/lock_holder.h"

namespace perfkit::session {
namespace {

// Returns the calls of the innermost frames of a stack, for ProvesLock. Ends at the kernel's code and at unknown code.
std::vector<NamedCall> InnermostCalls(const Profile& profile, uint32_t stack) {
  std::vector<NamedCall> innermost;
  for (size_t i = 0; i < kProvingFrames && stack != ProfileStack::kRoot; ++i, stack = profile.stacks[stack].parent) {
    const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
    if (location.kernel || location.module == ProfileLocation::kNoModule) return innermost;
    const std::string& module = profile.strings[profile.modules[location.module].path];
    const std::span<const ProfileCall> calls = profile.CallsAt(profile.stacks[stack].location);
    for (const ProfileCall& call : calls) innermost.push_back({profile.strings[call.function], module});
    if (calls.empty()) innermost.push_back({"", module});
  }
  return innermost;
}

bool HasHolder(const Profile& profile, const ProfileSample& sample) {
  return sample.wait != ProfileSample::kNoWait && profile.waits[sample.wait].holder != ProfileWait::kNoHolder;
}

// Finds the stack that most of `samples` have between from_ns and to_ns.
void FindStack(const Profile& profile, std::span<const uint32_t> samples, uint64_t from_ns, uint64_t to_ns,
               ProfileWait& wait) {
  const auto is_before = [&](uint32_t sample, uint64_t time_ns) { return profile.samples[sample].time_ns < time_ns; };
  std::map<uint32_t, uint32_t> counts;  // by stack
  uint32_t most = 0;
  for (auto at = std::lower_bound(samples.begin(), samples.end(), from_ns, is_before); at != samples.end(); ++at) {
    const ProfileSample& sample = profile.samples[*at];
    if (sample.time_ns >= to_ns) break;
    const uint32_t count = counts[sample.stack] += sample.samples;
    if (count <= most) continue;
    most = count;
    wait.holder_stack = sample.stack;
    wait.holder_quality = sample.quality;
  }
}

}  // namespace

void KeepProvenHolders(Profile& profile, std::span<const ProfileSample> samples) {
  for (const ProfileSample& sample : samples) {
    if (!HasHolder(profile, sample)) continue;
    ProfileWait& wait = profile.waits[sample.wait];
    if (wait.lock_kind != ProfileLock::kNone) continue;  // its record proves it
    if (ProvesLock(sys::FutexLockOf(wait.syscall, wait.arguments), InnermostCalls(profile, sample.stack))) continue;
    wait.holder = ProfileWait::kNoHolder;
    wait.holder_since_ns = 0;
    wait.holder_stack = ProfileStack::kRoot;
    wait.holder_quality = StackQuality::kNone;
  }
}

void FindHolderStacks(Profile& profile) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_holder;  // samples where the holder ran
  for (const ProfileSample& sample : profile.samples) {
    if (HasHolder(profile, sample)) by_holder.try_emplace(profile.waits[sample.wait].holder);
  }
  if (by_holder.empty()) return;
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (uint32_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    if (sample.merged() || sample.event == off_cpu || sample.stack == ProfileStack::kRoot) continue;
    if (const auto holder = by_holder.find(sample.thread); holder != by_holder.end()) holder->second.push_back(i);
  }
  for (const ProfileSample& sample : profile.samples) {
    if (!HasHolder(profile, sample)) continue;
    ProfileWait& wait = profile.waits[sample.wait];
    if (wait.holder_stack != ProfileStack::kRoot) continue;
    FindStack(profile, by_holder[wait.holder], sample.time_ns, sample.time_ns + sample.weight, wait);
  }
}

}  // namespace perfkit::session
