// Describes a time off the CPU for a profile.
#pragma once

#include <optional>

#include "perfkit/profile_builder.h"
#include "src/session/off_cpu.h"

namespace perfkit::session {

// Returns nullopt if nothing is known but whether it was preempted. `has_read`: the thread read from a disk at about
// that time, which explains a wait if nothing else does.
std::optional<ProfileWait> WaitOfSpan(const OffCpuSpan& span, bool has_read, ProfileBuilder& builder);

}  // namespace perfkit::session
