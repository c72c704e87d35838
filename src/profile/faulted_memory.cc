// Sums of page faults by the mapping that they were in, after mappings that overlap were made one.
#include "src/profile/faulted_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/profile/frame_counts.h"
#include "src/profile/text_table.h"

namespace perfkit::profile {
namespace {

constexpr size_t kMaxTold = 3;

enum class Faults : uint8_t { kNone, kAll, kMinor, kMajor };

// Followers are counted at samples of another event, which say nothing about memory.
Faults SampledFaults(std::string_view event) {
  if (event.find(" at ") != event.npos) return Faults::kNone;
  if (event.starts_with("page-faults")) return Faults::kAll;
  if (event.starts_with("minor-faults")) return Faults::kMinor;
  return event.starts_with("major-faults") ? Faults::kMajor : Faults::kNone;
}

// Returns for each entry of Profile::memory that is used which one stands for it.
std::map<uint32_t, uint32_t> WithoutOverlaps(const Profile& profile, std::vector<uint32_t> used) {
  const auto at = [&](uint32_t index) -> const ProfileMemory& { return profile.memory[index]; };
  std::ranges::sort(used, {}, [&](uint32_t i) { return std::tuple(at(i).name, at(i).from, at(i).to); });
  std::map<uint32_t, uint32_t> largest;
  for (size_t first = 0, end = 0; first < used.size(); first = end) {
    uint64_t to = at(used[first]).to;
    uint32_t most = used[first];
    for (end = first + 1; end < used.size(); ++end) {
      const ProfileMemory& next = at(used[end]);
      if (next.name != at(most).name || next.from >= to) break;
      to = std::max(to, next.to);
      if (next.to - next.from > at(most).to - at(most).from) most = used[end];
    }
    for (size_t i = first; i < end; ++i) largest[used[i]] = most;
  }
  return largest;
}

// The faults in one memory and zone. Both kinds of events may have counted them, in a profile that was merged: those
// of all faults, among which are the major ones, and those of minor and major faults.
class SampledSums {
 public:
  void Add(const ProfileSample& sample, Faults kind) {
    if (kind == Faults::kMajor) major_ += sample.weight;
    Sum& sum = kind == Faults::kAll ? all_ : by_kind_;
    sum.faults.faults += sample.weight;
    const uint64_t at_stack = sum.stacks[sample.stack] += sample.weight;
    if (at_stack <= sum.faults.at_stack) return;
    sum.faults.at_stack = at_stack;
    sum.faults.stack = sample.stack;
    sum.faults.quality = sample.quality;
  }
  // A thread is sampled by events of one kind, unless its profiles were merged as well.
  const FaultedMemory& Larger() const {
    return all_.faults.faults != 0 && all_.faults.faults >= by_kind_.faults.faults - major_ ? all_.faults
                                                                                            : by_kind_.faults;
  }
  uint64_t major() const { return major_; }

 private:
  struct Sum {
    FaultedMemory faults;
    std::map<uint32_t, uint64_t> stacks;
  };
  Sum all_, by_kind_;
  uint64_t major_ = 0;
};

std::string SizeText(uint64_t bytes) {
  return bytes >= 1 << 20 ? absl::StrFormat("%.4g MiB", static_cast<double>(bytes) / (1 << 20))
                          : absl::StrFormat("%d KiB", bytes >> 10);
}

}  // namespace

std::vector<FaultedMemory> FaultsByMemory(const Profile& profile, const ProfileZone& frame) {
  std::vector<Faults> kinds;  // by event
  for (const ProfileEvent& event : profile.events) kinds.push_back(SampledFaults(event.name));
  const bool has_major =
      IsSampled(profile, frame.thread, [&](uint16_t event) { return kinds[event] == Faults::kMajor; });
  const auto visit = [&](auto&& add) {
    for (const ProfileSample& sample : SamplesIn(profile, frame)) {
      if (sample.thread == frame.thread && kinds[sample.event] != Faults::kNone) add(sample, kinds[sample.event]);
    }
  };
  std::vector<uint32_t> used;
  visit([&](const ProfileSample& sample, Faults) {
    if (sample.memory != ProfileSample::kNoMemory) used.push_back(sample.memory);
  });
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::map<uint32_t, uint32_t> memory = WithoutOverlaps(profile, std::move(used));
  memory[ProfileSample::kNoMemory] = ProfileSample::kNoMemory;
  std::map<std::pair<uint32_t, uint32_t>, SampledSums> sums;  // by memory and label
  visit([&](const ProfileSample& sample, Faults kind) {
    sums[{memory[sample.memory], sample.label}].Add(sample, kind);
  });
  std::vector<FaultedMemory> faults;
  for (const auto& [key, sum] : sums) {
    FaultedMemory& told = faults.emplace_back(sum.Larger());
    told.memory = key.first;
    told.zone = profile.strings[key.second];
    if (has_major) told.major = sum.major();
    // Samples of all faults may stand for several faults each, and have missed those of a few major ones.
    told.faults = std::max(told.faults, told.major.value_or(0));
  }
  std::ranges::stable_sort(faults, std::greater<>(), &FaultedMemory::faults);
  return faults;
}

uint32_t MostFaulted(const SlowFrame& frame, const std::string& zone) {
  const auto most = std::ranges::find(frame.faults, zone, &FaultedMemory::zone);
  return most == frame.faults.end() ? ProfileSample::kNoMemory : most->memory;
}

std::string MemoryText(const Profile& profile, uint32_t memory) {
  if (memory == ProfileSample::kNoMemory) return "memory that is not known";
  const ProfileMemory& at = profile.memory[memory];
  const std::string name = OneLine(profile.strings[at.name]);
  const bool is_plain = !name.empty() && !name.starts_with("[anon") && name != ProfileMemory::kThreadStack;
  if (is_plain) return name;
  const std::string where = absl::StrFormat(" of %s at %#x", SizeText(at.to - at.from), at.from);
  return (name.empty() ? "anonymous memory" : name) + where;
}

std::string FaultText(const Profile& profile, const FaultedMemory& faults) {
  const std::string zone = faults.zone.empty() ? "" : " in " + OneLine(faults.zone);
  const std::string major = faults.major.value_or(0) == 0 ? "" : absl::StrFormat(", %d of them major", *faults.major);
  return absl::StrCat("page faults", zone, major, ": ", MemoryText(profile, faults.memory));
}

std::vector<FaultedMemory> ToldFaults(const SlowFrame& frame) {
  const bool are_many = profile::FaultsOf(frame).extra > 0;
  std::vector<FaultedMemory> told;
  for (const FaultedMemory& faults : frame.faults) {
    if (told.size() < kMaxTold && (are_many || faults.major.value_or(0) != 0)) told.push_back(faults);
  }
  return told;
}

}  // namespace perfkit::profile
