// One region being stepped: what each trap adds to its count, and what has to be done before the next one.
//
// The handler runs after each instruction and looks at the one that comes next, because three need help:
//
//   rep movsb …   traps after each round with the same pc: rounds are told from executions
//   syscall       the kernel clears the flag on entry and its trap is lost: made up for, by what calibration found
//   … and of system calls, those that would end the stepping or the process: blocking SIGTRAP (a forced signal that is
//                 blocked kills), changing its handler, and starting threads and processes, which inherit the flag
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "src/step/stepper.h"
#include "src/sys/signals.h"

namespace perfkit::step {

// Why stepping stopped before the region did.
enum class Ending : uint8_t {
  kNone,
  kBudget,       // too many steps
  kTime,         // too much CPU time
  kFlagLost,     // the region cleared the trap flag, or left a signal handler by a jump
  kHandler,      // the region installs a handler for SIGTRAP
  kBareProcess,  // the region starts a process that inherits the flag, and no handler to take it away
  kThread,       // the region starts a thread
  kForeignTrap,  // a SIGTRAP that was not a step: one that is pending swallows the next
};

struct Session {
  // Set before the start.
  uint64_t budget = 0;               // steps that are left
  uint64_t cpu_end_ns = 0;           // the thread's CPU time at which stepping stops; 0: no limit
  uint64_t swallowed = 0;            // traps that a system call costs
  const uintptr_t* watch = nullptr;  // not a span: see in_handler.h
  size_t watched = 0;
  pid_t thread = 0;  // and how to ask for it: found before, as a handler must not look anything up
  pid_t (*ask_thread)() = nullptr;
  bool trap_blocked = false;  // as the region sees its signal mask; in truth SIGTRAP is open

  // What came of it.
  StepCount count;
  uint64_t visits[kMaxWatched] = {};  // of count
  Ending ending = Ending::kNone;

  uintptr_t last = 0;        // the instruction that this step executed; 0: one of RunUnderTrapFlag's
  bool maybe_other = false;  // a system call may have returned twice: in a child too
};

// The TrapHandler of a Session.
bool OnStep(void* session, const siginfo_t& info, ucontext_t& registers);

// Runs `region(argument)` under the trap flag. SIGTRAP must be claimed for OnStep, and not be blocked.
void RunUnderTrapFlag(Session& session, void (*region)(void*), void* argument);

}  // namespace perfkit::step
