// Walks the stack of the calling thread, also in a signal handler, with tables of all loaded code.
//
//   Maintain ── dl_iterate_phdr's counters changed? ──> copies of .eh_frame ──Cfi──> FrozenTable ──> a new LiveMap
//                                                                                                        │ published
//   Walk, in a handler: pc ──> LiveMap ──> module, still loaded? ──> FrozenTable ──> Rule ──Step──> …  <─┘
//
// MaintainBriefly builds tables for little more than the program and its C library, so that sampling starts soon. Walks
// that come to other modules end there (kNotReady) until the next Maintain.
//
// A walk ends at code that was loaded since Maintain (kNoMapping). The next Maintain looks for it among the modules,
// and then among all mappings of the process. In executable code that no module contains, as JIT compilers generate it,
// walks follow frame pointers, as guesses.
//
// If a module was unloaded and another one is mapped at its addresses, the old module's mark does not match, and its
// rules are not used: the walk ends there (kNoMapping). A mark that matches once is valid for the whole walk, because a
// module whose code is on a stack is loaded.
#pragma once

#include <atomic>
#include <memory>

#include "perfkit/live_unwinder.h"
#include "src/base/published.h"
#include "src/unwind/dwarf/live/backoff.h"
#include "src/unwind/dwarf/live/live_map.h"
#include "src/unwind/dwarf/live/thread_stack_bounds.h"
#include "src/unwind/full_registers.h"
#include "src/unwind/live_walker.h"

namespace perfkit::unwind {

class LiveTables final : public LiveWalker {
 public:
  // `brief_code_bytes`: MaintainBriefly builds tables for the modules that are never unloaded, and for this many bytes
  // of other code. By default for all, as Maintain.
  explicit LiveTables(size_t brief_code_bytes = kAllCode);

  absl::Status Maintain() override { return MaintainUpTo(kAllCode); }
  absl::Status MaintainBriefly() override { return MaintainUpTo(brief_code_bytes_); }
  UnwoundStack Walk(const ucontext_t& interrupted, std::span<StackFrame> frames) noexcept override {
    return WalkBothEnds(interrupted, frames, 0, sys::ThisTid());
  }
  UnwoundStack WalkBothEnds(const ucontext_t& interrupted, std::span<StackFrame> frames, uint32_t outer,
                            uint32_t tid) noexcept override;
  // As LiveUnwinder::stats.
  LiveStats stats() const;

  // Walks from a frame of the calling thread with these registers. `skip`: omits that frame. `outer`: as WalkBothEnds.
  UnwoundStack WalkFrom(const FullRegisters& registers, bool skip, std::span<StackFrame> frames,
                        uint32_t outer = 0) noexcept;

 private:
  using Modules = std::vector<std::shared_ptr<const LiveModule>>;

  static constexpr size_t kAllCode = SIZE_MAX;

  // Walks from the frame with these registers, by `code`, which is LiveCode of live_walk.cc.
  template <class Code>
  UnwoundStack WalkOn(Code& code, const WalkState& innermost, uint64_t stack_end, std::span<StackFrame> frames,
                      uint32_t outer);
  absl::Status MaintainUpTo(size_t code_bytes);
  // Builds and publishes a new map. Returns false if more modules were loaded than can be copied at once; `made` has
  // those that were copied.
  bool Renew(Modules& made, size_t& code_bytes);
  // Learns the bounds of stacks that walks have requested.
  void FindStacks();
  // Looks for executable mappings that walks have come to. Returns true if the mappings have changed.
  bool FindOtherCode();
  // Adds the executable mappings that no module overlaps.
  void AddOtherCode(LiveMap& map) const;

  const size_t brief_code_bytes_;
  base::Published<LiveMap> map_;
  LinkerCounts counts_;
  bool all_ready_ = true;  // All modules of map_ have their tables.
  ThreadStackBounds stacks_;
  std::atomic<bool> unknown_code_{false};   // A walk has ended with kNoMapping.
  std::vector<LiveMap::Range> executable_;  // All executable mappings, at the last look.
  Backoff backoff_;
  uint64_t changes_ = 0;
};

}  // namespace perfkit::unwind
