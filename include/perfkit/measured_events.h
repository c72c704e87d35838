// Events that perf does not have: Measure counts them (measure.h).
#pragma once

#include <cstdint>

#include "perfkit/event_type.h"

namespace PERFKIT_NAMESPACE {

// EventType::type of events that perf does not have. A CounterSet refuses them: Unavailable.
inline constexpr uint32_t kMeasuredType = 0xffff'0001;

namespace event {

// Calls of malloc, calloc, realloc, memalign, aligned_alloc and posix_memalign by the thread, also by operator new.
// Requires linking perfkit::testing_alloc, or MeasureBackend::kStepper.
inline constexpr EventType kAllocations{kMeasuredType, 1, 0, 0, "allocations"};
// System calls of the thread. A call that the vDSO answers (mostly clock_gettime) does not count.
inline constexpr EventType kSyscalls{kMeasuredType, 2, 0, 0, "system-calls"};

}  // namespace event

}  // namespace PERFKIT_NAMESPACE
