// Parses samples of tracepoints, by the formats of the running kernel. sched:sched_waking fires on the waker, so a
// sample of it is one of the waker's thread. In an interrupt, that thread only happened to run there. The flags of the
// record say so (enum trace_flag_type of the kernel's include/linux/trace_events.h). sched:sched_switch fires on the
// thread that leaves its CPU, before the kernel writes that thread's SWITCH record (__schedule of kernel/sched/core.c).
#include "src/session/sched_events.h"

#include <string>
#include <utility>

#include "src/sys/files.h"

namespace perfkit::session {
namespace {

constexpr std::string_view kFirstNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO of include/linux/proc_ns.h
constexpr uint64_t kHardInterrupt = 0x08, kSoftInterrupt = 0x10, kNonMaskableInterrupt = 0x40;
// TASK_REPORT and TASK_REPORT_IDLE of include/linux/sched.h. A thread that could run on has 0 or a higher bit.
constexpr uint64_t kSleepStates = 0xff;

// Errors: Unimplemented in another pid namespace than the first one; as TracepointFormat::Of.
absl::StatusOr<TracepointFormat> FormatOf(std::string_view event) {
  if (sys::LinkTarget("/proc/self/ns/pid") != kFirstNamespace) {
    return absl::Status(
        absl::StatusCode::kUnimplemented,
        "this process is in a pid namespace of its own, as in a container, and the kernel's tracepoints "
        "number threads as the first one does. Remedy: run it outside");
  }
  return TracepointFormat::Of(EventSpec(event));
}

}  // namespace

WakingFormat::WakingFormat(TracepointField pid, TracepointField flags)
    : pid_(std::move(pid)), flags_(std::move(flags)) {}

absl::StatusOr<WakingFormat> WakingFormat::Read() {
  absl::StatusOr<TracepointFormat> format = FormatOf(kWakingEvent);
  if (!format.ok()) return format.status();
  return Of(*std::move(format));
}

absl::StatusOr<WakingFormat> WakingFormat::Of(TracepointFormat format) {
  const TracepointField* const pid = format.Find("pid");
  const TracepointField* const flags = format.Find("common_flags");
  if (pid != nullptr && flags != nullptr) return WakingFormat(*pid, *flags);
  return absl::Status(absl::StatusCode::kUnimplemented,
                      "this kernel's sched:sched_waking does not say which thread is woken. Remedy: none is known");
}

std::optional<Waking> WakingFormat::Parse(Bytes raw) const {
  const std::optional<uint64_t> pid = pid_.Unsigned(raw), flags = flags_.Unsigned(raw);
  if (!pid || !flags) return std::nullopt;
  constexpr uint64_t kAny = kHardInterrupt | kSoftInterrupt | kNonMaskableInterrupt;
  return Waking{.tid = static_cast<uint32_t>(*pid), .by_interrupt = (*flags & kAny) != 0};
}

SwitchFormat::SwitchFormat(TracepointField from, TracepointField state, TracepointField to, TracepointField to_name)
    : from_(std::move(from)), state_(std::move(state)), to_(std::move(to)), to_name_(std::move(to_name)) {}

absl::StatusOr<SwitchFormat> SwitchFormat::Read() {
  absl::StatusOr<TracepointFormat> format = FormatOf(kSwitchEvent);
  if (!format.ok()) return format.status();
  return Of(*std::move(format));
}

absl::StatusOr<SwitchFormat> SwitchFormat::Of(TracepointFormat format) {
  const TracepointField* const from = format.Find("prev_pid");
  const TracepointField* const state = format.Find("prev_state");
  const TracepointField* const to = format.Find("next_pid");
  const TracepointField* const to_name = format.Find("next_comm");
  if (from != nullptr && state != nullptr && to != nullptr && to_name != nullptr) {
    return SwitchFormat(*from, *state, *to, *to_name);
  }
  return absl::Status(absl::StatusCode::kUnimplemented,
                      "this kernel's sched:sched_switch does not say which thread runs next. Remedy: none is known");
}

std::optional<Switch> SwitchFormat::Parse(Bytes raw) const {
  const std::optional<uint64_t> from = from_.Unsigned(raw), state = state_.Unsigned(raw), to = to_.Unsigned(raw);
  const std::optional<std::string_view> to_name = to_name_.Text(raw);
  if (!from || !state || !to || !to_name) return std::nullopt;
  return Switch{.from_tid = static_cast<uint32_t>(*from),
                .to_tid = static_cast<uint32_t>(*to),
                .is_preempted = (*state & kSleepStates) == 0,
                .to_name = *to_name};
}

}  // namespace perfkit::session
