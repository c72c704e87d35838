// What the environment says of the profile of a whole program.
//
//   PERFKIT_PROFILE           the file; its ending is the format; "%p" becomes the process's number
//   PERFKIT_PROFILE_INTERVAL  between two samples, in microseconds (1000)
//   PERFKIT_PROFILE_CLOCK     "cpu", or "wall" (the usual one)
//   PERFKIT_PROFILE_STACKS    "dumps" (the usual one), "live" (for programs that leave SIGTRAP alone),
//   "frame-pointers", "none" PERFKIT_PROFILE_EVERY     seconds between two writings of the file (10)
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "perfkit/session.h"

namespace perfkit::preload {

inline constexpr char kPathVariable[] = "PERFKIT_PROFILE";

struct Settings {
  std::string path;           // "": nothing is to be profiled, or another process is
  bool each_process = false;  // the path has a "%p"
  int every_ms = 10'000;
  SessionOptions session;
};

// InvalidArgument names the variable, what it says, and what it may say.
// A path that another process has claimed is none.
absl::StatusOr<Settings> ReadSettings(absl::FunctionRef<const char*(const char*)> variable, int pid);

// What PERFKIT_PROFILE says once process `pid` is the one to be profiled: "123:out.html".
std::string ClaimedBy(const Settings& settings, int pid);

}  // namespace perfkit::preload
