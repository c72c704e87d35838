// The kernel's part of a sample's stack, for samplers with CallStack::kernel.
//
//   const perfkit::KernelFrames kernel(sample);
//   for (size_t i = 0; i < kernel.size(); ++i) Use(kernel[i].code());
//
// The frames of user code come after these: those of Unwinder::Unwind, of the sample's LiveStack, or of the chain's
// part ChainContext::kUser. They begin at the pc to which the kernel returns. Unwinder::UnwindWithKernel joins the two.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "perfkit/sample.h"
#include "perfkit/stack_frame.h"

namespace perfkit {

// The frames of a sample that was taken in the kernel: the sampled pc, then its callers, from the innermost one to the
// kernel's entry. Empty for samples in user code. Without a chain (CallStack::kernel) it is the sampled pc alone. A
// view: valid as long as the record. Thread-safe and async-signal-safe to read; does not allocate.
//
// The kernel cuts chains at kernel.perf_event_max_stack pcs, 127 by default, or with CallStack::kFramePointers at
// CallStack::depth. If there are as many frames, the outermost ones may be missing.
class KernelFrames {
 public:
  KernelFrames() = default;
  // The sample needs the field IP.
  explicit KernelFrames(const Sample& sample) noexcept;

  // Returns the number of frames.
  size_t size() const noexcept { return in_kernel_ ? 1 + callers_.size() : 0; }
  bool empty() const noexcept { return !in_kernel_; }
  // Returns frame i, with StackFrame::is_kernel. Requires i < size().
  StackFrame operator[](size_t i) const noexcept;
  // Copies as many frames as fit, innermost first. Returns their number.
  size_t CopyTo(std::span<StackFrame> frames) const noexcept;

  // Returns true if the sample is in the kernel and has its chain there. Otherwise its callers are not known.
  bool has_chain() const noexcept { return has_chain_; }
  // Returns the pcs of all frames but the first: return addresses, innermost first.
  Words callers() const noexcept { return callers_; }

 private:
  uint64_t pc_ = 0;
  Words callers_;
  bool in_kernel_ = false, has_chain_ = false;
};

}  // namespace perfkit
