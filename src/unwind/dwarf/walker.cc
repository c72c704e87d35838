// Walks stacks: one, or eight in turn.
#include "src/unwind/dwarf/walker.h"

#include <algorithm>

namespace perfkit::unwind {
namespace {

constexpr const char* kNoModules[] = {"[unknown]"};
constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64

uint64_t CodeOf(const WalkState& at) { return at.pc - (at.interrupted ? 0 : 1); }

}  // namespace

Walker::Walker(const UnwinderOptions& options) : proc_(options.proc), processes_(options.proc, kNoModules) {}

bool Walker::End(Walk& walk, StackEnd end) {
  walk.found.end = end;
  ++stats_.stacks;
  stats_.frames += walk.found.frames;
  return false;
}

// The frame that the walk has come to is one of the stack.
bool Walker::Push(Walk& walk) {
  if (walk.found.frames == walk.frames.size()) return End(walk, StackEnd::kLimit);
  walk.frames[walk.found.frames++] = {walk.at.pc, !walk.at.interrupted, walk.at.guess};
  walk.found.guesses += walk.at.guess;
  return true;
}

// False: it is over before it has begun.
bool Walker::Begin(const Sample& sample, std::span<StackFrame> frames, Walk& walk) {
  walk.sampled = sample.user_registers();
  walk.frames = frames;
  walk.found = {};
  walk.full.reset();
  const std::optional<uint64_t> pc = walk.sampled[Machine::kPerf[Machine::kPc]];
  const std::optional<uint64_t> sp = walk.sampled[Machine::kPerf[Machine::kSp]];
  const std::optional<TaskId> task = sample.task();
  if (walk.sampled.abi != kAbi64 || !pc || !sp || !task) return End(walk, StackEnd::kNoRegisters);
  walk.at = {.pc = *pc, .sp = *sp, .fp = walk.sampled[Machine::kPerf[Machine::kFp]].value_or(0)};
  if (Machine::kLinkRegister) walk.at.lr = walk.sampled[Machine::kPerf[Machine::kLr]].value_or(0);
  walk.stack = StackBytes(*sp, sample.user_stack().bytes);
  walk.process = processes_.Find(task->pid);
  walk.generation = GenerationOf(walk.process);
  return true;
}

// The frame that the walk has come to is taken, if code is there; then to its caller. False: the walk is over.
bool Walker::Advance(Walk& walk) {
  Rule rule;
  const bool mapped = RuleAt(walk.process, walk.generation, CodeOf(walk.at), rule);
  // What looked like a frame pointer was none.
  if (!mapped && walk.at.guess) return End(walk, StackEnd::kNoInfo);
  if ((mapped || walk.found.frames == 0) && !Push(walk)) return false;
  if (!mapped) return End(walk, StackEnd::kNoMapping);
  if (walk.stack.empty()) return End(walk, StackEnd::kNoStack);
  StackEnd why = StackEnd::kNoInfo;
  const bool stepped =
      rule.kind == RuleKind::kSlow ? SlowStep(walk, why) : Step<Machine>(rule, walk.stack, walk.at, why);
  return stepped || End(walk, why);
}

UnwoundStack Walker::Unwind(const Sample& sample, std::span<StackFrame> frames) {
  Walk walk;
  if (!Begin(sample, frames, walk)) return walk.found;
  while (Advance(walk)) {
  }
  return walk.found;
}

void Walker::Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks) {
  constexpr size_t kLanes = 8;
  const size_t count = std::min(samples.size(), stacks.size());
  const size_t room = samples.empty() ? 0 : frames.size() / samples.size();
  std::array<Walk, kLanes> walks;
  std::array<size_t, kLanes> sample_of{};
  size_t next = 0, lanes = 0;
  // The lane gets the next sample that can be walked; false when there is none.
  const auto refill = [&](size_t lane) {
    for (; next < count; ++next) {
      sample_of[lane] = next;
      const bool more = Begin(samples[next], frames.subspan(next * room, room), walks[lane]);
      if (more) return ++next, true;
      stacks[next] = walks[lane].found;
    }
    return false;
  };
  while (lanes < kLanes && refill(lanes)) ++lanes;
  while (lanes > 0) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      Walk& walk = walks[lane];
      if (Advance(walk)) {
        cache_.Prefetch(RuleCache::KeyOf(CodeOf(walk.at), walk.generation));
        continue;
      }
      stacks[sample_of[lane]] = walk.found;
      if (refill(lane)) continue;
      --lanes;
      std::swap(walks[lane], walks[lanes]);
      std::swap(sample_of[lane], sample_of[lanes]);
      --lane;
    }
  }
}

}  // namespace perfkit::unwind
