// A walk from frame to frame, over any memory and by any source of rules: that of samples, and that of live stacks.
//
//   Advance: pc ──code.RuleAt──> Rule ──Step──> next (pc, sp, fp)        nearly always
//                                 kSlow: all registers, from the innermost frame on again, by code.RowAt's whole rows
//
// `Code` is what knows the process's code:
//   bool RuleAt(uint64_t address, Rule& rule);                      false: nothing is mapped there
//   bool RowAt(uint64_t address, CfiRow& row, uint64_t& bias);     false: no whole row is known
//   FullRegisters Innermost();                                      those of the innermost frame
#pragma once

#include <optional>
#include <span>

#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/slow_step.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

// A stack under way.
template <class Stack>
struct StackWalk {
  WalkState at;
  Stack stack;
  std::span<StackFrame> frames;
  UnwoundStack found{};
  std::optional<FullRegisters> full{};  // of frame `full_at`, once a frame has needed them
  uint32_t full_at = 0;
  uint32_t slow = 0;  // frames that needed all registers

  bool End(StackEnd end) { return found.end = end, false; }

  // The frame that the walk has come to is one of the stack.
  bool Push() {
    if (found.frames == frames.size()) return End(StackEnd::kLimit);
    frames[found.frames++] = {at.pc, !at.interrupted, at.guess};
    found.guesses += at.guess;
    return true;
  }
};

inline uint64_t CodeOf(const WalkState& at) { return at.pc - (at.interrupted ? 0 : 1); }

namespace detail {

// To the caller with all registers, as far as they can be known.
template <class Machine, class Stack, class Code>
bool StepAll(const Stack& stack, Code& code, FullRegisters& registers, StackEnd& why) {
  WalkState at = StateOf<Machine>(registers);
  const uint64_t address = CodeOf(at);
  Rule rule;
  if (!code.RuleAt(address, rule)) return why = StackEnd::kNoMapping, false;
  const bool by_row = rule.kind != RuleKind::kNone && rule.kind != RuleKind::kSignal;
  CfiRow row;
  uint64_t bias = 0;
  if (by_row && code.RowAt(address, row, bias)) return SlowStep<Machine>(row, stack, bias, registers, why);
  // Of a guess only what was followed is known; of a signal's frame all is in one place.
  const uint64_t context = at.sp + static_cast<uint64_t>(int64_t{rule.offset});
  if (!Step<Machine>(rule, stack, at, why)) return false;
  registers = rule.kind == RuleKind::kSignal ? FromContext<Machine>(stack, context) : FromState<Machine>(at);
  return true;
}

// The walk has kept four registers; the others are found again, from the innermost frame on or the last one that needed
// them.
template <class Machine, class Stack, class Code>
bool SlowStep(StackWalk<Stack>& walk, Code& code, StackEnd& why) {
  ++walk.slow;
  if (!walk.full) {
    walk.full = code.Innermost();
    walk.full_at = 0;
  }
  const uint32_t here = walk.found.frames - 1;
  for (; walk.full_at < here; ++walk.full_at) {
    if (!StepAll<Machine>(walk.stack, code, *walk.full, why)) return why = StackEnd::kNoInfo, false;
    if (walk.full->ValueOr0(Machine::kPc) != walk.frames[walk.full_at + 1].pc) return why = StackEnd::kNoInfo, false;
  }
  if (!StepAll<Machine>(walk.stack, code, *walk.full, why)) return false;
  ++walk.full_at;
  walk.at = StateOf<Machine>(*walk.full);
  return true;
}

}  // namespace detail

// The frame that the walk has come to is taken, if code is there; then to its caller. False: the walk is over.
template <class Machine, class Stack, class Code>
bool Advance(StackWalk<Stack>& walk, Code& code) {
  Rule rule;
  const bool mapped = code.RuleAt(CodeOf(walk.at), rule);
  // What looked like a frame pointer was none.
  if (!mapped && walk.at.guess) return walk.End(StackEnd::kNoInfo);
  if ((mapped || walk.found.frames == 0) && !walk.Push()) return false;
  if (!mapped) return walk.End(StackEnd::kNoMapping);
  if (walk.stack.empty()) return walk.End(StackEnd::kNoStack);
  StackEnd why = StackEnd::kNoInfo;
  const bool stepped = rule.kind == RuleKind::kSlow ? detail::SlowStep<Machine>(walk, code, why)
                                                    : Step<Machine>(rule, walk.stack, walk.at, why);
  return stepped || walk.End(why);
}

}  // namespace perfkit::unwind
