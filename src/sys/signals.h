// The one owner of SIGTRAP: hands each trap to whoever claimed it, else to whoever handled traps before us.
//
// A signal has one handler a process, and perfkit is a guest there. So the handler is installed at the first claim and
// stays: a trap may be under way on any thread, and to restore the default would kill the process.
//
//   trap ── a sample of an event of ours? ────── yes: to its sampler (sample_signals.h)
//                      │ no
//           claim of this thread says "mine"? ── yes: done
//                      │ no
//                      ├─ a handler was there before us: it is called, as if we were not there
//                      └─ none was: what the kernel would have done, which is to end the process; a step that nobody
//                         claimed only has the trap flag cleared
//
// With the table of sample_signals.h it is one of the three mutable globals of this library (docs/design.md).
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/in_handler.h"

namespace perfkit::sys {

// Looks at a trap and the registers that it interrupted, which it may change. True: it was ours, all is done.
// Runs in the signal handler, with all signals blocked: async-signal-safe calls only, none of them bound lazily.
using TrapHandler = bool (*)(void* self, const siginfo_t& info, ucontext_t& registers);

// While it lives, traps of the thread that made it go to its handler first. Moves, never copies; made and destroyed on
// that thread.
class TrapClaim {
 public:
  // ResourceExhausted: 64 claims are alive in this process. Else what sigaction said.
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

// Puts our handler in place, where it stays. ResourceExhausted: eight others have been put over it. Else what sigaction
// said. Any thread.
absl::Status InstallTrapHandler();

}  // namespace perfkit::sys
