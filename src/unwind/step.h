// The step from a frame to its caller: a function of a rule, four registers and the stack.
//
// Does not allocate or lock, makes no system call, and checks each read, so it works in a signal handler as well as in
// a reader of samples. The stack is a copy (StackBytes) or the memory itself (OwnStackReader).
#pragma once

#include <cstdint>

#include "src/unwind/machine.h"
#include "src/unwind/rule.h"
#include "src/unwind/stack_bytes.h"

namespace perfkit::unwind {

// The registers that nearly all rules use.
struct WalkState {
  uint64_t pc = 0, sp = 0, fp = 0;
  uint64_t lr = 0;  // aarch64; valid only if `interrupted`.
  // pc is not a return address: it is the innermost frame's, or that of code which a signal interrupted.
  bool interrupted = true;
  bool guess = false;  // The frame was found by an unconfirmed frame pointer or word.
};

// Returns true for a caller with pc and fp of 0: the code that starts a thread leaves zeros there.
inline bool IsZeroCaller(const WalkState& at) { return at.pc == 0 && at.fp == 0 && !at.interrupted; }

namespace detail {

// Returns why the walk ends that could not read `address` of the stack.
template <class Stack>
StackEnd Missing(const Stack& stack, const WalkState& at, uint64_t address) {
  return stack.Missing(address, at.interrupted && !stack.Holds(at.sp));
}

// The step, once the CFA is known.
template <class Machine, class Stack>
bool AdvanceFrame(const Rule& rule, uint64_t cfa, const Stack& stack, WalkState& at, StackEnd& why) {
  const bool in_lr = Machine::kLinkRegister && (rule.flags & Rule::kReturnInLr) != 0;
  // A leaf on aarch64 may save nothing, so its CFA is sp. Only the innermost function can be one: lr has one value.
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
  // In an epilogue, after the instruction that restores fp, the rule still names its slot, which is now below sp.
  const bool taken_back = at.interrupted && slot < at.sp;
  if ((rule.flags & Rule::kRestoresFp) != 0 && !taken_back && !stack.Read(slot, fp)) {
    return why = Missing(stack, at, slot), false;
  }
  at = {Machine::CodeAddress(caller), cfa, fp, 0, (rule.flags & Rule::kSignalFrame) != 0, false};
  return true;
}

// Without information: [fp] is the caller's fp and the word after it the return address, if this code has a frame
// pointer. The caller's fp is not checked: it is no frame pointer if the caller has none. Returns false if fp can't be
// one.
template <class Stack>
[[gnu::always_inline]] inline bool ReadFramePointer(const Stack& stack, uint64_t sp, uint64_t fp, uint64_t& caller,
                                                    uint64_t& caller_fp) {
  return fp >= sp && fp % 8 == 0 && stack.Read(fp, caller_fp) && stack.Read(fp + 8, caller);
}
// The walk checks that the return address is in code.
template <class Machine, class Stack>
bool FollowFramePointer(const Stack& stack, WalkState& at, StackEnd& why) {
  uint64_t caller = 0, fp = 0;
  if (!ReadFramePointer(stack, at.sp, at.fp, caller, fp)) return why = StackEnd::kNoInfo, false;
  at = {Machine::CodeAddress(caller), at.fp + 16, fp, 0, false, true};
  return true;
}

// The frame that a signal interrupted: all its registers are in the ucontext, and its stack may be another one.
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

// A frame with one of the two most frequent rules: where the caller's registers are. There is no branch on whether fp
// was saved, because a processor can't predict that. It can predict whether the CFA comes from sp, as in nearly all
// code, or from fp, as in code with frame pointers. With that prediction it computes several CFAs ahead, before any
// word of the stack has come from memory.
template <class Machine>
struct FastPathFrame {
  uint64_t cfa = 0;
  uint64_t caller_at = 0, fp_at = 0;  // Addresses of the words to read.
  bool fp_saved = false;              // If not, the word at fp_at is not used.

  // Returns true if the rule is one of these two kinds, with no other flag. Tests both bytes at once.
  static bool Is(const Rule& rule) {
    static_assert(RuleKind::kSp == RuleKind(0) && RuleKind::kFp == RuleKind(1) && Rule::kRestoresFp == 1);
    return ((static_cast<unsigned>(rule.kind) | rule.flags) & ~1u) == 0;
  }

  FastPathFrame() = default;
  FastPathFrame(const Rule& rule, const WalkState& at) : FastPathFrame(rule, at.sp, at.fp) {}
  FastPathFrame(const Rule& rule, uint64_t sp, uint64_t fp)
      : cfa(Base(rule, sp, fp) + static_cast<uint64_t>(int64_t{rule.offset})),
        fp_at(cfa + static_cast<uint64_t>(int64_t{rule.slot} * 8)),
        fp_saved(rule.flags != 0) {
    caller_at = Machine::kLinkRegister ? fp_at + 8 : cfa - 8;
  }

  static uint64_t Base(const Rule& rule, uint64_t sp, uint64_t fp) {
    uint64_t base = sp;
    if (rule.kind == RuleKind::kFp) [[unlikely]] {
      base = fp;
      __asm__("" : "+r"(base));  // Forces a branch: a conditional move would wait for fp, which is read from the stack.
    }
    return base;
  }

  // Returns false after the instruction of an epilogue that restores fp: then the word at fp_at is below sp.
  bool KnowsFp(const WalkState& at) const { return !at.interrupted || !fp_saved || fp_at >= at.sp; }

  // Returns true for return addresses from 1 to 2^48. Programs have higher ones only if they explicitly ask for them.
  static constexpr bool IsUsual(uint64_t pc) { return (pc - 1) >> 48 == 0; }

  // Reads the caller's pc and fp; its sp is the CFA. Returns false if anything is unusual: then Step decides.
  template <class Stack>
  [[gnu::always_inline]] bool Read(const Stack& stack, uint64_t sp, uint64_t fp, uint64_t& pc,
                                   uint64_t& caller_fp) const {
    uint64_t caller = 0, saved = 0;
    if (cfa <= sp || !stack.Read(caller_at, caller) || !stack.Read(fp_at, saved)) return false;
    pc = Machine::CodeAddress(caller);
    caller_fp = __builtin_expect_with_probability(fp_saved, 1, 0.5) ? saved : fp;  // A conditional move.
    return IsUsual(pc);
  }
  // Makes `at` the caller's state. Returns false, with `at` unchanged, if anything is unusual.
  template <class Stack>
  bool Advance(const Stack& stack, WalkState& at) const {
    uint64_t pc = 0, fp = 0;
    if (!Read(stack, at.sp, at.fp, pc, fp)) return false;
    at = {pc, cfa, fp, 0, false, false};
    return true;
  }
};

// Makes `at` the caller's state. Returns false if there is no caller: then `why` says why, and `at` is unspecified.
// Requires that the rule is not kSlow.
template <class Machine, class Stack>
bool Step(const Rule& rule, const Stack& stack, WalkState& at, StackEnd& why) {
  const auto offset = static_cast<uint64_t>(int64_t{rule.offset});
  const bool may_be_new = at.interrupted && !Machine::kLinkRegister && rule == Rule{.offset = 8, .kind = RuleKind::kSp};
  bool stepped = false;
  // The two most frequent kinds share one path, because a processor can't predict which of them comes next.
  if (rule.kind <= RuleKind::kFp) [[likely]] {
    const bool by_sp = rule.kind == RuleKind::kSp;
    // On aarch64 a chain of frame pointers does not determine sp.
    if (Machine::kLinkRegister && at.guess && by_sp) return detail::FollowFramePointer<Machine>(stack, at, why);
    stepped = detail::AdvanceFrame<Machine>(rule, (by_sp ? at.sp : at.fp) + offset, stack, at, why);
  } else {
    switch (rule.kind) {
      case RuleKind::kPlt:
        stepped = detail::AdvanceFrame<Machine>(rule, at.sp + 8 + (at.pc % 16 >= offset ? 8 : 0), stack, at, why);
        break;
      case RuleKind::kSignal: stepped = detail::AdvanceSignal<Machine>(rule, stack, at, why); break;
      case RuleKind::kClearsFp:
      case RuleKind::kNone: stepped = detail::FollowFramePointer<Machine>(stack, at, why); break;
      case RuleKind::kRoot:
      case RuleKind::kEntry: why = StackEnd::kRoot; break;
      case RuleKind::kInstalls: why = StackEnd::kNoInfo; break;
      default: why = StackEnd::kNoInfo; break;
    }
  }
  // The code that starts a thread, if it has no information of its own, leaves zeros for the caller (AMD64 ABI, 3.4.1).
  // On x86-64, a guessed frame pointer may have led to zeros of anything; on arm64 they end each chain.
  const bool may_be_data = at.guess && !Machine::kLinkRegister;
  if (stepped && IsZeroCaller(at) && !may_be_data) return why = StackEnd::kRoot, false;
  // A new thread that is still in glibc's clone3: its stack is empty, but the information there is about its parent's
  // frame, and fp has the parent's value. A damaged return address of 0 would look alike, but its function would crash
  // when it returns.
  if (stepped && may_be_new && at.pc == 0) return why = StackEnd::kRoot, false;
  return stepped;
}

}  // namespace perfkit::unwind
