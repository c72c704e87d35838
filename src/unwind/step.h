// From a frame to its caller's: a pure function of a rule, four registers and the bytes of the stack.
//
// No allocation, no lock, no system call, every read checked: it runs in a signal handler as well as in a reader.
#pragma once

#include <cstdint>

#include "src/unwind/machine.h"
#include "src/unwind/rule.h"
#include "src/unwind/stack_bytes.h"

namespace perfkit::unwind {

// The registers that nearly all rules are about.
struct WalkState {
  uint64_t pc = 0, sp = 0, fp = 0;
  uint64_t lr = 0;          // aarch64; means something only where `interrupted`
  bool interrupted = true;  // pc is no return address: the innermost frame, or what a signal interrupted
  bool guess = false;       // nothing vouches for this frame
};

// Nobody calls from address 0 with a frame pointer of 0.
inline bool IsZeroCaller(const WalkState& at) { return at.pc == 0 && at.fp == 0 && !at.interrupted; }

namespace detail {

inline StackEnd Missing(const StackBytes& stack, const WalkState& at, uint64_t address) {
  return stack.Missing(address, at.interrupted && !stack.Holds(at.sp));
}

// With the CFA at hand.
template <class Machine>
bool LeaveFrame(const Rule& rule, uint64_t cfa, const StackBytes& stack, WalkState& at, StackEnd& why) {
  const bool in_lr = Machine::kLinkRegister && (rule.flags & Rule::kReturnInLr) != 0;
  // A leaf that saves nothing takes no stack; after that lr is taken.
  const bool may_stay = in_lr && at.interrupted;
  if (cfa < at.sp || (cfa == at.sp && !may_stay) || (in_lr && !at.interrupted)) {
    return why = StackEnd::kNoProgress, false;
  }
  const uint64_t slot = cfa + static_cast<uint64_t>(int64_t{rule.slot} * 8);
  uint64_t caller = at.lr, fp = at.fp;
  if (!in_lr) {
    uint64_t saved_at = cfa - 8;
    if constexpr (Machine::kLinkRegister) saved_at = (rule.flags & Rule::kReturnAtSlot) != 0 ? slot : slot + 8;
    if (!stack.Read(saved_at, caller)) return why = Missing(stack, at, saved_at), false;
  }
  // In an epilogue, behind the instruction that took fp back: the rule still says where it was, which is below sp.
  const bool taken_back = at.interrupted && slot < at.sp;
  if ((rule.flags & Rule::kRestoresFp) != 0 && !taken_back && !stack.Read(slot, fp)) {
    return why = Missing(stack, at, slot), false;
  }
  at = {Machine::CodeAddress(caller), cfa, fp, 0, (rule.flags & Rule::kSignalFrame) != 0, false};
  return true;
}

// Without information: [fp] is the caller's fp and the word behind it the return address, if this code has one.
template <class Machine>
bool FollowFramePointer(const StackBytes& stack, WalkState& at, StackEnd& why) {
  uint64_t caller = 0, fp = 0;
  const bool plausible = at.fp >= at.sp && at.fp % 8 == 0 && stack.Read(at.fp, fp) && stack.Read(at.fp + 8, caller) &&
                         (fp == 0 || fp > at.fp);
  if (!plausible) return why = StackEnd::kNoInfo, false;
  at = {Machine::CodeAddress(caller), at.fp + 16, fp, 0, false, true};
  return true;
}

// What was interrupted by a signal: all that it had in its registers. Its stack may be another one.
template <class Machine>
bool LeaveSignal(const Rule& rule, const StackBytes& stack, WalkState& at, StackEnd& why) {
  const uint64_t context = at.sp + static_cast<uint64_t>(int64_t{rule.offset});
  WalkState next{.lr = 0, .interrupted = true, .guess = false};
  const bool read = stack.Read(context + Machine::kContext[Machine::kPc], next.pc) &&
                    stack.Read(context + Machine::kContext[Machine::kSp], next.sp) &&
                    stack.Read(context + Machine::kContext[Machine::kFp], next.fp) &&
                    (!Machine::kLinkRegister || stack.Read(context + Machine::kContext[Machine::kLr], next.lr));
  if (!read) return why = Missing(stack, at, context + Machine::kContext[Machine::kPc]), false;
  at = next;
  return true;
}

}  // namespace detail

// Makes `at` the caller's frame. False: there is none, `why` says why, and `at` means nothing. kSlow is not for here.
template <class Machine>
bool Step(const Rule& rule, const StackBytes& stack, WalkState& at, StackEnd& why) {
  const auto offset = static_cast<uint64_t>(int64_t{rule.offset});
  bool stepped = false;
  // The two that nearly all code has share one path: which of them comes next no processor can foresee.
  if (rule.kind <= RuleKind::kFp && rule.kind >= RuleKind::kSp) [[likely]] {
    const bool by_sp = rule.kind == RuleKind::kSp;
    // Of aarch64 a chain of frame pointers does not tell sp.
    if (Machine::kLinkRegister && at.guess && by_sp) return detail::FollowFramePointer<Machine>(stack, at, why);
    stepped = detail::LeaveFrame<Machine>(rule, (by_sp ? at.sp : at.fp) + offset, stack, at, why);
  } else {
    switch (rule.kind) {
      case RuleKind::kPlt:
        stepped = detail::LeaveFrame<Machine>(rule, at.sp + 8 + (at.pc % 16 >= offset ? 8 : 0), stack, at, why);
        break;
      case RuleKind::kSignal: stepped = detail::LeaveSignal<Machine>(rule, stack, at, why); break;
      case RuleKind::kNone: stepped = detail::FollowFramePointer<Machine>(stack, at, why); break;
      case RuleKind::kRoot: why = StackEnd::kRoot; break;
      default: why = StackEnd::kNoInfo; break;
    }
  }
  // What starts a thread without information of its own leaves zeros where a caller would be (AMD64 ABI, 3.4.1).
  if (stepped && IsZeroCaller(at)) return why = StackEnd::kRoot, false;
  return stepped;
}

}  // namespace perfkit::unwind
