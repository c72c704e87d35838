// What a profile's samples say, in words: for comparing a Profile with a file that was made of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile.h"

namespace perfkit::testing {

// Of samples that differ in nothing but their times: their number, then each event's weight.
using SampleTotals = std::map<std::string, std::vector<int64_t>>;

inline std::string CallText(const std::string& function, const std::string& file, uint64_t line) {
  return function + " " + file + ":" + std::to_string(line);
}

// The calls of a stack, leaf first, inlined ones before those that they were inlined into.
inline std::string StackText(const Profile& profile, uint32_t stack) {
  std::string text;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t index = profile.stacks[stack].location;
    const ProfileLocation& location = profile.locations[index];
    const bool has_module = location.module != ProfileLocation::kNoModule;
    const ProfileModule module = has_module ? profile.modules[location.module] : ProfileModule();
    text += absl::StrFormat(" | %s %s %x", profile.strings[module.path], profile.strings[module.build_id],
                            location.address);
    for (const ProfileCall& call : profile.CallsAt(index)) {
      text += ", " + CallText(profile.CallName(index, call), profile.strings[call.file], call.line);
    }
  }
  return text;
}

}  // namespace perfkit::testing
