// Profiles at random, from a seed, and the plain way to add them up: stacks as lists of names, sums in maps.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {

struct RandomProfileShape {
  uint32_t functions = 12, stacks = 60, samples = 400, threads = 3;
};

// Recursion, inlined calls, code without names, merged samples, followers, samples without a stack, zones, labels,
// waits.
class RandomProfile {
 public:
  explicit RandomProfile(uint32_t seed, const RandomProfileShape& shape = {}) : random_(seed), shape_(shape) {}

  Profile Make() {
    Profile& profile = builder_.profile();
    profile.program = "random";
    profile.from_ns = 1000, profile.to_ns = 2000;
    builder_.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    builder_.AddEvent({.name = "page-faults"});
    builder_.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
    for (uint32_t i = 0; i < shape_.threads; ++i) {
      builder_.AddThread(7, 7 + i, i == 0 ? "main" : "worker " + std::to_string(i));
    }
    AddLocations();
    AddStacks();
    for (uint32_t i = 0; i < shape_.samples; ++i) AddSample();
    for (uint32_t i = 0; i < 4 * shape_.threads; ++i) {
      const uint64_t from = 1000 + Below(900);
      builder_.AddZone({.from_ns = from,
                        .to_ns = from + Below(200),
                        .thread = Below(shape_.threads),
                        .name = builder_.String("zone " + std::to_string(Below(3)))});
    }
    return builder_.Take();
  }

 private:
  uint32_t Below(size_t limit) { return static_cast<uint32_t>(random_() % limit); }

  std::string FunctionName(uint32_t i) { return "f" + std::to_string(i) + (i % 3 == 0 ? "<T>(int)" : ""); }

  ProfileCall Call(uint32_t function, bool inlined) {
    return {.function = Below(12) == 0 ? 0 : builder_.String(FunctionName(function)),
            .file = builder_.String("/src/" + std::to_string(function) + ".cc"),
            .line = 1 + Below(4),
            .inlined = inlined};
  }

  // Each function is in one module, so that names tell functions apart.
  void AddLocations() {
    const uint32_t modules[] = {builder_.Module("/bin/app"), builder_.Module("/lib/libz.so"),
                                builder_.Module("[kernel]")};
    for (uint32_t i = 0; i < 3 * shape_.functions; ++i) {
      const uint32_t function = Below(shape_.functions), module = function % 3;
      const uint32_t at = builder_.Location(modules[module], 0x1000 + i, module == 2);
      locations_.push_back(at);
      if (Below(8) == 0) continue;  // without a name
      std::vector<ProfileCall> calls;
      for (uint32_t k = Below(3); k-- > 0;) calls.push_back(Call(Below(shape_.functions / 3) * 3 + module, true));
      calls.push_back(Call(function, false));
      builder_.SetCalls(at, calls);
    }
    locations_.push_back(builder_.Location(ProfileLocation::kNoModule, 0xdead));
  }

  void AddStacks() {
    for (uint32_t i = 0; i < shape_.stacks; ++i) {
      const uint32_t parent = stacks_.empty() || Below(10) == 0 ? ProfileStack::kRoot : stacks_[Below(stacks_.size())];
      stacks_.push_back(builder_.Stack(parent, locations_[Below(locations_.size())], Below(20) == 0, Below(20) == 0));
    }
  }

  void AddSample() {
    const bool none = Below(20) == 0;
    ProfileSample sample{.time_ns = Below(10) == 0 ? 0 : 1000 + Below(1000),
                         .weight = 1 + Below(1000),
                         .thread = Below(shape_.threads),
                         .stack = none ? ProfileStack::kRoot : stacks_[Below(stacks_.size())],
                         .label = Below(2) == 0 ? 0 : builder_.String("label " + std::to_string(Below(3))),
                         .event = static_cast<uint16_t>(Below(3)),
                         .quality = none ? StackQuality::kNone : static_cast<StackQuality>(Below(4))};
    sample.samples = sample.time_ns == 0 ? 1 + Below(5) : sample.event == 1 ? 0 : 1;
    if (sample.event == 2) AddWait(sample);
    if (Below(2) == 0) sample.task = builder_.String("task " + std::to_string(Below(3)));
    if (sample.task != 0) sample.task_number = Below(3);
    builder_.AddSample(sample);
  }

  void AddWait(ProfileSample& sample) {
    ProfileWait wait{.preempted = Below(2) == 0, .syscall = 1};
    if (!wait.preempted && Below(2) == 0) {
      wait.holder = Below(shape_.threads);
      wait.holder_stack = stacks_[Below(stacks_.size())];
      wait.holder_quality = StackQuality::kWhole;
    }
    sample.wait = builder_.AddWait(wait);
  }

  std::mt19937 random_;
  RandomProfileShape shape_;
  ProfileBuilder builder_;
  std::vector<uint32_t> locations_, stacks_;
};

// The names of a stack's calls, outermost first.
inline std::vector<std::string> NamesOf(const Profile& profile, uint32_t stack) {
  std::vector<std::string> names;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t location = profile.stacks[stack].location;
    if (profile.CallsAt(location).empty()) names.push_back(profile.UnnamedCode(location));
    for (const ProfileCall& call : profile.CallsAt(location)) names.push_back(profile.CallName(location, call));
  }
  return {names.rbegin(), names.rend()};
}

// Sums of the samples by event and whatever `key` makes of one.
using SumsByName = std::map<std::pair<size_t, std::string>, Profile::Sum>;

inline void AddTo(SumsByName& sums, size_t event, const std::string& name, const Profile::Sum& sum) {
  Profile::Sum& to = sums[{event, name}];
  to.weight += sum.weight, to.samples += sum.samples;
}

// By thread, label, wait and stack as names: what a profile says, without its indexes.
inline SumsByName SumsByStack(const Profile& profile) {
  SumsByName sums;
  for (const ProfileSample& sample : profile.samples) {
    const ProfileThread& thread = profile.threads[sample.thread];
    std::string name = std::to_string(thread.pid) + "/" + std::to_string(thread.tid) + " " +
                       profile.strings[sample.label] + " " + profile.strings[sample.task] + " " +
                       std::string(StackQualityName(sample.quality));
    for (const std::string& call : NamesOf(profile, sample.stack)) name += ";" + call;
    if (sample.wait != ProfileSample::kNoWait) {
      const ProfileWait& wait = profile.waits[sample.wait];
      name += wait.preempted ? "preempted" : "waits";
      if (wait.holder != ProfileWait::kNoHolder) {
        name += " for " + std::to_string(profile.threads[wait.holder].pid) + "/" +
                std::to_string(profile.threads[wait.holder].tid);
        for (const std::string& call : NamesOf(profile, wait.holder_stack)) name += ";" + call;
      }
    }
    const auto event = static_cast<size_t>(std::hash<std::string>{}(profile.events[sample.event].name));
    AddTo(sums, event, name, {sample.weight, sample.samples});
  }
  return sums;
}

}  // namespace perfkit::profile
