// Merges samples in place: sorts them by the key by which they are merged, and adds equal neighbors up in one pass. It
// needs no index, because it runs when memory is short. It allocates only the temporary buffers of std::stable_sort and
// std::stable_partition, and the waits and memory that remain.
#include "src/session/merge_samples.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <vector>

namespace perfkit::session {
namespace {

auto KeyOf(const ProfileSample& sample) {
  return std::tuple(sample.thread, sample.event, sample.stack, sample.label, sample.task, sample.quality);
}

// Removes the rows of `table` that no sample refers to by `index`, and renumbers the others. The first `kept` rows stay,
// at their indices. `none`: the index of a sample that refers to no row.
template <class Row>
void DropUnused(std::vector<ProfileSample>& samples, uint32_t ProfileSample::*index, uint32_t none, size_t kept,
                std::vector<Row>& table) {
  if (table.size() == kept) return;
  std::vector<uint32_t> renamed(table.size(), none);
  std::vector<Row> used(table.begin(), table.begin() + static_cast<ptrdiff_t>(kept));
  std::iota(renamed.begin(), renamed.begin() + static_cast<ptrdiff_t>(kept), 0u);
  for (ProfileSample& sample : samples) {
    if (sample.*index == none) continue;
    uint32_t& name = renamed[sample.*index];
    if (name == none) {
      name = static_cast<uint32_t>(used.size());
      used.push_back(table[sample.*index]);
    }
    sample.*index = name;
  }
  table.swap(used);
}

// Waits 0 to `kept` stay.
void DropUnreferenced(Profile& profile, uint32_t kept) {
  std::vector<ProfileSample>& samples = profile.samples;
  DropUnused(samples, &ProfileSample::wait, ProfileSample::kNoWait, kept + size_t{1}, profile.waits);
  DropUnused(samples, &ProfileSample::memory, ProfileSample::kNoMemory, 0, profile.memory);
}

void ForgetTime(ProfileSample& sample, ProfileAccounting& accounting) {
  if (sample.merged()) return;
  accounting.times_forgotten += sample.samples;
  accounting.waits_forgotten += sample.wait != ProfileSample::kNoWait ? 1 : 0;
  sample.time_ns = sample.task_number = 0;
  sample.wait = ProfileSample::kNoWait;
  sample.memory = ProfileSample::kNoMemory;
}

void ForgetStack(ProfileSample& sample, ProfileAccounting& accounting,
                 absl::FunctionRef<uint32_t(uint32_t stack)> other_of) {
  if (sample.stack == ProfileStack::kRoot) return;
  const uint32_t other = other_of(sample.stack);
  if (sample.stack == other) return;
  if (sample.quality != StackQuality::kLeafOnly) accounting.stacks_forgotten += sample.samples;
  sample.stack = other;
  if (sample.quality != StackQuality::kLastKnown) sample.quality = StackQuality::kLeafOnly;
}

// Merges equal samples among those before `end`. Requires that these have no times. Begins another row if the number of
// samples would not fit.
void MergeEqual(Profile& profile, std::vector<ProfileSample>::iterator end) {
  std::vector<ProfileSample>& samples = profile.samples;
  std::sort(samples.begin(), end, [](const auto& a, const auto& b) { return KeyOf(a) < KeyOf(b); });
  auto merged = samples.begin();
  for (auto sample = samples.begin(); sample != end; ++sample) {
    const bool has_room = merged->samples <= UINT32_MAX - sample->samples;
    if (merged != sample && KeyOf(*merged) == KeyOf(*sample) && has_room) {
      merged->weight += sample->weight, merged->samples += sample->samples;
    } else if (sample != samples.begin()) {
      *++merged = *sample;
    }
  }
  if (merged != end) samples.erase(merged + 1, end);
}

}  // namespace

void MergeOldest(Profile& profile, uint32_t kept) {
  std::vector<ProfileSample>& samples = profile.samples;
  std::stable_sort(samples.begin(), samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  const auto first_single =
      std::partition_point(samples.begin(), samples.end(), [](const ProfileSample& s) { return s.merged(); });
  // Merges half of them, so that merging is rare, and the later half keeps its times.
  const auto end = first_single + (samples.end() - first_single + 1) / 2;
  for (auto sample = first_single; sample != end; ++sample) ForgetTime(*sample, profile.accounting);
  MergeEqual(profile, end);
  DropUnreferenced(profile, kept);
}

void MergeLightest(Profile& profile, size_t max_rows, absl::FunctionRef<uint32_t(uint32_t stack)> other_of) {
  std::vector<ProfileSample>& samples = profile.samples;
  const auto end = std::partition_point(samples.begin(), samples.end(), [](const auto& s) { return s.merged(); });
  if (static_cast<size_t>(end - samples.begin()) <= max_rows) return;
  std::vector<double> totals(profile.events.size());
  for (auto sample = samples.begin(); sample != end; ++sample)
    totals[sample->event] += static_cast<double>(sample->weight);
  const auto share = [&](const ProfileSample& sample) {
    return static_cast<double>(sample.weight) / std::max(totals[sample.event], 1.0);
  };
  const auto is_heavier = [&](const ProfileSample& a, const ProfileSample& b) { return share(a) > share(b); };
  const auto first_light = samples.begin() + static_cast<ptrdiff_t>(max_rows / 2);
  std::nth_element(samples.begin(), first_light, end, is_heavier);
  for (auto sample = first_light; sample != end; ++sample) ForgetStack(*sample, profile.accounting, other_of);
  MergeEqual(profile, end);
}

void MergeSamples(Profile& profile, uint32_t kept, absl::FunctionRef<bool(const ProfileSample& single)> is_merged) {
  for (ProfileSample& sample : profile.samples) {
    if (!sample.merged() && is_merged(sample)) ForgetTime(sample, profile.accounting);
  }
  MergeEqual(profile, std::stable_partition(profile.samples.begin(), profile.samples.end(),
                                            [](const ProfileSample& sample) { return sample.merged(); }));
  DropUnreferenced(profile, kept);
}

void MergeThreads(Profile& profile, std::span<const uint32_t> renamed, uint32_t kept) {
  for (ProfileSample& sample : profile.samples) {
    if (renamed[sample.thread] == sample.thread) continue;
    ForgetTime(sample, profile.accounting);
    sample.thread = renamed[sample.thread];
  }
  for (ProfileWait& wait : profile.waits) {
    if (wait.holder != ProfileWait::kNoHolder) wait.holder = renamed[wait.holder];
  }
  MergeSamples(profile, kept, [](const ProfileSample&) { return false; });
}

}  // namespace perfkit::session
