// Checks each option alone, and then those that depend on each other. Each refusal names the option and its value.
#include "src/session/check_options.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/base/glob.h"
#include "src/session/frame_ranks.h"

namespace perfkit::session {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMinInterval = std::chrono::microseconds(10), kMaxInterval = std::chrono::seconds(10);
constexpr size_t kMaxMemory = size_t{1} << 40;  // Also the largest ring of a sampler.

absl::Status CheckInterval(nanoseconds interval) {
  if (interval >= kMinInterval && interval <= kMaxInterval) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("cannot sample every %d ns. Remedy: choose SessionOptions::interval from 10 us "
                                      "(the kernel's own floor) to 10 s.",
                                      interval.count()));
}

absl::Status CheckTimes(const SessionOptions& options) {
  struct Time {
    std::string_view name;
    nanoseconds value;
    std::string_view zero;  // What 0 means.
  };
  for (const Time& time :
       {Time{"keep_last", options.keep_last, "no limit"}, Time{"stop_after", options.stop_after, "no limit"},
        Time{"stop_when_idle", options.stop_when_idle, "never"},
        Time{"look_after", options.look_after, "all blocked threads"},
        Time{"lock_waits_from", options.lock_waits_from, "all waits"}}) {
    if (time.value.count() >= 0) continue;
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("SessionOptions::%s is %d ns, a negative time. Remedy: choose 0 (%s) or more.",
                                        time.name, time.value.count(), time.zero));
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const SessionOptions& options) {
  if (!std::isfinite(options.cpu_budget) || options.cpu_budget < 0) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("SessionOptions::cpu_budget is %g. Remedy: choose a share of one CPU, such as "
                                        "0.02, or 0 for no budget.",
                                        options.cpu_budget));
  }
  if (options.memory_bytes > kMaxMemory) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("SessionOptions::memory_bytes is %d. Remedy: choose %d at most, or 0 for the "
                                        "default.",
                                        options.memory_bytes, kMaxMemory));
  }
  if (!base::IsGlob(options.thread_name)) {
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat("SessionOptions::thread_name is \"%s\", which has a '[' without its ']', or ends "
                        "with '\\'. Remedy: escape the character by '\\'.",
                        options.thread_name));
  }
  return absl::OkStatus();
}

// Returns why options can't be combined.
absl::Status CheckTogether(const SessionOptions& options) {
  if (options.mode == RingMode::kOverwrite && options.clock == SessionClock::kWall) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "cannot measure times off the CPU by records that are overwritten. Remedy: choose "
                        "SessionClock::kCpu or RingMode::kStream");
  }
  if (options.wakers && options.clock != SessionClock::kWall) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "who wakes threads is known of their waits only. Remedy: choose SessionClock::kWall, or leave "
                        "SessionOptions::wakers out");
  }
  if (options.preempters && options.clock != SessionClock::kWall) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "who preempts threads is known of their times off the CPU only. Remedy: choose "
                        "SessionClock::kWall, or leave SessionOptions::preempters out");
  }
  if (options.mode == RingMode::kOverwrite && options.on_batch) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "a flight recorder has no batches: its samples are read by Snapshot and Stop. Remedy: choose "
                        "RingMode::kStream, or leave SessionOptions::on_batch empty");
  }
  if (options.keep_last.count() > 0 && options.mode != RingMode::kOverwrite) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "a session that streams keeps all samples. Remedy: choose RingMode::kOverwrite, or leave "
                        "SessionOptions::keep_last out");
  }
  if (options.stop_when_idle.count() > 0 && !options.own_thread) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "a program that calls Session::Poll is never idle. Remedy: set SessionOptions::own_thread, or "
                        "leave SessionOptions::stop_when_idle out");
  }
  if (options.keep && options.frames == nullptr) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "cannot keep slow frames without a FrameCounter. Remedy: set SessionOptions::frames");
  }
  if (options.keep && options.mode == RingMode::kOverwrite) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        "cannot keep slow frames from rings that are overwritten. Remedy: choose RingMode::kStream");
  }
  if (options.keep && options.keep->worst_by.size() > FrameRanks::kMaxNames) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("frames are kept by %d names at most, not by %d. Remedy: name fewer zones and "
                                        "events in KeepFrames::worst_by",
                                        FrameRanks::kMaxNames, options.keep->worst_by.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptions(const SessionOptions& options) {
  absl::Status status = CheckInterval(options.interval);
  if (status.ok()) status = CheckTimes(options);
  if (status.ok()) status = CheckValues(options);
  if (status.ok()) status = CheckTogether(options);
  return status;
}

}  // namespace perfkit::session
