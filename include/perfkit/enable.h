// Whether perfkit counts, or its hot headers compile to nothing.
//
// PERFKIT_ENABLE is 1 on Linux unless the build defines it as 0. Everywhere else it is 0, whatever the build says. With
// 0, the headers of the hot path declare the same functions, inline and empty (include/perfkit/off): they need neither
// the library nor Abseil, and nothing is counted: each count is kNotCounted, each reason says so. They are
//
//   count.h counter.h event_type.h frame.h frame_counter.h measure.h scope.h target.h thread_slots.h warmup.h
//
// All other headers need the library: include them only `#if PERFKIT_ENABLE`, after any of the above.
#pragma once

#if !defined(__linux__)
#undef PERFKIT_ENABLE
#define PERFKIT_ENABLE 0
#elif !defined(PERFKIT_ENABLE)
#define PERFKIT_ENABLE 1
#endif

// The namespace of all that differs between the two. So what was compiled with 0 does not link with what was compiled
// with 1 if one passes perfkit's objects to the other, and neither uses inline functions of the other. For the same
// reason, include the headers instead of declaring their classes.
#if PERFKIT_ENABLE
#define PERFKIT_NAMESPACE perfkit
#else
#define PERFKIT_NAMESPACE perfkit::inline off
#endif
