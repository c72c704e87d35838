// The frames that nearly all stacks are made of, in few instructions: their rules are in the cache, and are one of the
// two usual ones. Whatever else there is, this stops before it, and leaves it to those who know.
//
//   Start ──> Advance ──> LookUp ──> Advance ──> LookUp ── something else ──> at(), found()
//
// Asking and leaving are apart, so that one walk's words can come from memory while others go on.
#pragma once

#include <cstdint>
#include <span>

#include "src/unwind/rule_cache.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

// A value: small, and in registers where it is a local one.
class FastPathWalk {
 public:
  using Machine = ThisMachine;

  FastPathWalk() = default;
  // Goes on with a walk that is at `at` and has found so many of its frames.
  FastPathWalk(const WalkState& at, const StackBytes& stack, std::span<StackFrame> frames, uint32_t found,
               uint32_t generation)
      : at_(at),
        stack_(stack),
        begin_(frames.data()),
        frame_(begin_ + found),
        end_(begin_ + frames.size()),
        generation_(RuleCache::KeyOf(0, generation)) {}

  // The first look for a rule. False: there is none here.
  bool Start(const RuleCache& cache) {
    // What a signal has interrupted may be on another stack, and a guess has to be seen through.
    if (at_.guess || (at_.interrupted && frame_ != begin_)) return false;
    const uint64_t code = at_.pc - (at_.interrupted ? 0 : 1);
    return CanLookUp(code) && Plan(cache.Find(code | generation_, slot_)) && next_.KnowsFp(at_);
  }
  // Looks for the rule of the frame that it has come to. False: it is not here, or not a usual one.
  bool LookUp(RuleCache& cache) {
    const uint64_t code = at_.pc - 1;
    return CanLookUp(code) && Plan(cache.FindCaller(code | generation_, slot_));
  }
  // Brings near what Advance will read.
  void Prefetch() const {
    stack_.Prefetch(next_.caller_at);
    stack_.Prefetch(next_.fp_at);
  }
  // Takes the frame, and goes to its caller. False: it could not, and is where it was.
  bool Advance() {
    const uint64_t pc = at_.pc;
    const bool interrupted = at_.interrupted;
    if (!next_.Advance(stack_, at_)) return false;
    *frame_++ = {pc, !interrupted, false, false};
    return true;
  }

  const WalkState& at() const { return at_; }
  uint32_t found() const { return static_cast<uint32_t>(frame_ - begin_); }

 private:
  bool CanLookUp(uint64_t code) const { return frame_ != end_ && RuleCache::CanHold(code); }
  bool Plan(const Rule* rule) {
    if (rule == nullptr || !FastPathFrame<Machine>::Is(*rule)) return false;
    next_ = FastPathFrame<Machine>(*rule, at_);
    return true;
  }

  WalkState at_;
  FastPathFrame<Machine> next_;
  StackBytes stack_;
  StackFrame *begin_ = nullptr, *frame_ = nullptr, *end_ = nullptr;
  uint64_t generation_ = 0;  // as a part of keys
  RuleCache::Slot slot_ = 0;
};

}  // namespace perfkit::unwind
