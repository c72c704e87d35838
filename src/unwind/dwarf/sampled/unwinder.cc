// Unwinder: the public interface of a Walker; and StackUse.
#include "perfkit/unwinder.h"

#include <algorithm>

#include "perfkit/kernel_frames.h"
#include "src/sys/max_chain.h"
#include "src/unwind/dwarf/sampled/walker.h"

namespace perfkit {

// Halves all counts at kMany stacks, so that older stacks count less.
void StackUse::Add(const UnwoundStack& stack) {
  constexpr uint32_t kMany = 4096;
  const size_t kib = (uint64_t{stack.stack_bytes} + 1023) / 1024;
  ++counts_[stack.end == StackEnd::kTruncated ? kMax : std::min(kib, kMax)];
  if (++total_ < kMany) return;
  total_ = 0;
  for (uint32_t& count : counts_) total_ += count /= 2;
}

uint32_t StackUse::BytesFor(double share) const {
  double left = share * total_;
  for (size_t kib = 0; kib <= kMax; ++kib) {
    left -= counts_[kib];
    if (left <= 0 && total_ > 0) return static_cast<uint32_t>(std::max<size_t>(kib, 1) << 10);
  }
  return total_ == 0 ? 0 : kMax << 10;
}

Unwinder::Unwinder(UnwinderOptions options)
    : walker_(std::make_unique<unwind::Walker>(options)), max_chain_(sys::MaxCallChain(options.proc)) {}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

bool Unwinder::Add(const RawRecord& record, const SampleLayout& layout) { return walker_->Add(record, layout); }
absl::Status Unwinder::AddProcess(pid_t pid) { return walker_->AddProcess(pid); }
UnwoundStack Unwinder::Unwind(const Sample& sample, std::span<StackFrame> frames) {
  return walker_->Unwind(sample, frames);
}
JoinedStack Unwinder::UnwindWithKernel(const Sample& sample, std::span<StackFrame> frames) {
  const KernelFrames kernel(sample);
  JoinedStack stack;
  stack.kernel_frames = static_cast<uint32_t>(kernel.CopyTo(frames));
  const bool may_lack_callers = !kernel.has_chain() || kernel.size() >= max_chain_;
  stack.kernel_cut = !kernel.empty() && (may_lack_callers || stack.kernel_frames < kernel.size());
  stack.user = walker_->Unwind(sample, frames.subspan(stack.kernel_frames));
  return stack;
}
void Unwinder::Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks) {
  walker_->Unwind(samples, frames, stacks);
}
UnwinderStats Unwinder::stats() const { return walker_->stats(); }

}  // namespace perfkit
