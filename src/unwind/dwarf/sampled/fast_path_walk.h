// The fast path of unwinding, for nearly all frames: the rule is in the cache and of one of the two most frequent
// kinds. Ends at the root, and stops before any other frame, which the slow path then steps over.
//
//   Start ──> Advance ──> LookUp ──> Advance ──> LookUp ─┬─ another kind of frame ──> at(), found()
//                                                        └─ the root ──> TakeRoot
//
// LookUp and Advance are separate, so that several walks can take turns: one waits for its stack's words to come from
// memory while others go on.
#pragma once

#include <cstdint>
#include <span>

#include "src/unwind/dwarf/sampled/rule_cache.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

// The state of one walk. Small, so that a local variable of this type stays in registers.
class FastPathWalk {
 public:
  using Machine = ThisMachine;

  FastPathWalk() = default;
  // Continues the walk whose state is `at` and which has written `found` of its `frames`.
  FastPathWalk(const WalkState& at, const StackBytes& stack, std::span<StackFrame> frames, uint32_t found,
               uint32_t generation)
      : at_(at),
        stack_(stack),
        begin_(frames.data()),
        frame_(begin_ + found),
        end_(begin_ + frames.size()),
        generation_(RuleCache::KeyOf(0, generation)) {}

  // Looks up the rule of the first frame. Returns false if this frame is not one for the fast path.
  bool Start(const RuleCache& cache) {
    // The code that a signal interrupted may have another stack, and a guess has to be verified.
    if (at_.guess || (at_.interrupted && frame_ != begin_)) return false;
    const uint64_t code = at_.pc - (at_.interrupted ? 0 : 1);
    return frame_ != end_ && RuleCache::CanHold(code) && Plan(cache.Find(code | generation_, slot_)) &&
           next_.KnowsFp(at_);
  }
  // Looks up the rule of the frame after Advance. Returns false if it is not in the cache, or is of another kind.
  bool LookUp(RuleCache& cache) {
    // Advance accepts only addresses that the cache can hold.
    static_assert(!FastPathFrame<Machine>::IsUsual((uint64_t{1} << RuleCache::kAddressBits) + 1));
    rule_ = frame_ != end_ ? cache.FindCaller((at_.pc - 1) | generation_, slot_) : nullptr;
    return Plan(rule_);
  }
  // Writes the frame that LookUp has stopped before, if that is the root. Returns false, and does nothing, if not.
  bool TakeRoot() {
    if (rule_ == nullptr || rule_->kind != RuleKind::kRoot) return false;
    *frame_++ = {at_.pc, true, false, false};
    return true;
  }
  // Prefetches the words of the stack that Advance reads.
  void Prefetch() const {
    stack_.Prefetch(next_.caller_at);
    stack_.Prefetch(next_.fp_at);
  }
  // Writes the frame and moves to its caller. Returns false, and stays, if the caller can't be found.
  bool Advance() {
    const uint64_t pc = at_.pc;
    const bool interrupted = at_.interrupted;
    if (!next_.Advance(stack_, at_)) return rule_ = nullptr, false;
    *frame_++ = {pc, !interrupted, false, false};
    return true;
  }

  const WalkState& at() const { return at_; }
  uint32_t found() const { return static_cast<uint32_t>(frame_ - begin_); }

 private:
  // Computes where the caller's registers are.
  bool Plan(const Rule* rule) {
    if (rule == nullptr || !FastPathFrame<Machine>::Is(*rule)) return false;
    next_ = FastPathFrame<Machine>(*rule, at_);
    return true;
  }

  WalkState at_;
  FastPathFrame<Machine> next_;
  StackBytes stack_;
  StackFrame *begin_ = nullptr, *frame_ = nullptr, *end_ = nullptr;
  uint64_t generation_ = 0;  // As the high bits of the cache's keys.
  RuleCache::Slot slot_ = 0;
  // What LookUp has found; nullptr if nothing, and after an Advance that failed. Valid until the next RuleCache::Put.
  const Rule* rule_ = nullptr;
};

}  // namespace perfkit::unwind
