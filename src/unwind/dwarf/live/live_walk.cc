// The walk of a live stack: all code that runs in a signal handler. It allocates nothing, takes no lock and reads no
// file: rules come from the tables of LiveTables, whose map stays while a walk holds it. FollowFastPath takes nearly
// all frames, by cached rules of the two most frequent kinds, and the root; Advance takes one frame of any kind and
// returns to it.
// Before the rules of a module that may be unloaded are used, the walk checks once that it is still there.
#include <algorithm>
#include <array>

#include "src/unwind/dwarf/cfi/stack_walk.h"
#include "src/unwind/dwarf/live/live_tables.h"
#include "src/unwind/own_stack_reader.h"

namespace perfkit::unwind {
namespace {

using Machine = ThisMachine;

// The source of rules for a walk: a map.
class LiveCode {
 public:
  // `innermost`: the registers that the walk begins with. Computed only for the few walks that need them.
  LiveCode(const LiveMap& map, const ucontext_t& innermost) : map_(map), context_(&innermost) {}
  LiveCode(const LiveMap& map, const FullRegisters& innermost) : map_(map), registers_(&innermost) {}

  bool RuleAt(const WalkState& at, Rule& rule) {
    const uint64_t address = CodeOf(at);
    const bool is_known = map_.cache.Find(address, rule) && MayUse(rule, at);
    const bool may_go = (rule.flags & kMayGo) != 0;
    rule.flags &= static_cast<uint8_t>(~kMarks);
    if (is_known && !may_go) return true;
    if (!Find(address)) return false;
    if (is_known) return true;
    if (range_->module == nullptr) return rule = Rule(), true;
    const LiveModule& module = *range_->module;
    if (!module.is_ready) return met_unready_ = true, false;
    // Only a return address can be planted. For other addresses that is not looked up: the search of the functions
    // takes longer than the rest of this step.
    const bool returns = !at.interrupted && !at.guess;
    if (returns && MayBePlanted(module, at.pc)) return rule = {.kind = RuleKind::kRoot}, true;
    rule = RuleIn(module, address);
    Rule cached = rule;
    cached.flags |= static_cast<uint8_t>((module.stays ? 0 : kMayGo) | (returns ? 0 : kMayBePlanted));
    map_.cache.Put(address, cached);
    return true;
  }

  // As RuleAt, for nearly all frames. Returns false if the rule is not cached, or has to be checked first.
  bool CachedRuleAt(const WalkState& at, Rule& rule) const {
    const uint64_t address = CodeOf(at);
    if (!map_.cache.Find(address, rule)) return false;
    if ((rule.flags & kMarks) == 0) return true;
    const bool may_use = MayUse(rule, at) && ((rule.flags & kMayGo) == 0 || IsInRange(address));
    rule.flags &= static_cast<uint8_t>(~kMarks);
    return may_use;
  }

  bool RowAt(uint64_t address, CfiRow& row, uint64_t& bias) {
    if (!Find(address) || range_->module == nullptr) return false;
    bias = range_->module->bias;
    return range_->module->rows.At(address - bias, range_->module->rules, row);
  }

  // As StepByRule needs it.
  PERFKIT_IN_HANDLER bool IsCallOf(uint64_t address, uint64_t pc) {
    const LiveMap::Range* const callee = map_.Find(pc);
    if (callee == nullptr || callee->module == nullptr || !Find(address - 1)) return false;
    const CallBefore call = FindCallBefore(CodeAround(address - 1), address);
    if (call.kind != CallKind::kDirect || MayContain(call.target, pc)) return call.kind != CallKind::kNone;
    return Find(call.target) && IsJumpByMemory(CodeAround(call.target), call.target);
  }

  // As stack_walk.h needs it.
  PERFKIT_IN_HANDLER bool IsAfterCall(uint64_t address) {
    return Find(address - 1) && FindCallBefore(CodeAround(address - 1), address).kind != CallKind::kNone;
  }

  static constexpr bool HasStackEnd() { return true; }
  FullRegisters Innermost() const {
    if (context_ == nullptr) return *registers_;
    const auto at = reinterpret_cast<uint64_t>(context_);
    return FromContext<Machine>(StackBytes(at, std::as_bytes(std::span(context_, 1))), at);
  }
  // Returns true if RuleAt has failed because a module's tables are not built yet.
  bool met_unready() const { return met_unready_; }

 private:
  // Flags of cached rules only. The module may be unloaded. The return address after the rule's address may be planted:
  // then the rule does not hold for a frame with that return address.
  static constexpr uint8_t kMayGo = 1 << 7, kMayBePlanted = 1 << 6, kMarks = kMayGo | kMayBePlanted;
  // Bytes of a call with a distance, whose first byte is E8.
  static constexpr uint64_t kDirectCall = 5;

  // Returns true if a cached rule holds for the frame.
  static bool MayUse(const Rule& rule, const WalkState& at) {
    return (rule.flags & kMayBePlanted) == 0 || at.interrupted || at.guess;
  }

  // Returns the rule of an address that is not cached.
  PERFKIT_IN_HANDLER Rule RuleIn(const LiveModule& module, uint64_t address) const {
    if (module.entry.Holds(address - module.bias)) return {.kind = RuleKind::kEntry};
    if (module.Installs(address - module.bias)) return {.kind = RuleKind::kInstalls};
    const Rule rule = module.rules.At(address - module.bias);
    return rule.kind == RuleKind::kNone ? RuleByCode(CodeAround(address), address) : rule;
  }

  // Returns true if `pc` is planted as long as it is a return address: there is no call before it, and a function
  // begins there. Only for modules that are never unloaded: their memory can be read without a system call. A guess
  // need not be a return address.
  PERFKIT_IN_HANDLER bool MayBePlanted(const LiveModule& module, uint64_t pc) const {
    if (module.functions.count == 0 || pc - range_->begin < kDirectCall) return false;
    if (*reinterpret_cast<const uint8_t*>(pc - kDirectCall) == 0xe8) return false;
    return FindCallBefore(CodeAround(pc - 1), pc).kind == CallKind::kNone && module.functions.Begins(pc);
  }

  // Returns the code around an address of range_.
  PERFKIT_IN_HANDLER CodeWindow CodeAround(uint64_t address) const {
    CodeWindow code;
    // Only the block of the address itself is sure to exist.
    uint64_t begin = CodeWindow::BeginOf(address), skipped = 0, end = begin + sizeof(code.bytes);
    if (begin < range_->begin) skipped = CodeWindow::kBlock;
    if (end > range_->end) end -= CodeWindow::kBlock;
    begin += skipped;
    const uint64_t size = end - begin;
    uint64_t words[sizeof(code.bytes) / sizeof(uint64_t)] = {};
    if (range_->module != nullptr && range_->module->functions.count > 0) {
      for (uint64_t i = 0; i < size / sizeof(uint64_t); ++i) words[i] = sys::WordAt(begin + i * sizeof(uint64_t));
    } else if (!sys::CopyOwn(begin, words, size)) {
      return code;
    }
    for (uint64_t i = 0; i < size; ++i) {
      code.bytes[skipped + i] = static_cast<uint8_t>(words[i / sizeof(uint64_t)] >> i % sizeof(uint64_t) * 8);
    }
    return code;
  }

  // The latest range that was found and whose module is still loaded.
  bool IsInRange(uint64_t address) const {
    return range_ != nullptr && address - range_->begin < range_->end - range_->begin;
  }

  bool Find(uint64_t address) {
    if (IsInRange(address)) return true;
    const LiveMap::Range* const found = map_.Find(address);
    if (found == nullptr || !IsThere(found->module)) return false;
    range_ = found;
    return true;
  }

  // Checks a module once, as long as the stack leads through at most as many modules as seen_ holds.
  bool IsThere(const LiveModule* module) {
    if (module == nullptr) return true;
    for (const LiveModule* const seen : seen_) {
      if (seen == module) return true;
    }
    if (!module->IsThere()) return false;
    seen_[next_++ % seen_.size()] = module;
    return true;
  }

  const LiveMap& map_;
  const ucontext_t* const context_ = nullptr;
  const FullRegisters* const registers_ = nullptr;
  const LiveMap::Range* range_ = nullptr;
  std::array<const LiveModule*, 8> seen_{};
  size_t next_ = 0;
  bool met_unready_ = false;
};

// The fast path, for nearly all frames and the root. Stops before any other frame. Returns true if the walk has ended.
bool FollowFastPath(StackWalk<OwnStackReader>& walk, const LiveCode& code) {
  WalkState at = walk.at;
  StackFrame* const frames = walk.frames.data();
  const auto room = static_cast<uint32_t>(walk.frames.size());
  uint32_t n = walk.found.frames;
  Rule rule;
  bool is_root = false;
  while (!at.guess && code.CachedRuleAt(at, rule)) {
    if (!FastPathFrame<Machine>::Is(rule)) {
      is_root = rule.kind == RuleKind::kRoot;
      break;
    }
    if (n == room) [[unlikely]] {
      walk.found.frames = n;
      if (!walk.Wrap()) break;
      n = walk.found.frames;
    }
    const FastPathFrame<Machine> next(rule, at);
    const uint64_t sp = at.sp;
    const StackFrame frame{at.pc, !at.interrupted, false};
    if (!next.KnowsFp(at) || !next.Advance(walk.stack, at)) break;
    frames[n++] = frame;
    walk.stack.Settle(sp);
  }
  walk.at = at;
  walk.found.frames = n;
  if (!is_root) return false;
  if (walk.Push()) walk.End(StackEnd::kRoot);
  return true;
}

// Prefetches what the walk will read one after the other, all at once: the ranges of modules, and the rules of the
// thread's last stack, because consecutive stacks of a thread resemble each other.
void Prefetch(const LiveMap& map, std::span<const StackFrame> last) {
  constexpr size_t kMax = 48, kMaxLines = 24, kLine = 64;
  const auto* const ranges = reinterpret_cast<const std::byte*>(map.ranges.data());
  const size_t bytes = std::min(map.ranges.size() * sizeof(map.ranges[0]), kMaxLines * kLine);
  for (size_t at = 0; at < bytes; at += kLine) PrefetchAt(ranges, at);
  for (const StackFrame& frame : last.first(std::min(kMax, last.size()))) {
    if (frame.pc == 0) return;
    map.cache.Prefetch(frame.code());
  }
}

// Returns the registers in a signal's context that nearly all frames need.
WalkState StateOf(const ucontext_t& interrupted) {
  const auto value = [&](unsigned number) {
    return sys::WordAt(reinterpret_cast<uint64_t>(&interrupted) + Machine::kContext[number]);
  };
  return {.pc = value(Machine::kPc),
          .sp = value(Machine::kSp),
          .fp = value(Machine::kFp),
          .lr = Machine::kLinkRegister ? value(Machine::kLr) : 0};
}

}  // namespace

UnwoundStack LiveTables::WalkBothEnds(const ucontext_t& interrupted, std::span<StackFrame> frames, uint32_t outer,
                                      uint32_t tid) noexcept {
  const base::Published<LiveMap>::Reader map(map_);
  Prefetch(*map, frames);
  LiveCode code(*map, interrupted);
  const WalkState innermost = StateOf(interrupted);
  return WalkOn(code, innermost, stacks_.EndAbove(innermost.sp, tid), frames, outer);
}

UnwoundStack LiveTables::WalkFrom(const FullRegisters& registers, bool skip, std::span<StackFrame> frames,
                                  uint32_t outer) noexcept {
  const base::Published<LiveMap>::Reader map(map_);
  Prefetch(*map, frames);
  FullRegisters innermost = registers;
  LiveCode code(*map, innermost);
  const uint64_t sp = innermost.ValueOr0(Machine::kSp), stack_end = stacks_.EndAbove(sp, sys::ThisTid());
  StackEnd why = StackEnd::kNoInfo;
  if (skip && !detail::StepAll<Machine>(OwnStackReader(sp, stack_end), code, innermost, why)) return {.end = why};
  return WalkOn(code, StateOf<Machine>(innermost), stack_end, frames, outer);
}

template <class Code>
UnwoundStack LiveTables::WalkOn(Code& code, const WalkState& innermost, uint64_t stack_end,
                                std::span<StackFrame> frames, uint32_t outer) {
  StackWalk<OwnStackReader> walk{.at = innermost, .stack = OwnStackReader(innermost.sp, stack_end), .frames = frames};
  walk.outer = static_cast<uint32_t>(std::min<size_t>(outer, frames.size()));
  for (;;) {
    if (FollowFastPath(walk, code)) break;
    const uint64_t frame_sp = walk.at.sp;
    const bool guess = walk.at.guess;
    if (!Advance<Machine>(walk, code)) break;
    if (!guess) walk.stack.Settle(frame_sp);
  }
  walk.Finish();
  if (walk.found.end == StackEnd::kNoMapping) {
    if (code.met_unready()) {
      walk.found.end = StackEnd::kNotReady;
    } else {
      unknown_code_.store(true, std::memory_order_relaxed);
    }
  }
  return walk.found;
}

}  // namespace perfkit::unwind
