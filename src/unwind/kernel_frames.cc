// The kernel's part of a chain begins with the pc of the interrupted code. For hardware events with a precise pc, that
// is some instructions after the sampled one, so it is replaced by the sampled pc.
#include "perfkit/kernel_frames.h"

#include <algorithm>

namespace perfkit {

KernelFrames::KernelFrames(const Sample& sample) noexcept {
  const std::optional<uint64_t> pc = sample.ip();
  if (!pc || sample.cpu_mode() != CpuMode::kKernel) return;
  pc_ = *pc;
  in_kernel_ = true;
  const Words pcs = sample.chain().part(ChainContext::kKernel);
  has_chain_ = !pcs.empty();
  if (pcs.size() > 1) callers_ = pcs.subspan(1, pcs.size() - 1);
}

StackFrame KernelFrames::operator[](size_t i) const noexcept {
  return {.pc = i == 0 ? pc_ : callers_[i - 1], .is_return_address = i != 0, .is_kernel = true};
}

size_t KernelFrames::CopyTo(std::span<StackFrame> frames) const noexcept {
  const size_t count = std::min(frames.size(), size());
  for (size_t i = 0; i < count; ++i) frames[i] = (*this)[i];
  return count;
}

}  // namespace perfkit
