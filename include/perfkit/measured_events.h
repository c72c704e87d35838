// Events that perf does not have. Measure counts all of them (measure.h), a CounterSet of the calling thread all but
// the system calls.
#pragma once

#include <cstdint>

#include "perfkit/event_type.h"

namespace PERFKIT_NAMESPACE {

// EventType::type of events that perf does not have.
inline constexpr uint32_t kMeasuredType = 0xffff'0001;

namespace event {

// Calls of malloc, calloc, realloc, memalign, aligned_alloc, posix_memalign, valloc and pvalloc by the thread, also by
// operator new; not those of posix_memalign with an alignment that it refuses. Requires linking perfkit::testing_alloc,
// or preloading libperfkit_malloc_preload.so. Measure needs neither: without them it counts by uprobes or the stepper.
inline constexpr EventType kAllocations{kMeasuredType, 1, 0, 0, "allocations"};
// The bytes that those calls requested; for realloc the whole new size. A call that fails adds none. Requires linking
// perfkit::testing_alloc or preloading libperfkit_malloc_preload.so, also for Measure.
inline constexpr EventType kAllocatedBytes{kMeasuredType, 4, 0, 0, "allocated-bytes"};
// The bytes that the thread's system calls read and wrote: rchar and wchar of /proc/thread-self/io (man proc_pid_io).
// They include read, pread, readv, write and their like on files, pipes, terminals and sockets, sendfile and
// copy_file_range, with the page cache or without; they do not include recv, send, splice, io_uring, AIO and mapped
// files. What perfkit itself reads is left out. Short names: "rchar" and "wchar".
inline constexpr EventType kReadBytes{kMeasuredType, 5, 0, 0, "syscall-read-bytes"};
inline constexpr EventType kWrittenBytes{kMeasuredType, 6, 0, 0, "syscall-written-bytes"};
// System calls of the thread. A call that the vDSO answers (mostly clock_gettime) does not count. A CounterSet refuses
// this event: Unavailable.
inline constexpr EventType kSyscalls{kMeasuredType, 2, 0, 0, "system-calls"};

}  // namespace event

}  // namespace PERFKIT_NAMESPACE
