// The user part of the call chain. The first pc is the thread's own; each one after it was read from where a frame
// pointer pointed to, which nothing confirms: code may use that register for something else.
#include "src/session/pointer_stack.h"

namespace perfkit::session {

std::span<const StackFrame> FramesByPointers(const Sample& sample, std::span<StackFrame> frames) {
  size_t count = 0;
  for (const uint64_t pc : sample.chain().part(ChainContext::kUser)) {
    if (count == frames.size()) break;
    frames[count] = {.pc = pc, .is_return_address = count > 0, .is_guess = count > 0};
    ++count;
  }
  return frames.first(count);
}

}  // namespace perfkit::session
