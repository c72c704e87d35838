// The user part of the call chain.
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
