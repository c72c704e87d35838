// Tracy's macros for C++, which count in perfkit: include this header instead of <tracy/Tracy.hpp>.
//
// Without TRACY_ENABLE, Tracy is not needed, and an annotated program gets perfkit's counters instead. With it, this
// header includes Tracy's, and each zone is a zone of both; Tracy shows the counts of each zone as the zone's text, and
// those of each frame as plots. UseAnnotations (annotations.h) says where perfkit counts.
//
//   macros                                           in perfkit
//   Zone{Scoped,Named}{,N,C,NC}{,S}                  a zone; without a name, its function's (TracyFunction)
//   ZoneTransient{,N}{,S}                            the same; the name may be made at run time; takes a lock
//   FrameMark                                        FrameCounter::Mark(), on the thread that constructed the
//                                                    FrameCounter; ignored on others
//   FrameMarkNamed                                   the mark of frames of that name
//   FrameMarkStart, FrameMarkEnd                     a zone of that name, from the start to the end, on one thread; at
//                                                    most 8 are open at a time on a thread
//   tracy::SetThreadName, SetThreadNameWithHint      names the thread, if it has been in no zone yet
//   TracyLockable, LockableBase and the like         the lock itself
//   ZoneText, ZoneName, ZoneValue, ZoneColor         nothing: a zone's name is that of its macro; colours are ignored
//   TracyPlot, TracyMessage, TracyAlloc and others   nothing, and their arguments are not evaluated
//   ZoneIsActive, TracyIsConnected                   false, because there is no viewer
//
// The last five rows apply only without TRACY_ENABLE. With it, those macros and functions are Tracy's own.
//
// Zones with the same name and the same parent are merged. The name of a function lacks its class and arguments; to
// keep functions of different classes apart, define TracyFunction as __PRETTY_FUNCTION__. Counts of multiplexed events
// are not scaled in Tracy. Tracy's C API, fibers, Lua and GPU zones are not mapped; for fibers, see task_counter.h.
// With PERFKIT_ENABLE=0, the macros are Tracy's own if TRACY_ENABLE is defined, and expand to nothing otherwise.
#pragma once

#include "perfkit/annotations.h"
#include "perfkit/enable.h"

#if defined(TRACY_ENABLE)
#if __has_include(<tracy/Tracy.hpp>)
#include <tracy/Tracy.hpp>
#elif __has_include(<Tracy.hpp>)
#include <Tracy.hpp>
#else
#error TRACY_ENABLE is defined, but tracy/Tracy.hpp is not found. Remedy: add the folder "public" of Tracy to the include path.
#define PERFKIT_WITHOUT_TRACY  // gcc 12 goes on without a header that is missing.
#endif
#if PERFKIT_ENABLE && !defined(PERFKIT_WITHOUT_TRACY)
#include "perfkit/detail/tracy_beside.h"
#endif
#else
#include "perfkit/detail/tracy_alone.h"
#endif

#if PERFKIT_ENABLE || !defined(TRACY_ENABLE)
#undef ZoneNamed
#undef ZoneNamedN
#undef ZoneNamedC
#undef ZoneNamedNC
#undef ZoneNamedS
#undef ZoneNamedNS
#undef ZoneNamedCS
#undef ZoneNamedNCS
#undef ZoneScoped
#undef ZoneScopedN
#undef ZoneScopedC
#undef ZoneScopedNC
#undef ZoneScopedS
#undef ZoneScopedNS
#undef ZoneScopedCS
#undef ZoneScopedNCS
#undef ZoneTransient
#undef ZoneTransientN
#undef ZoneTransientS
#undef ZoneTransientNS

// PERFKIT_TRACY_ZONE(variable, name, color, depth, is_active) and PERFKIT_TRACY_SCOPE(name, color, depth) declare a
// zone; a name of nullptr means the function's. The headers above define both, and PERFKIT_TRACY_DEPTH: the depth of
// call stacks that a zone has by default.
#define ZoneNamed(variable, is_active) PERFKIT_TRACY_ZONE(variable, nullptr, 0, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneNamedN(variable, name, is_active) PERFKIT_TRACY_ZONE(variable, name, 0, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneNamedC(variable, color, is_active) \
  PERFKIT_TRACY_ZONE(variable, nullptr, color, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneNamedNC(variable, name, color, is_active) \
  PERFKIT_TRACY_ZONE(variable, name, color, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneNamedS(variable, depth, is_active) PERFKIT_TRACY_ZONE(variable, nullptr, 0, depth, is_active)
#define ZoneNamedNS(variable, name, depth, is_active) PERFKIT_TRACY_ZONE(variable, name, 0, depth, is_active)
#define ZoneNamedCS(variable, color, depth, is_active) PERFKIT_TRACY_ZONE(variable, nullptr, color, depth, is_active)
#define ZoneNamedNCS(variable, name, color, depth, is_active) \
  PERFKIT_TRACY_ZONE(variable, name, color, depth, is_active)

#define ZoneScoped PERFKIT_TRACY_SCOPE(nullptr, 0, PERFKIT_TRACY_DEPTH)
#define ZoneScopedN(name) PERFKIT_TRACY_SCOPE(name, 0, PERFKIT_TRACY_DEPTH)
#define ZoneScopedC(color) PERFKIT_TRACY_SCOPE(nullptr, color, PERFKIT_TRACY_DEPTH)
#define ZoneScopedNC(name, color) PERFKIT_TRACY_SCOPE(name, color, PERFKIT_TRACY_DEPTH)
#define ZoneScopedS(depth) PERFKIT_TRACY_SCOPE(nullptr, 0, depth)
#define ZoneScopedNS(name, depth) PERFKIT_TRACY_SCOPE(name, 0, depth)
#define ZoneScopedCS(color, depth) PERFKIT_TRACY_SCOPE(nullptr, color, depth)
#define ZoneScopedNCS(name, color, depth) PERFKIT_TRACY_SCOPE(name, color, depth)

#define ZoneTransient(variable, is_active) \
  PERFKIT_TRACY_TRANSIENT(variable, TracyFunction, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneTransientN(variable, name, is_active) \
  PERFKIT_TRACY_TRANSIENT(variable, name, PERFKIT_TRACY_DEPTH, is_active)
#define ZoneTransientS(variable, depth, is_active) PERFKIT_TRACY_TRANSIENT(variable, TracyFunction, depth, is_active)
#define ZoneTransientNS(variable, name, depth, is_active) PERFKIT_TRACY_TRANSIENT(variable, name, depth, is_active)
#endif
