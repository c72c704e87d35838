// What a profile says of each function, added up the plain way: for comparing with what a viewer shows.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/profile.h"
#include "src/base/utf8.h"

namespace perfkit::testing {

struct FunctionSum {
  Profile::Sum self, total;
  bool operator==(const FunctionSum&) const = default;
};

// By name and module. Recursive calls count once.
using FunctionSums = std::map<std::pair<std::string, std::string>, FunctionSum>;
using SampleFilter = std::function<bool(const ProfileSample&)>;

// The last part of a module's path.
inline std::string ModuleText(const Profile& profile, uint32_t location) {
  const uint32_t module = profile.locations[location].module;
  if (module == ProfileLocation::kNoModule) return "unknown";
  const std::string& path = profile.strings[profile.modules[module].path];
  const bool is_path = path.starts_with('/') && !path.starts_with("//");
  return base::ValidUtf8(is_path ? path.substr(path.rfind('/') + 1) : path);
}

// The calls of a stack, innermost first, as valid UTF-8.
inline std::vector<std::pair<std::string, std::string>> CallsOf(const Profile& profile, uint32_t stack) {
  std::vector<std::pair<std::string, std::string>> calls;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t location = profile.stacks[stack].location;
    const std::string module = ModuleText(profile, location);
    for (const ProfileCall& call : profile.CallsAt(location)) {
      calls.emplace_back(base::ValidUtf8(profile.CallName(location, call)), module);
    }
    if (profile.CallsAt(location).empty()) calls.emplace_back(profile.UnnamedCode(location), module);
  }
  return calls;
}

// Samples without a stack are those of the function `no_stack`.
inline FunctionSums SumsOfFunctions(const Profile& profile, const SampleFilter& filter, const std::string& no_stack) {
  FunctionSums sums;
  for (const ProfileSample& sample : profile.samples) {
    if (!filter(sample) || (sample.weight == 0 && sample.samples == 0)) continue;
    auto calls = CallsOf(profile, sample.stack);
    if (calls.empty()) calls.emplace_back(no_stack, "unknown");
    const auto add = [&](Profile::Sum& sum) {
      sum.weight += sample.weight;
      sum.samples += sample.samples;
    };
    add(sums[calls.front()].self);
    std::sort(calls.begin(), calls.end());
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    for (const auto& call : calls) add(sums[call].total);
  }
  return sums;
}

}  // namespace perfkit::testing
