// Walks the stack of the thread that it runs on, in a signal handler too, over tables of all code that is loaded.
//
//   Maintain ── dl_iterate_phdr's counters moved? ──> copies of .eh_frame ──Cfi──> FrozenTable ──> a new LiveMap
//                                                                                                      │ published
//   Walk, in a handler: pc ──> LiveMap ──> module, still there? ──> FrozenTable ──> Rule ──Step──> …   <┘
//
// MaintainBriefly builds tables for little more than the program and its C library, so that sampling starts soon; walks
// that come to other modules end there (kNotReady) until the next Maintain.
//
// What a walk cannot know is code that came since Maintain: it ends there (kNoMapping). The next Maintain looks for it
// among the modules, then among all that the process has mapped: through code that no module holds, as just-in-time
// compilers make it, frame pointers are followed, as guesses.
//
// A module that was unloaded since, and whose place another one has taken, is told by its mark, and its rules are not
// applied to what is there now: the walk ends there, too. A mark that is right stays so for the walk, for whoever is on
// a stack that will be returned to is loaded.
#pragma once

#include <atomic>
#include <memory>

#include "src/base/published.h"
#include "src/unwind/dwarf/backoff.h"
#include "src/unwind/dwarf/live_map.h"
#include "src/unwind/dwarf/thread_stack_bounds.h"
#include "src/unwind/full_registers.h"
#include "src/unwind/live_walker.h"

namespace perfkit::unwind {

class LiveTables final : public LiveWalker {
 public:
  // `brief_code_bytes`: of code whose tables MaintainBriefly builds, beside that which is never unloaded. By default
  // it is as Maintain.
  explicit LiveTables(size_t brief_code_bytes = kAllCode);

  absl::Status Maintain() override { return MaintainUpTo(kAllCode); }
  absl::Status MaintainBriefly() override { return MaintainUpTo(brief_code_bytes_); }
  UnwoundStack Walk(const ucontext_t& interrupted, std::span<StackFrame> frames) noexcept override;
  LiveStats stats() const override;

  // From a frame of this thread with these registers on. `skip`: leaves the first frame out.
  UnwoundStack WalkFrom(const FullRegisters& registers, bool skip, std::span<StackFrame> frames) noexcept;

 private:
  using Modules = std::vector<std::shared_ptr<const LiveModule>>;

  static constexpr size_t kAllCode = SIZE_MAX;

  absl::Status MaintainUpTo(size_t code_bytes);
  bool Renew(Modules& made, size_t& code_bytes);
  void FindStacks();
  bool FindOtherCode();
  void AddOtherCode(LiveMap& map) const;

  const size_t brief_code_bytes_;
  base::Published<LiveMap> map_;
  LinkerCounts counts_;
  bool all_ready_ = true;  // no module of map_ waits for its tables
  ThreadStackBounds stacks_;
  std::atomic<bool> unknown_code_{false};   // a walk has come to some
  std::vector<LiveMap::Range> executable_;  // all mappings, when it was last looked
  Backoff backoff_;
  uint64_t changes_ = 0;
};

}  // namespace perfkit::unwind
