// What a signal handler may ask Linux: past the table of kernel.h and past sanitizers, whose calls may take locks.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace perfkit::sys {

// The calling thread's number. About 50 ns.
pid_t HandlerTid();

// Returns false if this process has no thread `tid` any more. What an ended thread has written is visible then.
bool HandlerThreadExists(pid_t tid);

// By `clock`, in nanoseconds; 0 when there is no such clock. Of the system's clocks about 25 ns, by the vDSO; of CPU
// time about 200.
uint64_t HandlerNow(clockid_t clock);

}  // namespace perfkit::sys
