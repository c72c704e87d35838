// The environment variables of the profile of a whole program.
//
//   PERFKIT_PROFILE           the file; its extension is the format; "%p" becomes the process's number
//   PERFKIT_PROFILE_INTERVAL  microseconds between two samples (1000)
//   PERFKIT_PROFILE_CLOCK     "cpu", or "wall" (the default)
//   PERFKIT_PROFILE_STACKS    "dumps" (the default), "live" (for programs that do not use SIGTRAP), "frame-pointers",
//                             "none"
//   PERFKIT_PROFILE_EVERY     seconds between two writings of the file (10)
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "perfkit/session.h"

namespace perfkit::preload {

inline constexpr char kPathVariable[] = "PERFKIT_PROFILE";

struct Settings {
  std::string path;           // "" if no profile is requested, or if another process has it.
  bool each_process = false;  // The path has a "%p".
  int every_ms = 10'000;
  SessionOptions session;
};

// Errors: InvalidArgument with the variable, its value, and its valid values. A path that another process has claimed
// becomes "".
absl::StatusOr<Settings> ReadSettings(absl::FunctionRef<const char*(const char*)> variable, int pid);

// Returns the value of PERFKIT_PROFILE once process `pid` owns the profile: "123:/tmp/out.html". Requires an absolute
// path.
std::string ClaimedBy(const Settings& settings, int pid);

}  // namespace perfkit::preload
