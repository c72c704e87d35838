// Walks stacks: one, or many in turns. Nearly all frames take the fast path, with rules from the cache and four
// registers. FollowGuesses takes frames of code without information, such as that of JIT compilers. Advance handles the
// others, which may read files, and returns to the fast path. A walk is limited by memory latency: each frame's words
// depend on the frame before. So several walks take turns in lanes, and each turn prefetches what the lane's next turn
// reads. Stacks of recent samples decide how: shallow ones are prefetched as a whole some samples ahead and walked one
// after the other, deep ones take turns.
#include "src/unwind/dwarf/sampled/walker.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace perfkit::unwind {
namespace {

constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64

constexpr size_t kLanes = 8;  // Two lines of the cache each: about as many as a core waits for at a time.
constexpr uint64_t kShallow = 2048;  // In bytes.
// How many samples ahead their memory is prefetched.
constexpr size_t kAhead = 4;

// Prefetches the registers that Begin reads, and the stack up to `extent`. Consecutive cache lines are cheap.
void PrefetchHead(const Sample& sample, uint64_t extent) {
  const std::byte* const at = sample.user_registers().values.bytes().data();
  for (uint64_t offset = 0; offset < 256 + extent; offset += 64) PrefetchAt(at, offset);
}
// Prefetches the number of copied bytes, which is after the room for the stack.
void PrefetchTail(const Sample& sample) {
  const UserStack stack = sample.user_stack();
  PrefetchAt(stack.bytes.data(), stack.reserved);
}

}  // namespace

Walker::Walker(const UnwinderOptions& options) : rules_(options.proc), lanes_(kLanes) {
  if (options.stitch_bytes > 0) stitcher_ = std::make_unique<StackStitcher>(options.stitch_bytes);
}

// The source of rules for a walk: its process.
struct Walker::Code {
  bool RuleAt(const WalkState& at, Rule& rule) {
    if (!walker.rules_.RuleAt(walk.process, walk.generation, CodeOf(at), rule)) return false;
    const bool planted = rule.kind == RuleKind::kRoot && rule.offset == CodeModule::kPlanted;
    if (!planted || (!at.interrupted && !at.guess)) return true;
    return walker.rules_.UnplantedRuleAt(walk.process, CodeOf(at), rule);
  }
  bool IsCallOf(uint64_t address, uint64_t pc) { return walker.rules_.IsCallOf(walk.process, address, pc); }
  bool IsAfterCall(uint64_t address) { return walker.rules_.IsAfterCall(walk.process, walk.generation, address); }
  bool RowAt(uint64_t address, CfiRow& row, uint64_t& bias) {
    return walker.rules_.RowAt(walk.process, address, row, bias);
  }
  // A copy that is shorter than its room may also end at a page that is not present (StackBytes), of an array that was
  // never written. That is not told from the end of the stack.
  bool HasStackEnd() const {
    const UserStack copy = walk.sample->user_stack();
    return copy.bytes.size() < copy.reserved;
  }
  FullRegisters Innermost() { return FromSample<Machine>(walk.sample->user_registers()); }

  Walker& walker;
  Walk& walk;
};

bool Walker::Count(Walk& walk) {
  if (walk.found.end != StackEnd::kNoRegisters) walk.found.stack_bytes = BytesBetween(walk.begin, walk.at.sp);
  Count(walk.found.frames, walk.slow, walk.found.stack_bytes);
  return false;
}

void Walker::Count(uint32_t frames, uint32_t slow, uint32_t stack_bytes) {
  extent_ = (7 * extent_ + std::min<uint64_t>(stack_bytes, UINT16_MAX)) / 8;
  ++stats_.stacks;
  stats_.frames += frames;
  stats_.slow_frames += slow;
}

Walker::RegisterIndices Walker::IndicesOf(uint64_t mask) {
  const auto index = [&](unsigned number) {
    const uint64_t bit = uint64_t{1} << Machine::kPerf[number];
    return static_cast<uint8_t>((mask & bit) != 0 ? std::popcount(mask & (bit - 1)) : RegisterIndices::kNowhere);
  };
  return {mask, index(Machine::kPc), index(Machine::kSp), index(Machine::kFp),
          Machine::kLinkRegister ? index(Machine::kLr) : RegisterIndices::kNowhere};
}

[[gnu::always_inline]] inline bool Walker::BeginInline(const Sample& sample, std::span<StackFrame> frames, Walk& walk) {
  const Registers sampled = sample.user_registers();
  walk.sample = &sample;
  walk.full.reset();
  walk.slow = 0;
  walk.found = {};
  if (sampled.mask != indices_.mask) indices_ = IndicesOf(sampled.mask);
  const std::optional<TaskId> task = sample.task();
  if (sampled.abi != kAbi64 || indices_.pc == RegisterIndices::kNowhere || indices_.sp == RegisterIndices::kNowhere ||
      !task) {
    return walk.End(StackEnd::kNoRegisters), Count(walk);
  }
  const auto value = [&](uint8_t index) { return index == RegisterIndices::kNowhere ? 0 : sampled.values[index]; };
  const ProcessRules::Numbered found = rules_.Find(task->pid);
  walk.process = found.process;
  walk.generation = found.generation;
  // Last, so that Load takes these values from registers: it would wait for memory that was just written.
  const uint64_t sp = value(indices_.sp);
  walk.frames = frames;
  walk.begin = sp;
  walk.stack = StackBytes(sp, sample.user_stack().bytes);
  walk.at = {.pc = value(indices_.pc), .sp = sp, .fp = value(indices_.fp), .lr = value(indices_.lr)};
  return true;
}

bool Walker::Begin(const Sample& sample, std::span<StackFrame> frames, Walk& walk) {
  return BeginInline(sample, frames, walk);
}

bool Walker::Advance(Walk& walk) {
  Code code{*this, walk};
  return unwind::Advance<Machine>(walk, code) || Count(walk);
}

bool Walker::FollowGuesses(Walk& walk) {
  if (walk.at.interrupted || !RuleCache::CanHold(walk.at.pc - 1)) return false;
  // Single variables, so that they stay in registers.
  const StackBytes stack = walk.stack;
  const uint64_t generation = RuleCache::KeyOf(0, walk.generation);
  StackFrame* const begin = walk.frames.data() + walk.found.frames;
  StackFrame* const end = walk.frames.data() + walk.frames.size();
  StackFrame* frame = begin;
  uint64_t pc = walk.at.pc, sp = walk.at.sp, fp = walk.at.fp;
  bool guess = walk.at.guess;
  uint32_t guesses = 0;
  RuleCache& cache = rules_.cache();
  RuleCache::Slot slot = 0;
  const Rule* rule = cache.Find((pc - 1) | generation, slot);
  while (rule != nullptr && frame != end) {
    uint64_t caller = 0, caller_sp = fp + 16, caller_fp = 0;
    const bool follows = *rule == Rule();
    if (follows) {
      if (!detail::ReadFramePointer(stack, sp, fp, caller, caller_fp)) break;
      // Otherwise StepByRule looks for the root, or finds out what is not known yet.
      if (!Machine::kLinkRegister && !rules_.KnownAfterCall(walk.generation, caller).value_or(false)) break;
      caller = Machine::CodeAddress(caller);
      if (!FastPathFrame<Machine>::IsUsual(caller)) break;
    } else {
      // The fast path takes frames that are no guesses, and is faster. Advance takes all other rules; on aarch64 also
      // kSp, because a chain of frame pointers does not determine sp.
      const bool by_rule =
          guess && FastPathFrame<Machine>::Is(*rule) && !(Machine::kLinkRegister && rule->kind == RuleKind::kSp);
      const FastPathFrame<Machine> planned(*rule, sp, fp);
      if (!by_rule || !planned.Read(stack, sp, fp, caller, caller_fp)) break;
      caller_sp = planned.cfa;
    }
    *frame++ = {pc, true, guess};
    guesses += guess;
    pc = caller;
    sp = caller_sp;
    fp = caller_fp;
    guess = follows;
    rule = cache.FindCaller((pc - 1) | generation, slot);
  }
  walk.at = {pc, sp, fp, 0, false, guess};
  walk.found.guesses += guesses;
  const auto found = static_cast<uint32_t>(frame - begin);
  walk.found.frames += found;
  rules_.CountHits(found);
  return found != 0;
}

FastPathWalk Walker::Load(const Walk& walk) {
  return {walk.at, walk.stack, walk.frames, walk.found.frames, walk.generation};
}

void Walker::Store(const FastPathWalk& fast, Walk& walk) {
  rules_.CountHits(fast.found() - walk.found.frames);
  walk.found.frames = fast.found();
  walk.at = fast.at();
}

UnwoundStack Walker::Unwind(const Sample& sample, std::span<StackFrame> frames) {
  return stitcher_ != nullptr ? UnwindAndStitch(sample, frames) : UnwindOne(sample, frames);
}

UnwoundStack Walker::UnwindOne(const Sample& sample, std::span<StackFrame> frames) {
  Walk& walk = lanes_[0].walk;
  if (!BeginInline(sample, frames, walk)) return walk.found;
  do {
    FastPathWalk fast = Load(walk);
    if (!fast.Start(rules_.cache()) || !fast.Advance()) continue;
    // The loop begins after the first frame: it has callers only, so the compiler keeps fewer values in registers.
    while (fast.LookUp(rules_.cache()) && fast.Advance()) {
    }
    if (fast.TakeRoot()) {
      rules_.CountHits(fast.found() - walk.found.frames);
      const uint32_t stack_bytes = BytesBetween(walk.begin, fast.at().sp);
      Count(fast.found(), walk.slow, stack_bytes);
      return {
          .frames = fast.found(), .guesses = walk.found.guesses, .end = StackEnd::kRoot, .stack_bytes = stack_bytes};
    }
    Store(fast, walk);
  } while (FollowGuesses(walk) || Advance(walk));
  return walk.found;
}

bool Walker::Turn(Lane& lane) {
  lane.looked_up = lane.looked_up && lane.fast.Advance() && lane.fast.LookUp(rules_.cache());
  if (!lane.looked_up) [[unlikely]] {
    const bool is_root = lane.fast.TakeRoot();
    Store(lane.fast, lane.walk);
    if (is_root) return lane.walk.End(StackEnd::kRoot), Count(lane.walk);
    if (!FollowGuesses(lane.walk) && !Advance(lane.walk)) return false;
    lane.fast = Load(lane.walk);
    lane.looked_up = lane.fast.Start(rules_.cache());
  }
  lane.fast.Prefetch();
  return true;
}

void Walker::Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks) {
  const size_t room = samples.empty() ? 0 : frames.size() / samples.size();
  samples = samples.first(std::min(samples.size(), stacks.size()));
  if (stitcher_ != nullptr) {  // A stack may need the one before it.
    for (size_t i = 0; i < samples.size(); ++i) stacks[i] = UnwindAndStitch(samples[i], frames.subspan(i * room, room));
  } else if (extent_ <= kShallow) {
    UnwindShallow(samples, room, frames, stacks);
  } else {
    UnwindInTurns(samples, room, frames, stacks);
  }
}

// Prefetches all of a stack some samples before it is walked.
void Walker::UnwindShallow(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                           std::span<UnwoundStack> stacks) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i + 2 * kAhead < samples.size()) PrefetchHead(samples[i + 2 * kAhead], std::min(extent_, kShallow));
    if (i + kAhead < samples.size()) PrefetchTail(samples[i + kAhead]);
    stacks[i] = UnwindOne(samples[i], frames.subspan(i * room, room));
  }
}

// Each turn prefetches what the next one reads.
void Walker::UnwindInTurns(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                           std::span<UnwoundStack> stacks) {
  size_t next = 0;
  // Gives the lane the next sample that can be walked. Returns false if there is none, or if it has to wait for the
  // `others`, the walks under way: they keep their numbers of generations.
  const auto refill = [&](Lane& lane, size_t others) {
    for (; next < samples.size() && (others == 0 || rules_.HasNewGeneration()); ++next) {
      if (next + 2 * kAhead < samples.size()) PrefetchHead(samples[next + 2 * kAhead], 0);
      if (next + kAhead < samples.size()) PrefetchTail(samples[next + kAhead]);
      lane.sample = next;
      if (Begin(samples[next], frames.subspan(next * room, room), lane.walk)) {
        lane.fast = Load(lane.walk);
        lane.looked_up = lane.fast.Start(rules_.cache());
        lane.fast.Prefetch();
        return ++next, true;
      }
      stacks[next] = lane.walk.found;
    }
    return false;
  };
  while (next < samples.size()) {
    size_t lanes = 0;
    while (lanes < kLanes && refill(lanes_[lanes], lanes)) ++lanes;
    while (lanes > 0) {
      for (size_t i = 0; i < lanes; ++i) {
        Lane& lane = lanes_[i];
        if (Turn(lane)) [[likely]]
          continue;
        stacks[lane.sample] = lane.walk.found;
        if (refill(lane, lanes - 1)) continue;
        std::swap(lane, lanes_[--lanes]);
        --i;
      }
    }
  }
}

UnwinderStats Walker::stats() const {
  UnwinderStats stats = stats_;
  stats.stitch_bytes = stitcher_ == nullptr ? 0 : stitcher_->heap_bytes();
  rules_.Fill(stats);
  return stats;
}

}  // namespace perfkit::unwind
