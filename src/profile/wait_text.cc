// One text for reports and for files. A detail is made by the session when it looks at a sleeping thread, "futex
// 0x7f12..."; without one the number of the system call is all that is known.
#include "src/profile/wait_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/profile/stack_evidence.h"
#include "src/sys/call_timeout.h"

namespace perfkit::profile {
namespace {

std::string WhatText(const Profile& profile, const ProfileWait& wait) {
  if (wait.preempted) return "preempted";
  if (wait.detail != 0) return profile.strings[wait.detail];
  return wait.blocked_in_syscall ? absl::StrCat("syscall ", wait.syscall) : "";
}

}  // namespace

std::string ThreadAndNumber(const Profile& profile, uint32_t thread) {
  const std::string name = profile.ThreadName(thread);
  return profile.threads[thread].is_sum() ? name : absl::StrCat(name, " (", profile.threads[thread].tid, ")");
}

std::string HolderName(const Profile& profile, const ProfileWait& wait) {
  return wait.holder == ProfileWait::kNoHolder ? "" : ThreadAndNumber(profile, wait.holder);
}

std::string HolderText(const Profile& profile, const ProfileWait& wait) {
  if (wait.holder == ProfileWait::kNoHolder) return "";
  const std::string function = OwnFunction(profile, wait.holder_stack);
  return absl::StrCat(HolderName(profile, wait), function.empty() ? "" : " in ", function);
}

std::string PreempterText(const Profile& profile, const ProfilePreempter& preempter, bool is_exact) {
  if (!preempter.is_known()) return "";
  std::string text = absl::StrCat("`", profile.strings[preempter.command], "` (tid ", preempter.tid, ")");
  if (preempter.tid == 0) text = "no thread: its CPU was idle, as when a CPU quota (cgroup) is used up";
  if (preempter.is_own) text += " of this program";
  const char* const perhaps =
      preempter.tid == 0 ? "; others may have run for less of the time" : ", and perhaps others";
  if (preempter.others == 0) return absl::StrCat(text, is_exact ? "" : perhaps);
  const std::string others =
      absl::StrCat(is_exact ? "" : "at least ", preempter.others, preempter.tid != 0 ? " other thread" : " thread",
                   preempter.others == 1 ? "" : "s");
  return absl::StrCat(text, preempter.tid == 0 ? "; less of the time ran " : " and ", others);
}

std::string WaitText(const Profile& profile, const ProfileWait& wait) {
  std::string text = WhatText(profile, wait);
  const auto add = [&](const char* how, const std::string& who) {
    if (!who.empty()) absl::StrAppend(&text, text.empty() ? "" : ", ", how, who);
  };
  add("by ", PreempterText(profile, wait.preempter));
  add("held by ", HolderText(profile, wait));
  add("woken by ", profile.strings[wait.waker]);
  return text;
}

bool IsOnePipe(std::string_view detail) {
  return detail.find(" descriptor ") != std::string_view::npos &&
         (detail.find(" (pipe:[") != std::string_view::npos || detail.find(" (FIFO ") != std::string_view::npos);
}

std::string WaitKind(const Profile& profile, const ProfileWait& wait) {
  const std::string whole = WhatText(profile, wait);
  const std::string_view text = sys::WithoutTimeout(whole);
  std::string kind;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    // "(pipe:[1234])": each pipe and socket has its own number.
    if (word.starts_with("(pipe:[") || word.starts_with("(socket:[")) word = word.substr(0, word.find(':')) + ")";
    // Two waits for the same kind of thing must be one part of a frame, wherever the thing lies.
    if (!word.starts_with("0x")) kind += (kind.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return kind;
}

}  // namespace perfkit::profile
