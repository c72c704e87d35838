// From a frame to its caller's: a pure function of a rule, four registers and the stack.
//
// No allocation, no lock, no system call, every read checked: it runs in a signal handler as well as in a reader. The
// stack is a copy (StackBytes) or the memory itself (OwnStackReader).
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

template <class Stack>
StackEnd Missing(const Stack& stack, const WalkState& at, uint64_t address) {
  return stack.Missing(address, at.interrupted && !stack.Holds(at.sp));
}

// With the CFA at hand.
template <class Machine, class Stack>
bool AdvanceFrame(const Rule& rule, uint64_t cfa, const Stack& stack, WalkState& at, StackEnd& why) {
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
  // In an epilogue, after the instruction that took fp back: the rule still says where it was, which is below sp.
  const bool taken_back = at.interrupted && slot < at.sp;
  if ((rule.flags & Rule::kRestoresFp) != 0 && !taken_back && !stack.Read(slot, fp)) {
    return why = Missing(stack, at, slot), false;
  }
  at = {Machine::CodeAddress(caller), cfa, fp, 0, (rule.flags & Rule::kSignalFrame) != 0, false};
  return true;
}

// Without information: [fp] is the caller's fp and the word after it the return address, if this code has one. Nothing
// is asked of the caller's fp, which is no frame pointer if the caller has none; that there is code at the return
// address, the walk looks.
template <class Machine, class Stack>
bool FollowFramePointer(const Stack& stack, WalkState& at, StackEnd& why) {
  uint64_t caller = 0, fp = 0;
  const bool plausible = at.fp >= at.sp && at.fp % 8 == 0 && stack.Read(at.fp, fp) && stack.Read(at.fp + 8, caller);
  if (!plausible) return why = StackEnd::kNoInfo, false;
  at = {Machine::CodeAddress(caller), at.fp + 16, fp, 0, false, true};
  return true;
}

// What was interrupted by a signal: all that it had in its registers. Its stack may be another one.
template <class Machine, class Stack>
bool AdvanceSignal(const Rule& rule, const Stack& stack, WalkState& at, StackEnd& why) {
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

// Where the two rules that nearly all code has find a frame's caller, without a branch that depends on whether fp was
// saved, for no processor can foresee that. It can foresee that a CFA is found by sp, as in nearly all code, or by fp,
// as in nearly all code with frame pointers; and where it does, one CFA after the other is known before any word of the
// stack has come from memory.
template <class Machine>
struct FastPathFrame {
  uint64_t cfa = 0;
  uint64_t caller_at = 0, fp_at = 0;  // the words of the stack that are read
  uint64_t fp_mask = 0;               // all ones where fp was saved; else what is read there is of no use

  static bool Is(const Rule& rule) {
    return (rule.kind == RuleKind::kSp || rule.kind == RuleKind::kFp) && rule.flags <= Rule::kRestoresFp;
  }

  FastPathFrame() = default;
  FastPathFrame(const Rule& rule, const WalkState& at)
      : cfa(Base(rule, at) + static_cast<uint64_t>(int64_t{rule.offset})),
        fp_at(cfa + static_cast<uint64_t>(int64_t{rule.slot} * 8)),
        fp_mask(0 - uint64_t{rule.flags}) {
    caller_at = Machine::kLinkRegister ? fp_at + 8 : cfa - 8;
  }

  static uint64_t Base(const Rule& rule, const WalkState& at) {
    uint64_t base = at.sp;
    if (rule.kind == RuleKind::kFp) [[unlikely]] {
      base = at.fp;
      __asm__("" : "+r"(base));  // a branch: a conditional move would wait for fp, which was read from the stack
    }
    return base;
  }

  // Whether fp is still where the rule says: not after the instruction of an epilogue that took it back.
  bool KnowsFp(const WalkState& at) const { return !at.interrupted || fp_mask == 0 || fp_at >= at.sp; }

  // Makes `at` the caller's. False, and `at` as it was: something is out of the ordinary, which is for Step to say.
  template <class Stack>
  bool Advance(const Stack& stack, WalkState& at) const {
    uint64_t caller = 0, fp = 0;
    if (cfa <= at.sp || !stack.Read(caller_at, caller) || !stack.Read(fp_at, fp)) return false;
    const uint64_t pc = Machine::CodeAddress(caller);
    if (pc == 0) return false;
    at = {pc, cfa, at.fp ^ ((at.fp ^ fp) & fp_mask), 0, false, false};
    return true;
  }
};

// Makes `at` the caller's frame. False: there is none, `why` says why, and `at` means nothing. kSlow is not for here.
template <class Machine, class Stack>
bool Step(const Rule& rule, const Stack& stack, WalkState& at, StackEnd& why) {
  const auto offset = static_cast<uint64_t>(int64_t{rule.offset});
  bool stepped = false;
  // The two that nearly all code has share one path: which of them comes next no processor can foresee.
  if (rule.kind <= RuleKind::kFp && rule.kind >= RuleKind::kSp) [[likely]] {
    const bool by_sp = rule.kind == RuleKind::kSp;
    // Of aarch64 a chain of frame pointers does not tell sp.
    if (Machine::kLinkRegister && at.guess && by_sp) return detail::FollowFramePointer<Machine>(stack, at, why);
    stepped = detail::AdvanceFrame<Machine>(rule, (by_sp ? at.sp : at.fp) + offset, stack, at, why);
  } else {
    switch (rule.kind) {
      case RuleKind::kPlt:
        stepped = detail::AdvanceFrame<Machine>(rule, at.sp + 8 + (at.pc % 16 >= offset ? 8 : 0), stack, at, why);
        break;
      case RuleKind::kSignal: stepped = detail::AdvanceSignal<Machine>(rule, stack, at, why); break;
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
