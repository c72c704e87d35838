// The one owner of SIGTRAP. It gives each trap to the thread's claim, else to the handler that was installed before.
//
// A process has one handler for a signal, and perfkit is a guest in the process. So the handler is installed at the
// first claim and stays: a trap may be under way on any thread, and the default action would kill the process.
//
//   trap ── a sample of a perfkit event? ─────── yes: to its sampler (sample_signals.h)
//                      │ no
//           claim of this thread says "mine"? ── yes: done
//                      │ no
//                      ├─ a handler was installed before: it is called, as if perfkit were not there
//                      └─ there was none: the kernel's default action, which ends the process; after a step without a
//                         claim only the trap flag is cleared
//
// With the table of sample_signals.h, one of the mutable globals of this library (docs/design.md).
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/in_handler.h"

namespace perfkit::sys {

// Examines a trap and the registers that it interrupted, which it may change. Returns true if the trap was its own and
// is handled. Runs in the signal handler with all signals blocked: must make async-signal-safe calls only, none of them
// bound lazily.
using TrapHandler = bool (*)(void* self, const siginfo_t& info, ucontext_t& registers);

// As long as it lives, traps of the thread that made it go to its handler first. Movable, not copyable; construct and
// destroy it on that thread.
class TrapClaim {
 public:
  // Errors: ResourceExhausted if 64 claims exist in this process; FailedPrecondition if this thread's alternate signal
  // stack is too small for a handler; those of sigaction.
  static absl::StatusOr<TrapClaim> OfThisThread(TrapHandler handler, void* self);

  TrapClaim(TrapClaim&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  TrapClaim& operator=(TrapClaim&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~TrapClaim();

  struct Slot;

 private:
  explicit TrapClaim(Slot* slot) : slot_(slot) {}
  Slot* slot_;
};

// Installs perfkit's handler, which stays. Errors: ResourceExhausted if eight others have been installed over it; those
// of sigaction. Thread-safe.
absl::Status InstallTrapHandler();

}  // namespace perfkit::sys
