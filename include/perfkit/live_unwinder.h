// Call stacks of the calling thread itself, also in a signal handler, and those of a sampler's threads
// (CallStack::Live). Requires the component perfkit::dwarf.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "perfkit/stack_frame.h"

namespace perfkit {

namespace unwind {
class LiveTables;
class LiveWalker;
}  // namespace unwind

// The tables that walks of live stacks use.
struct LiveStats {
  size_t modules = 0;      // Loaded modules, as of the last Maintain.
  size_t bare = 0;         // Those of them without call frame information.
  size_t not_ready = 0;    // Those of them without tables yet; always 0 after LiveUnwinder::Maintain has succeeded.
  size_t table_bytes = 0;  // Heap bytes of all tables, also of those that wait to be freed.
  size_t retired = 0;      // Unloaded modules whose tables wait until no walk can read them.
  uint64_t changes = 0;    // Times that Maintain found modules loaded or unloaded.
};

// Unwinds the calling thread's own stack: complete, without a copy, also in a signal handler.
//
//   perfkit::LiveUnwinder unwinder;                     // in advance
//   unwinder.Maintain();                                // after the program has loaded modules
//   void OnSignal(int, siginfo_t*, void* context) {
//     perfkit::StackFrame frames[128];
//     const perfkit::UnwoundStack stack = unwinder.InterruptedStack(context, frames);
//
// Holds tables for all loaded code: 0.3 MiB, built in 13 ms, for libc, libstdc++ and SQLite (5 MiB of code); 2 MiB,
// built in 0.1 s, for LLVM (122 MiB). A walk ends with StackEnd::kNoMapping at code that was loaded or generated since
// the last Maintain. Unloaded code is noticed, also if other code is mapped there now. Maintain searches for generated
// code and modules of other namespaces (dlmopen) only after a walk has ended in such code. From then on, walks follow
// frame pointers in that code, as guesses. Each unsuccessful search doubles the number of Maintain calls before the
// next one.
//
// Movable, not copyable: a moved-from one may only be assigned to or destroyed. Moves and the destructor require that
// no walk is in progress.
class LiveUnwinder {
 public:
  // Reads all loaded modules.
  LiveUnwinder();
  LiveUnwinder(LiveUnwinder&&) noexcept;
  LiveUnwinder& operator=(LiveUnwinder&&) noexcept;
  ~LiveUnwinder();

  // Builds tables for modules loaded since the last call, and frees those of unloaded ones once no walk can read them.
  // Takes a microsecond if nothing changed. One thread at a time; other threads may walk meanwhile. Not
  // async-signal-safe. Errors: Unavailable if modules change all the time; the tables stay as they are.
  absl::Status Maintain();

  // Unwinds the calling thread; the innermost frame is the caller of this function. Thread-safe and async-signal-safe:
  // does not allocate, lock or wait, and preserves errno. Takes 2 KiB of stack and 20-60 ns for each frame.
  //
  // If the stack has more frames than fit, the walk ends when `frames` is full (kLimit) if `outer` is 0. Otherwise it
  // goes on: the last `outer` elements of `frames` hold the outermost frames, and those between are left out
  // (UnwoundStack::omitted). A walk that has left out about 65,536 frames ends (kLimit). An `outer` beyond
  // frames.size() means frames.size().
  UnwoundStack CurrentStack(std::span<StackFrame> frames, uint32_t outer = 0) noexcept;

  // As CurrentStack, for the code that a signal interrupted. `context` is the third argument of an SA_SIGINFO handler.
  UnwoundStack InterruptedStack(const void* context, std::span<StackFrame> frames, uint32_t outer = 0) noexcept;

  // Returns the statistics. Not while another thread is in Maintain.
  LiveStats stats() const;

 private:
  std::unique_ptr<unwind::LiveTables> tables_;
};

// Pass the function itself to CallStack::Live: then sampled threads walk their own stacks.
std::unique_ptr<unwind::LiveWalker> LiveStacks();

}  // namespace perfkit
