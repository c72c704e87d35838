// Checks that the indexes of a slow frame are those of a profile.
#include <cstdint>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/profile/frame_cut.h"

namespace perfkit::profile {

absl::Status CheckFrame(const Profile& profile, const SlowFrame& frame) {
  const auto wrong = [](std::string_view what, uint32_t index, size_t size) {
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat(
            "not a frame of this profile: its %s is entry %d of %d. Remedy: pass the profile that FindSlowFrames had",
            what, index, size));
  };
  const auto is_in = [](uint32_t index, size_t size) { return index == UINT32_MAX || index < size; };
  if (frame.zone >= profile.zones.size()) return wrong("zone", frame.zone, profile.zones.size());
  if (!profile.zones[frame.zone].is_frame) {
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat(
            "not a frame of this profile: entry %d is a zone. Remedy: pass the profile that FindSlowFrames had",
            frame.zone));
  }
  for (const FramePart& part : frame.parts) {
    if (!is_in(part.stack, profile.stacks.size())) return wrong("part's stack", part.stack, profile.stacks.size());
    if (!is_in(part.wait, profile.waits.size())) return wrong("part's wait", part.wait, profile.waits.size());
  }
  for (const FrameCount& count : frame.counts) {
    if (!is_in(count.stack, profile.stacks.size())) return wrong("count's stack", count.stack, profile.stacks.size());
  }
  for (const FaultedMemory& one : frame.faults) {
    if (!is_in(one.memory, profile.memory.size())) return wrong("memory", one.memory, profile.memory.size());
    if (!is_in(one.stack, profile.stacks.size())) return wrong("faults' stack", one.stack, profile.stacks.size());
  }
  for (const FrameThread& other : frame.others) {
    if (other.thread >= profile.threads.size()) return wrong("other thread", other.thread, profile.threads.size());
    if (!is_in(other.stack, profile.stacks.size())) return wrong("other's stack", other.stack, profile.stacks.size());
  }
  for (const FrameCause& cause : frame.causes) {
    if (!is_in(cause.memory, profile.memory.size())) return wrong("memory", cause.memory, profile.memory.size());
    for (const uint32_t stack : {cause.stack, cause.thread_stack}) {
      if (!is_in(stack, profile.stacks.size())) return wrong("cause's stack", stack, profile.stacks.size());
    }
    if (!is_in(cause.wait, profile.waits.size())) return wrong("cause's wait", cause.wait, profile.waits.size());
    if (!is_in(cause.thread, profile.threads.size()))
      return wrong("cause's thread", cause.thread, profile.threads.size());
  }
  return absl::OkStatus();
}

}  // namespace perfkit::profile
