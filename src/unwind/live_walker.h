// What walks the stack of the thread that it runs on: the door between the sampler, which owns signals and rings, and
// the component that knows call frame information. Only headers and bytes pass it, since a shared core shows nothing
// else.
//
//   a thread of the sampler's own ── Maintain, now and then ──> tables of all code that is loaded
//   the sample's handler ─────────── Walk ───────────────────> the calls of what it interrupted
#pragma once

#include <ucontext.h>

#include <span>

#include "absl/status/status.h"
#include "perfkit/unwinder.h"

namespace perfkit::unwind {

class LiveWalker {
 public:
  // No Walk may be under way.
  virtual ~LiveWalker() = default;

  // Never in a handler: looks which modules came and went since the last call, makes the tables of new ones, and
  // retires old ones once no Walk can still be reading them. Must have been called once before a Walk finds anything.
  // Cheap when nothing has changed (about a microsecond); else one to three milliseconds for each MiB of new code. One
  // thread at a time.
  virtual absl::Status Maintain() = 0;

  // In the sample's signal handler, any thread, any number at once, also while Maintain runs: no allocation, no lock,
  // no system call that waits, no lazy binding; errno kept. The frames of the interrupted code, innermost first, as
  // many as `frames` has room for. Uses a few KiB of the stack that it runs on. A handler that is left by longjmp in
  // the middle of it keeps tables from being freed, nothing else.
  virtual UnwoundStack Walk(const ucontext_t& interrupted, std::span<StackFrame> frames) noexcept = 0;

  // Not while Maintain runs.
  virtual LiveStats stats() const = 0;
};

}  // namespace perfkit::unwind
