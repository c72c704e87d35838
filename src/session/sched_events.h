// Parses which threads wake others, and which threads run next: the raw data of the tracepoints sched:sched_waking and
// sched:sched_switch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/ring_reader.h"
#include "perfkit/tracepoint.h"

namespace perfkit::session {

inline constexpr std::string_view kWakingEvent = "sched:sched_waking", kSwitchEvent = "sched:sched_switch";

struct Waking {
  uint32_t tid = 0;           // of the thread that is woken
  bool by_interrupt = false;  // an interrupt handler woke it, and ran on this thread by chance
};

// The layout of kWakingEvent in the running kernel. Thread-safe to read.
class WakingFormat {
 public:
  // Errors: as TracepointFormat::Of; Unimplemented if the kernel's tracepoint lacks a field, and for Read in a pid
  // namespace other than the first one.
  static absl::StatusOr<WakingFormat> Read();
  static absl::StatusOr<WakingFormat> Of(TracepointFormat format);

  // `raw` is Sample::raw(). Returns nullopt if it is too short.
  std::optional<Waking> Parse(Bytes raw) const;

 private:
  WakingFormat(TracepointField pid, TracepointField flags);

  TracepointField pid_, flags_;
};

struct Switch {
  uint32_t from_tid = 0, to_tid = 0;  // 0: the idle task
  bool is_preempted = false;          // the thread that leaves the CPU could run on
  std::string_view to_name{};         // of the thread that runs from now on; a view of the raw data
};

// The same for kSwitchEvent.
class SwitchFormat {
 public:
  // Errors: as WakingFormat::Read.
  static absl::StatusOr<SwitchFormat> Read();
  static absl::StatusOr<SwitchFormat> Of(TracepointFormat format);

  // `raw` is Sample::raw(). Returns nullopt if it is too short.
  std::optional<Switch> Parse(Bytes raw) const;

 private:
  SwitchFormat(TracepointField from, TracepointField state, TracepointField to, TracepointField to_name);

  TracepointField from_, state_, to_, to_name_;
};

}  // namespace perfkit::session
