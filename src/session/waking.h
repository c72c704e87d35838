// Who wakes whom: samples of sched:sched_waking, which the kernel takes where the waker runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/ring_reader.h"
#include "perfkit/tracepoint.h"

namespace perfkit::session {

inline constexpr std::string_view kWakingEvent = "sched:sched_waking";

struct Waking {
  uint32_t tid = 0;           // of the thread that is woken
  bool by_interrupt = false;  // by a handler of interrupts, which ran on the waker by chance
};

// Where the kernel at hand writes that. Thread-safe to read.
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

}  // namespace perfkit::session
