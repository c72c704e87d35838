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
  LiveCode(const LiveMap& map, const FullRegisters& innermost) : map_(map), innermost_(innermost) {}

  bool RuleAt(const WalkState& at, Rule& rule) {
    const uint64_t address = CodeOf(at);
    const bool known = map_.cache.Find(address, rule);
    if (known && (rule.flags & kMayGo) == 0) return true;
    if (!Find(address)) return false;
    if (known) return true;
    if (range_->module == nullptr) return rule = Rule(), true;
    const LiveModule& module = *range_->module;
    if (!module.is_ready) return met_unready_ = true, false;
    const bool may_be_planted = MayBePlanted(module, address + 1);
    if (may_be_planted && !at.interrupted && !at.guess) return rule = {.kind = RuleKind::kRoot}, true;
    rule = RuleIn(module, address);
    if (!module.stays) rule.flags |= kMayGo;
    // The rule of the address before a planted return address depends on the frame.
    if (!may_be_planted) map_.cache.Put(address, rule);
    return true;
  }

  // As RuleAt, for nearly all frames. Returns false if the rule is not cached, or has to be checked first.
  bool CachedRuleAt(uint64_t address, Rule& rule) const {
    if (!map_.cache.Find(address, rule)) return false;
    if ((rule.flags & kMayGo) == 0) return true;
    rule.flags &= static_cast<uint8_t>(~kMayGo);
    return IsInRange(address);
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

  // As StepToRoot needs it.
  PERFKIT_IN_HANDLER bool IsAfterCall(uint64_t address) {
    return Find(address - 1) && FindCallBefore(CodeAround(address - 1), address).kind != CallKind::kNone;
  }

  FullRegisters Innermost() const { return innermost_; }
  // Returns true if RuleAt has failed because a module's tables are not built yet.
  bool met_unready() const { return met_unready_; }

 private:
  // In a cached rule: its module may be unloaded.
  static constexpr uint8_t kMayGo = 1 << 7;
  // Bytes of a call with a distance, whose first byte is E8.
  static constexpr uint64_t kDirectCall = 5;

  // Returns the rule of an address that is not cached.
  PERFKIT_IN_HANDLER Rule RuleIn(const LiveModule& module, uint64_t address) const {
    if (module.entry.Holds(address - module.bias)) return {.kind = RuleKind::kRoot};
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
  const FullRegisters& innermost_;
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
  while (!at.guess && code.CachedRuleAt(CodeOf(at), rule)) {
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

// Prefetches the rules of the thread's last stack, all at once: consecutive stacks of a thread resemble each other.
void PrefetchRules(const LiveCache& cache, std::span<const StackFrame> last) {
  constexpr size_t kMax = 48;
  for (const StackFrame& frame : last.first(std::min(kMax, last.size()))) {
    if (frame.pc == 0) return;
    cache.Prefetch(frame.code());
  }
}

}  // namespace

UnwoundStack LiveTables::WalkBothEnds(const ucontext_t& interrupted, std::span<StackFrame> frames,
                                      uint32_t outer) noexcept {
  const auto at = reinterpret_cast<uint64_t>(&interrupted);
  const StackBytes context(at, std::as_bytes(std::span(&interrupted, 1)));
  return WalkFrom(FromContext<Machine>(context, at), false, frames, outer);
}

UnwoundStack LiveTables::WalkFrom(const FullRegisters& registers, bool skip, std::span<StackFrame> frames,
                                  uint32_t outer) noexcept {
  const base::Published<LiveMap>::Reader map(map_);
  PrefetchRules((*map).cache, frames);
  FullRegisters innermost = registers;
  LiveCode code(*map, innermost);
  const uint64_t sp = innermost.ValueOr0(Machine::kSp);
  StackWalk<OwnStackReader> walk{.at = {}, .stack = OwnStackReader(sp, stacks_.EndAbove(sp)), .frames = frames};
  StackEnd why = StackEnd::kNoInfo;
  walk.outer = static_cast<uint32_t>(std::min<size_t>(outer, frames.size()));
  if (skip && !detail::StepAll<Machine>(walk.stack, code, innermost, why)) return {.end = why};
  walk.at = StateOf<Machine>(innermost);
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
