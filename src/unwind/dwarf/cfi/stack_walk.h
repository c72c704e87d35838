// A walk from frame to frame, for any kind of memory and any source of rules. Used for samples and for live stacks.
//
//   Advance: pc ──code.RuleAt──> Rule ──Step──> next (pc, sp, fp)        nearly always
//                                 kSlow: recovers all registers, again from the innermost frame on, by code.RowAt
//
// `Code` is the process's code:
//   bool RuleAt(const WalkState& at, Rule& rule);                  returns false if nothing is mapped there
//   bool RowAt(uint64_t address, CfiRow& row, uint64_t& bias);     returns false if there is no row
//   bool IsCallOf(uint64_t address, uint64_t pc);                  returns true if a call before `address` may have led
//                                                                  to `pc`
//   bool IsAfterCall(uint64_t address);                            returns true if a call is before `address`, or may
//                                                                  be in code that can't be read
//   bool HasStackEnd();                                            returns false if the stack may go on after the last
//                                                                  word that can be read
//   FullRegisters Innermost();                                     returns the registers of the innermost frame
//
// If `outer` is not 0, a walk that has filled its room goes on, and overwrites the last `outer` frames in turns:
//
//   frames   [ 0 1 2 3 4 5 | 16 17 14 15 ]     outer = 4, laps = 2: frames 6 to 13 are overwritten
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "perfkit/stack_frame.h"
#include "src/unwind/dwarf/cfi/slow_step.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

// A walk in progress.
template <class Stack>
struct StackWalk {
  WalkState at;
  Stack stack;
  std::span<StackFrame> frames;
  UnwoundStack found{};
  std::optional<FullRegisters> full{};  // The registers of frame `full_at`, once a frame has needed them.
  uint32_t full_at = 0;
  uint32_t slow = 0;   // frames that needed all registers
  uint32_t outer = 0;  // Number of the last ones of `frames` that are for the outermost calls. At most frames.size().
  uint32_t laps = 0;   // How often the room was full.

  // Limits walks of damaged stacks, where signal frames may lead in a circle.
  static constexpr uint32_t kMaxOmitted = 1 << 16;

  // Ends the walk. Returns false.
  bool End(StackEnd end) { return found.end = end, false; }

  // Adds the current frame to the stack. Returns false if there is no room: then the walk has ended.
  bool Push() {
    if (found.frames == frames.size() && !Wrap()) return End(StackEnd::kLimit);
    frames[found.frames++] = {at.pc, !at.interrupted, at.guess};
    found.guesses += at.guess;
    return true;
  }

  // Makes room for the next frame in `outer`. Returns false if the walk has to end. Requires that the room is full.
  bool Wrap() {
    if (outer == 0 || uint64_t{laps} * outer >= kMaxOmitted) return false;
    ++laps;
    found.frames = inner();
    return true;
  }
  // Puts the outermost frames into order, and counts those that were overwritten. Call it once the walk has ended.
  void Finish() {
    if (laps == 0) return;
    const uint32_t newest = found.frames - inner();
    std::rotate(frames.begin() + inner(), frames.begin() + found.frames, frames.end());
    found.frames = static_cast<uint32_t>(frames.size());
    found.omitted = (laps - 1) * outer + newest;
    found.outer = found.omitted == 0 ? 0 : outer;
    found.guesses = static_cast<uint32_t>(
        std::count_if(frames.begin(), frames.end(), [](const StackFrame& frame) { return frame.is_guess; }));
  }

  // Returns the number of the latest frame, counted from the innermost one.
  uint32_t Index() const { return found.frames - 1 + laps * outer; }
  // Returns false if frame `index` has another pc. Frames that were overwritten may have any.
  bool MayHave(uint32_t index, uint64_t pc) const {
    if (laps > 0 && index >= inner()) {
      if (index + outer <= Index()) return true;
      index = inner() + (index - inner()) % outer;
    }
    return frames[index].pc == pc;
  }

 private:
  uint32_t inner() const { return static_cast<uint32_t>(frames.size()) - outer; }
};

// Returns the address to look up for a frame.
inline uint64_t CodeOf(const WalkState& at) { return at.pc - (at.interrupted ? 0 : 1); }

namespace detail {

// How far StepToRoot looks: words of a frame. musl 1.2.3 has 6.
constexpr uint64_t kMaxWordsToRoot = 16;

// Makes `at` the outermost frame, if the first return address above sp is in code that is the root of stacks: code
// that was called by it, as musl's libc_start_main_stage2 and start, may have no information. There is one such word
// in a stack, at its end, and no call is passed over, because each would have left a return address.
template <class Stack, class Code>
bool StepToRoot(const Stack& stack, Code& code, WalkState& at) {
  for (uint64_t i = 1; i <= kMaxWordsToRoot; ++i) {
    const uint64_t end = at.sp + i * sizeof(uint64_t);
    WalkState caller{0, end, 0, 0, false, true};
    Rule rule;
    if (!stack.Read(end - sizeof(uint64_t), caller.pc)) return false;
    if (!code.IsAfterCall(caller.pc)) continue;
    if (!code.RuleAt(caller, rule)) return false;
    if (rule.kind != RuleKind::kRoot && rule.kind != RuleKind::kEntry) return false;
    at = caller;
    return true;
  }
  return false;
}

// Returns true if the frame pointer leads to a return address. In code that the root calls it does so by chance only:
// the root has set it to 0, and the code may have put another value there.
template <class Stack, class Code>
bool LeadsToCall(const Stack& stack, Code& code, const WalkState& at) {
  uint64_t caller = 0, caller_fp = 0;
  return ReadFramePointer(stack, at.sp, at.fp, caller, caller_fp) && code.IsAfterCall(caller);
}

// How many words above sp IsOutermost looks at.
constexpr uint64_t kMaxWordsAbove = 64;

// Returns true if the stack ends at most kMaxWordsAbove words above sp, and none of them is a return address: the
// address after a call, or that of the code which returns from a signal's handler. Programs use fp for any value, so an
// fp of 0 alone does not mark the outermost frame.
template <class Stack, class Code>
bool IsOutermost(const Stack& stack, Code& code, const WalkState& at) {
  WalkState caller{0, 0, 0, 0, false, true};
  Rule rule;
  for (uint64_t i = 0; i < kMaxWordsAbove; ++i) {
    if (!stack.Read(at.sp + i * sizeof(uint64_t), caller.pc)) return i > 0 && code.HasStackEnd();
    if (code.IsAfterCall(caller.pc)) return false;
    if (code.RuleAt(caller, rule) && rule.kind == RuleKind::kSignal) return false;
  }
  return false;
}

// Returns true if a return address in code without information, as that of the entry point, is among the words above
// sp. Above a program's outermost frame are its arguments.
template <class Stack, class Code>
bool IsCalledByEntry(const Stack& stack, Code& code, const WalkState& at) {
  WalkState caller{0, 0, 0, 0, false, true};
  Rule rule;
  for (uint64_t i = 0; i < kMaxWordsToRoot && stack.Read(at.sp + i * sizeof(uint64_t), caller.pc); ++i) {
    if (!code.IsAfterCall(caller.pc) || !code.RuleAt(caller, rule)) continue;
    if (rule.kind == RuleKind::kEntry || rule.kind == RuleKind::kNone) return true;
  }
  return false;
}

// Steps from a frame by a rule other than kSlow. A frame of kClearsFp or kEntry is the root, unless a return address
// above sp says otherwise: then it is as one without information. Without information there are four ways, the first
// that is possible is taken, and all give guesses: the word at sp, because a leaf that was interrupted may have pushed
// nothing; the frame pointer, if it leads to a call; the root; the frame pointer.
template <class Machine, class Stack, class Code>
bool StepByRule(const Rule& rule, const Stack& stack, Code& code, WalkState& at, StackEnd& why) {
  if (rule.kind == RuleKind::kClearsFp && at.fp == 0 && IsOutermost(stack, code, at)) {
    why = StackEnd::kRoot;
    return false;
  }
  const bool is_called = rule.kind == RuleKind::kEntry && IsCalledByEntry(stack, code, at);
  const bool no_info = rule.kind == RuleKind::kNone || rule.kind == RuleKind::kClearsFp || is_called;
  uint64_t top = 0;
  if (!Machine::kLinkRegister && no_info && at.interrupted && stack.Read(at.sp, top) && code.IsCallOf(top, at.pc)) {
    at = {top, at.sp + 8, at.fp, 0, false, true};
    return true;
  }
  if (!Machine::kLinkRegister && no_info && !LeadsToCall(stack, code, at) && StepToRoot(stack, code, at)) return true;
  return Step<Machine>(no_info ? Rule() : rule, stack, at, why);
}

// Steps to the caller with all registers that can be recovered.
template <class Machine, class Stack, class Code>
bool StepAll(const Stack& stack, Code& code, FullRegisters& registers, StackEnd& why) {
  WalkState at = StateOf<Machine>(registers);
  const uint64_t address = CodeOf(at);
  Rule rule;
  if (!code.RuleAt(at, rule)) return why = StackEnd::kNoMapping, false;
  const bool by_row = rule.kind != RuleKind::kNone && rule.kind != RuleKind::kSignal;
  CfiRow row;
  uint64_t bias = 0;
  if (by_row && code.RowAt(address, row, bias)) return SlowStep<Machine>(row, stack, bias, registers, why);
  // After a guess only the four registers of the walk are known; a signal's frame has all registers in its context.
  const uint64_t context = at.sp + static_cast<uint64_t>(int64_t{rule.offset});
  if (!StepByRule<Machine>(rule, stack, code, at, why)) return false;
  registers = rule.kind == RuleKind::kSignal ? FromContext<Machine>(stack, context) : FromState<Machine>(at);
  return true;
}

// The walk keeps four registers only. Recovers the others, starting at the last frame that needed them or else at the
// innermost one.
template <class Machine, class Stack, class Code>
bool SlowStep(StackWalk<Stack>& walk, Code& code, StackEnd& why) {
  ++walk.slow;
  if (!walk.full) {
    walk.full = code.Innermost();
    walk.full_at = 0;
  }
  const uint32_t here = walk.Index();
  for (; walk.full_at < here; ++walk.full_at) {
    if (!StepAll<Machine>(walk.stack, code, *walk.full, why)) return why = StackEnd::kNoInfo, false;
    if (!walk.MayHave(walk.full_at + 1, walk.full->ValueOr0(Machine::kPc))) return why = StackEnd::kNoInfo, false;
  }
  if (!StepAll<Machine>(walk.stack, code, *walk.full, why)) return false;
  ++walk.full_at;
  walk.at = StateOf<Machine>(*walk.full);
  return true;
}

}  // namespace detail

// Adds the current frame to the stack, if it is in mapped code, and moves to its caller. Returns false if the walk has
// ended.
template <class Machine, class Stack, class Code>
bool Advance(StackWalk<Stack>& walk, Code& code) {
  Rule rule;
  const bool mapped = code.RuleAt(walk.at, rule);
  // The frame pointer of a guess was not a frame pointer.
  if (!mapped && walk.at.guess) return walk.End(StackEnd::kNoInfo);
  if ((mapped || walk.found.frames == 0) && !walk.Push()) return false;
  if (!mapped) return walk.End(StackEnd::kNoMapping);
  if (walk.stack.empty()) return walk.End(StackEnd::kNoStack);
  StackEnd why = StackEnd::kNoInfo;
  const bool stepped = rule.kind == RuleKind::kSlow ? detail::SlowStep<Machine>(walk, code, why)
                                                    : detail::StepByRule<Machine>(rule, walk.stack, code, walk.at, why);
  return stepped || walk.End(why);
}

}  // namespace perfkit::unwind
