// Walks stacks one by one, remembers the complete ones, and completes truncated ones from them.
#include <algorithm>

#include "src/unwind/dwarf/sampled/walker.h"

namespace perfkit::unwind {

// Returns a frame's CFA if its rule gives it without all registers, else kNoCfa. On aarch64 a guess does not determine
// sp.
uint64_t Walker::CfaOf(const Walk& walk, const WalkState& at) {
  Rule rule;
  if (!rules_.RuleAt(walk.process, walk.generation, CodeOf(at), rule)) return KnownCall::kNoCfa;
  const auto offset = static_cast<uint64_t>(int64_t{rule.offset});
  if (rule.kind == RuleKind::kSp && !(Machine::kLinkRegister && at.guess)) return at.sp + offset;
  return rule.kind == RuleKind::kFp ? at.fp + offset : KnownCall::kNoCfa;
}

UnwoundStack Walker::UnwindAndStitch(const Sample& sample, std::span<StackFrame> frames) {
  Walk walk;
  calls_.clear();
  if (!Begin(sample, frames, walk)) return walk.found;
  WalkState last;
  for (bool more = true; more;) {
    last = walk.at;
    more = Advance(walk);
    if (walk.found.frames == calls_.size()) break;  // The first pc is not mapped.
    calls_.push_back({walk.frames[calls_.size()], more ? walk.at.sp : KnownCall::kNoCfa});
  }
  const TaskId task = *sample.task();
  min_dump_ = std::min<uint64_t>(min_dump_, sample.user_stack().reserved);
  if (walk.found.end == StackEnd::kTruncated) calls_.back().cfa = CfaOf(walk, last);
  stitcher_->Observe(task, calls_);
  if (walk.found.end == StackEnd::kTruncated) Stitch(task, walk);
  // A stack that fits into the shortest dump can't complete a longer one.
  if (walk.found.complete() && last.sp - walk.begin > min_dump_) stitcher_->Remember(task, calls_);
  return walk.found;
}

void Walker::Stitch(TaskId task, Walk& walk) {
  if (calls_.back().cfa == KnownCall::kNoCfa) return;
  const std::span<const KnownCall> outside = stitcher_->Find(task, calls_);
  if (outside.empty()) return;
  const size_t room = walk.frames.size() - walk.found.frames;
  if (room == 0) {
    walk.found.end = StackEnd::kLimit;
    return;
  }
  const size_t taken = std::min(room, outside.size());
  for (const KnownCall& call : outside.first(taken)) {
    StackFrame& frame = walk.frames[walk.found.frames++] = call.frame;
    frame.is_stitched = true;
    walk.found.guesses += frame.is_guess;
    calls_.push_back({frame, call.cfa});
  }
  walk.found.stitched = static_cast<uint32_t>(taken);
  walk.found.stack_bytes = BytesBetween(walk.begin, calls_[calls_.size() - 2].cfa);
  walk.found.end = taken < outside.size() ? StackEnd::kLimit : StackEnd::kRoot;
  ++stats_.stitched_stacks;
  stats_.frames += taken;
}

}  // namespace perfkit::unwind
