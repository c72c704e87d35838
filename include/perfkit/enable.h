// Selects whether perfkit counts, or the headers of its hot path compile to nothing.
//
// PERFKIT_ENABLE is 1 on Linux, unless the build defines it as 0. On other systems it is always 0. With 0, the headers
// of the hot path need neither the library nor Abseil. They define the same functions, inline and empty
// (include/perfkit/off), except ThreadSerial, ReadTicks, and those that take or return EventConfig or Metric. Each
// count is kNotCounted, and each reason says why. The headers of the hot path are
//
//   annotations.h count.h counter.h event_specs.h event_type.h frame.h frame_counter.h itt.h measure.h
//   measured_events.h optick.h scope.h target.h task_counter.h task_coroutine.h task_job.h thread_slots.h tracy.h
//   warmup.h, and task_boost_fiber.h and task_tbb.h, which need Boost.Fiber and oneTBB in both cases
//
// All other headers need the library. Include enable.h or one of the above first, and the others inside
// `#if PERFKIT_ENABLE`.
#pragma once

#if !defined(__linux__)
#undef PERFKIT_ENABLE
#define PERFKIT_ENABLE 0
#elif !defined(PERFKIT_ENABLE)
#define PERFKIT_ENABLE 1
#endif

#if PERFKIT_ENABLE && __cplusplus < 202002L
#error "perfkit needs C++20: compile with -std=c++20 or later"
#endif

// The namespace of everything that differs between 0 and 1. So files compiled with 0 and with 1 never share inline
// functions, and do not link if one passes perfkit's objects to the other. Do not forward-declare perfkit's classes,
// whose namespace differs: include the headers.
#if PERFKIT_ENABLE
#define PERFKIT_NAMESPACE perfkit
#else
#define PERFKIT_NAMESPACE perfkit::inline off
#endif
