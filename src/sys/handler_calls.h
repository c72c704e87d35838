// System calls for signal handlers. They bypass the table of kernel.h and the sanitizers, whose wrappers may take
// locks.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace perfkit::sys {

// Returns the calling thread's number. Takes about 50 ns.
pid_t HandlerTid();

// Returns false if this process has no thread `tid` any more. Everything that an ended thread has written is then
// visible.
bool HandlerThreadExists(pid_t tid);

// Returns true if the signal has a handler, not SIG_DFL or SIG_IGN.
bool HandlerIsSet(int signal);

// Disables the perf event with that descriptor, and all events that inherited it. errno may change.
void HandlerDisableEvent(int fd);

// Returns the time of `clock` in nanoseconds; 0 if there is no such clock. Takes about 25 ns for the system's clocks,
// by the vDSO, and about 200 ns for clocks of CPU time.
uint64_t HandlerNow(clockid_t clock);

}  // namespace perfkit::sys
