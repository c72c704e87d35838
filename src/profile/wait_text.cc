// One text for reports and for files. A detail is made by the session when it looks at a sleeping thread, "futex
// 0x7f12..."; without one the number of the system call is all that is known.
#include "src/profile/wait_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/profile/base_name.h"

namespace perfkit::profile {
namespace {

std::string WhatText(const Profile& profile, const ProfileWait& wait) {
  if (wait.preempted) return "preempted";
  if (wait.detail != 0) return profile.strings[wait.detail];
  return wait.blocked_in_syscall ? absl::StrCat("syscall ", wait.syscall) : "";
}

// "std::this_thread::sleep_for", and as a demangled template "void std::this_thread::sleep_for<…>(…)".
bool IsOfLanguage(std::string_view function) {
  const std::string_view name = function.substr(0, function.find_first_of("(<"));
  const size_t space = name.rfind(' ');
  return name.substr(space == name.npos ? 0 : space + 1).starts_with("std::");
}

bool IsOfSystem(std::string_view module) {
  const std::string_view name = BaseName(module);
  for (const std::string_view library : {"libc.so", "libc-2", "libpthread", "libstdc++", "libc++", "ld-linux", "["}) {
    if (name.starts_with(library)) return true;
  }
  return false;
}

std::string OwnFunction(const Profile& profile, uint32_t stack) {
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
    const bool has_module = location.module != ProfileLocation::kNoModule;
    if (location.kernel || !has_module || IsOfSystem(profile.strings[profile.modules[location.module].path])) continue;
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      if (call.function != 0 && !IsOfLanguage(profile.strings[call.function])) return profile.strings[call.function];
    }
  }
  return "";
}

}  // namespace

std::string HolderName(const Profile& profile, const ProfileWait& wait) {
  if (wait.holder == ProfileWait::kNoHolder) return "";
  const ProfileThread& thread = profile.threads[wait.holder];
  const std::string name = profile.ThreadName(wait.holder);
  return thread.is_sum() ? name : absl::StrCat(name, " (", thread.tid, ")");
}

std::string HolderText(const Profile& profile, const ProfileWait& wait) {
  if (wait.holder == ProfileWait::kNoHolder) return "";
  const std::string function = OwnFunction(profile, wait.holder_stack);
  return absl::StrCat(HolderName(profile, wait), function.empty() ? "" : " in ", function);
}

std::string WaitText(const Profile& profile, const ProfileWait& wait) {
  std::string text = WhatText(profile, wait);
  const auto add = [&](const char* how, const std::string& who) {
    if (!who.empty()) absl::StrAppend(&text, text.empty() ? "" : ", ", how, who);
  };
  add("held by ", HolderText(profile, wait));
  add("woken by ", profile.strings[wait.waker]);
  return text;
}

std::string WaitKind(const Profile& profile, const ProfileWait& wait) {
  const std::string text = WhatText(profile, wait);
  std::string kind;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    // Two waits for the same kind of thing must be one part of a frame, wherever the thing lies.
    if (!word.starts_with("0x")) kind += (kind.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return kind;
}

}  // namespace perfkit::profile
