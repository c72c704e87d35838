// Formats the cause of a slow frame as a sentence. The thread comes before the place, because readers look for it
// first.
#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "perfkit/slow_frames.h"
#include "src/profile/faulted_memory.h"
#include "src/profile/stack_evidence.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;

constexpr size_t kFunctionColumns = 40;
constexpr std::array<std::string_view, 15> kKindNames = {
    "unknown", "more work",      "page faults",    "preempted",          "CPU quota", "taken by the machine",
    "lock",    "allocator lock", "file lock",      "priority inversion", "I/O",       "other thread",
    "sleep",   "system call",    "less than usual"};
constexpr std::array<std::string_view, 3> kConfidenceNames = {"unknown", "likely", "known"};

// Returns " in Load()", or "" if it is not known. A stack from before the wait does not show where the thread waited.
std::string InFunction(const Profile& profile, uint32_t stack, StackQuality quality) {
  const std::string function = quality == StackQuality::kLastKnown ? "" : OwnFunction(profile, stack);
  return function.empty() ? "" : " in " + CutMiddle(OneLine(function), kFunctionColumns);
}

// Returns "bash (4321) of another program", or "" if none is known to have ended the wait.
std::string_view Stranger(const Profile& profile, const FrameCause& cause) {
  if (cause.thread != FrameCause::kNoThread || cause.wait == ProfileSample::kNoWait) return "";
  const std::string_view waker = profile.strings[profile.waits[cause.wait].waker];
  return waker.ends_with(ProfileWait::kOfOtherProgram) ? waker : "";
}

// Returns "loader (1234)", or `otherwise` if the thread is not known.
std::string Who(const Profile& profile, const FrameCause& cause, const std::string& otherwise) {
  if (cause.thread != FrameCause::kNoThread) return ThreadAndNumber(profile, cause.thread);
  const std::string_view stranger = Stranger(profile, cause);
  return stranger.empty() ? otherwise : std::string(stranger);
}

// Returns " in Load(), zone 'load'".
std::string WhereThread(const Profile& profile, const FrameCause& cause) {
  const std::string zone = cause.thread_zone.empty() ? "" : absl::StrCat(", zone '", cause.thread_zone, "'");
  return InFunction(profile, cause.thread_stack, cause.thread_quality) + zone;
}

// Returns whom a thread waits for if that thread is not known.
std::string OtherThread(const Profile& profile, const FrameCause& cause) {
  const std::string stranger(Stranger(profile, cause));
  if (!IsOnePipe(cause.what)) return stranger.empty() ? "another thread" : stranger;
  const bool reads = cause.what.starts_with("read of"), writes = cause.what.starts_with("write to");
  return absl::StrCat(stranger.empty() ? "another thread or program" : stranger, " to ",
                      reads    ? "write"
                      : writes ? "read"
                               : "use",
                      " it");
}

std::string InZone(const FrameCause& cause) { return cause.what.empty() ? " in no zone" : " in " + cause.what; }

std::string Wanted(const std::string& here) { return here.empty() ? "" : ", wanted" + here; }

std::string PlainText(const Profile& profile, const FrameCause& cause) {
  const std::string here = InFunction(profile, cause.stack, cause.quality), there = WhereThread(profile, cause);
  switch (cause.kind) {
    case Kind::kUnknown: return "not known: " + cause.what;
    case Kind::kMoreWork: return absl::StrCat("more work", InZone(cause), here.empty() ? "" : "," + here);
    case Kind::kPageFaults: {
      const bool has_memory = cause.memory != ProfileSample::kNoMemory;
      return absl::StrCat("page faults", InZone(cause), here.empty() ? "" : "," + here,
                          has_memory ? ", most of them of " + MemoryText(profile, cause.memory) : "");
    }
    case Kind::kPreempted:
      if (!cause.what.empty()) return absl::StrCat("preempted", here, " by ", cause.what);
      return absl::StrCat("preempted", here, ": others ran, or a CPU quota was used up");
    case Kind::kThrottled: return absl::StrCat("could have run", here, ", but a CPU quota (cgroup) was used up");
    case Kind::kStolen: return absl::StrCat("taken by the machine, a hypervisor or interrupts,", InZone(cause));
    case Kind::kLock:
      return absl::StrCat("a lock that ", Who(profile, cause, "another thread"), " held", there, Wanted(here));
    case Kind::kAllocatorLock: {
      const std::string who = Who(profile, cause, "");
      return absl::StrCat("the allocator's lock", who.empty() ? "" : ", until " + who + " released it", there,
                          Wanted(here));
    }
    case Kind::kFileLock: {
      const std::string who = Who(profile, cause, "");
      return absl::StrCat(cause.what, who.empty() ? "" : ", until " + who + " released it", there, Wanted(here));
    }
    case Kind::kPriorityInversion:
      return absl::StrCat("priority inversion: waited", here, " for ", Who(profile, cause, "a thread"), there,
                          ", which was preempted");
    case Kind::kIo: return cause.what + here;
    case Kind::kOtherThread:
      return absl::StrCat("waited", here, " for ",
                          cause.thread == FrameCause::kNoThread ? OtherThread(profile, cause) : Who(profile, cause, ""),
                          there, cause.thread == FrameCause::kNoThread && !cause.what.empty() ? ": " + cause.what : "");
    case Kind::kSleep: return "slept" + here;
    case Kind::kSystemCall: return absl::StrCat("waited", here, ": ", cause.what);
    case Kind::kLess: return "other parts took less than usual";
  }
  return "";
}

}  // namespace

}  // namespace perfkit::profile

namespace perfkit {

std::string_view FrameCauseKindName(FrameCause::Kind kind) { return profile::kKindNames[static_cast<size_t>(kind)]; }

std::string_view FrameCauseConfidenceName(FrameCause::Confidence confidence) {
  return profile::kConfidenceNames[static_cast<size_t>(confidence)];
}

std::string FormatFrameCause(const Profile& profile, const FrameCause& cause) {
  const std::string more = cause.remedy.empty() ? "" : absl::StrCat(" [to know more: ", cause.remedy, "]");
  return profile::OneLine(profile::PlainText(profile, cause) + more);
}

}  // namespace perfkit
