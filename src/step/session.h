// One stepped region: what each trap adds to its count, and the preparations for the next instruction.
//
// The handler runs after each instruction and looks at the next one, because three kinds need special treatment:
//
//   rep movsb …   traps after each round with the same pc: rounds are counted apart from executions
//   syscall       the kernel clears the flag on entry, and its trap is lost: Stepper::Open has measured how many to add
//   system calls that would end the stepping or the process: blocking SIGTRAP (a forced signal that is blocked kills),
//                 changing its handler, and starting threads and processes, which inherit the flag; and sending a
//                 signal to this thread, whose handler is not stepped
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "src/step/stepper.h"
#include "src/sys/signals.h"

namespace perfkit::step {

// Why stepping stopped before the region's end.
enum class Ending : uint8_t {
  kNone,
  kBudget,       // Too many steps.
  kTime,         // Too much CPU time.
  kFlagLost,     // The region cleared the trap flag, or left a signal handler by a jump.
  kHandler,      // The region installs a handler for SIGTRAP.
  kBareProcess,  // The region starts a process that inherits the flag, without a handler that clears it.
  kThread,       // The region starts a thread.
  kSignal,       // The region sends itself a signal that has a handler, which runs without the flag.
  kOldCall,      // The region makes a system call as 32-bit code does.
  kForeignTrap,  // A SIGTRAP that was not a step: a pending one swallows the next.
};

struct Session {
  // Set before the start.
  uint64_t budget = 0;               // Remaining steps.
  uint64_t cpu_end_ns = 0;           // The thread's CPU time at which stepping stops; 0 means no limit.
  uint64_t swallowed = 0;            // Traps that each system call loses.
  bool executes_cpuid = false;       // True where cpuid loses its trap: the handler executes it.
  const uintptr_t* watch = nullptr;  // Not a span: in_handler.h.
  size_t watched = 0;
  pid_t thread = 0;
  pid_t process = 0;
  pid_t (*ask_thread)() = nullptr;  // Returns the caller's thread id; bound before, as a handler must not bind lazily.
  bool trap_blocked = false;        // True if the region believes that SIGTRAP is blocked; in fact it is not.

  // The results.
  StepCount count;
  uint64_t visits[kMaxWatched] = {};  // Part of `count`.
  Ending ending = Ending::kNone;

  uintptr_t last = 0;        // The instruction that this step executed; 0 means one of RunUnderTrapFlag's.
  bool maybe_other = false;  // A system call may have returned twice: in a child too.
};

// The TrapHandler of a Session.
bool OnStep(void* session, const siginfo_t& info, ucontext_t& registers);

// Runs `region(argument)` under the trap flag. SIGTRAP must be claimed for OnStep, and not be blocked.
void RunUnderTrapFlag(Session& session, void (*region)(void*), void* argument);

}  // namespace perfkit::step
