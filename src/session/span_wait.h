// What a profile says of a time off the CPU.
#pragma once

#include <optional>

#include "perfkit/profile_builder.h"
#include "src/session/off_cpu.h"

namespace perfkit::session {

// Returns nullopt if only its preemption, or that it was not preempted, is known. `has_read`: the thread had something
// read from a disk at about that time. That explains a wait if nothing else is known.
std::optional<ProfileWait> WaitOfSpan(const OffCpuSpan& span, bool has_read, ProfileBuilder& builder);

}  // namespace perfkit::session
