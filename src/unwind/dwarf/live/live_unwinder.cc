// LiveUnwinder and LiveStacks: the public interfaces of LiveTables.
#include "perfkit/live_unwinder.h"
#include "src/unwind/dwarf/live/live_tables.h"

namespace perfkit {
namespace {

// Returns the registers of the calling function's frame: those that functions preserve, sp and pc.
[[gnu::always_inline]] inline unwind::FullRegisters OwnRegisters() {
  unwind::FullRegisters registers;
#if defined(__x86_64__)
  constexpr unsigned kNumbers[] = {3, 6, 7, 12, 13, 14, 15, 16};
  uint64_t values[std::size(kNumbers)];
  asm volatile(
      "movq %%rbx, (%0)\n\tmovq %%rbp, 8(%0)\n\tmovq %%rsp, 16(%0)\n\tmovq %%r12, 24(%0)\n\tmovq %%r13, 32(%0)\n\t"
      "movq %%r14, 40(%0)\n\tmovq %%r15, 48(%0)\n\tleaq 0(%%rip), %%rax\n\tmovq %%rax, 56(%0)"
      :
      : "r"(values)
      : "rax", "memory");
#elif defined(__aarch64__)
  constexpr unsigned kNumbers[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
  uint64_t values[std::size(kNumbers)];
  asm volatile(
      "stp x19, x20, [%0]\n\tstp x21, x22, [%0, 16]\n\tstp x23, x24, [%0, 32]\n\tstp x25, x26, [%0, 48]\n\t"
      "stp x27, x28, [%0, 64]\n\tstp x29, x30, [%0, 80]\n\tmov x9, sp\n\tadr x10, .\n\tstp x9, x10, [%0, 96]"
      :
      : "r"(values)
      : "x9", "x10", "memory");
#endif
  for (size_t i = 0; i < std::size(kNumbers); ++i) registers.Set(kNumbers[i], values[i]);
  return registers;
}

}  // namespace

LiveUnwinder::LiveUnwinder() : tables_(std::make_unique<unwind::LiveTables>()) { (void)Maintain(); }
LiveUnwinder::LiveUnwinder(LiveUnwinder&&) noexcept = default;
LiveUnwinder& LiveUnwinder::operator=(LiveUnwinder&&) noexcept = default;
LiveUnwinder::~LiveUnwinder() = default;

absl::Status LiveUnwinder::Maintain() { return tables_->Maintain(); }
LiveStats LiveUnwinder::stats() const { return tables_->stats(); }

UnwoundStack LiveUnwinder::InterruptedStack(const void* context, std::span<StackFrame> frames,
                                            uint32_t outer) noexcept {
  return tables_->WalkBothEnds(*static_cast<const ucontext_t*>(context), frames, outer, sys::ThisTid());
}

UnwoundStack LiveUnwinder::CurrentStack(std::span<StackFrame> frames, uint32_t outer) noexcept {
  const UnwoundStack stack = tables_->WalkFrom(OwnRegisters(), true, frames, outer);
  return stack;
}

std::unique_ptr<unwind::LiveWalker> LiveStacks() { return std::make_unique<unwind::LiveTables>(); }

}  // namespace perfkit
