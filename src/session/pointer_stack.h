// The stack of a sample by the frame pointers that the kernel has followed.
#pragma once

#include <span>

#include "perfkit/sample.h"
#include "perfkit/stack_frame.h"

namespace perfkit::session {

// Writes the frames of user code, innermost first, as many as fit, and returns them. All but the first are guesses, and
// the kernel does not say whether its chain has reached the root.
std::span<const StackFrame> FramesByPointers(const Sample& sample, std::span<StackFrame> frames);

}  // namespace perfkit::session
