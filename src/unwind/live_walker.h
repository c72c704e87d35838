// The interface between the sampler, which owns signals and rings, and the component perfkit::dwarf, which reads call
// frame information. The core library does not link that component, so it calls it through this class only.
//
//   a thread that drains the sampler ── Maintain, from time to time ──> tables of all loaded code
//   the handler of a sample's signal ── Walk ─────────────────────────> the calls that the signal interrupted
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "perfkit/stack_frame.h"
#include "src/base/in_handler.h"

namespace perfkit::unwind {

// Walks the stack of the calling thread.
class LiveWalker {
 public:
  // Requires that no Walk is in progress.
  virtual ~LiveWalker() = default;

  // Builds tables for modules that were loaded since the last call, and retires those of unloaded modules once no Walk
  // can read them. Must have succeeded once before Walk finds any frame. Takes about a microsecond if nothing changed,
  // else one to three milliseconds for each MiB of new code. Not thread-safe, and not async-signal-safe. Errors:
  // Unavailable if modules change all the time.
  virtual absl::Status Maintain() = 0;
  // The same before sampling starts: may leave modules whose tables take long to build for the next Maintain. Until
  // then their code ends walks (StackEnd::kNotReady).
  virtual absl::Status MaintainBriefly() { return Maintain(); }

  // Writes the frames of the interrupted code, innermost first, as many as fit. Thread-safe, also while Maintain runs,
  // and async-signal-safe: does not allocate, lock or wait, triggers no lazy binding, and preserves errno. Uses a few
  // KiB of the stack on which the handler runs. If a handler leaves it by longjmp, retired tables are never freed.
  virtual UnwoundStack Walk(const ucontext_t& interrupted, std::span<StackFrame> frames) noexcept = 0;
  // As Walk. If more frames are found than fit, keeps the `outer` outermost ones, too, and leaves out those between
  // (UnwoundStack::omitted). 0 means as Walk. `tid`: of the calling thread, which knows it already; to ask the kernel
  // again takes as long as to walk five frames.
  PERFKIT_IN_HANDLER virtual UnwoundStack WalkBothEnds(const ucontext_t& interrupted, std::span<StackFrame> frames,
                                                       [[maybe_unused]] uint32_t outer,
                                                       [[maybe_unused]] uint32_t tid) noexcept {
    return Walk(interrupted, frames);
  }
};

}  // namespace perfkit::unwind
