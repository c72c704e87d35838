// Reads where sched:sched_waking has its fields. The tracepoint fires on the waker, so a sample of it is one of the
// waker's thread. In an interrupt that thread only happened to run there: the flags of the record tell (enum
// trace_flag_type of the kernel's include/linux/trace_events.h).
#include "src/session/waking.h"

#include <string>
#include <utility>

#include "src/sys/files.h"

namespace perfkit::session {
namespace {

constexpr std::string_view kFirstNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO of include/linux/proc_ns.h
constexpr uint64_t kHardInterrupt = 0x08, kSoftInterrupt = 0x10, kNonMaskableInterrupt = 0x40;

}  // namespace

WakingFormat::WakingFormat(TracepointField pid, TracepointField flags)
    : pid_(std::move(pid)), flags_(std::move(flags)) {}

absl::StatusOr<WakingFormat> WakingFormat::Read() {
  if (sys::LinkTarget("/proc/self/ns/pid") != kFirstNamespace) {
    return absl::Status(
        absl::StatusCode::kUnimplemented,
        "this process is in a pid namespace of its own, as in a container, and the kernel's tracepoints "
        "number threads as the first one does. Remedy: run it outside");
  }
  absl::StatusOr<TracepointFormat> format = TracepointFormat::Of(kWakingEvent);
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

}  // namespace perfkit::session
