// Replaces Tracy's macros if Tracy is not used. tracy.h builds the zone macros from PERFKIT_TRACY_ZONE and its like.
// Included by tracy.h; do not include it directly.
#pragma once

#include <cstdint>

#include "perfkit/annotations.h"

#ifndef TracyFunction
#define TracyFunction __FUNCTION__
#endif

// Unless Tracy's own header was included, which declares the same.
#ifndef __TRACYSYSTEM_HPP__
namespace tracy {

inline void SetThreadName(const char* name) {
#if PERFKIT_ENABLE
  ::perfkit::detail::NameAnnotatedThread(name);
#else
  static_cast<void>(name);
#endif
}
inline void SetThreadNameWithHint(const char* name, int32_t) { SetThreadName(name); }

}  // namespace tracy
#endif

#undef FrameMark
#undef FrameMarkNamed
#undef FrameMarkStart
#undef FrameMarkEnd

#define PERFKIT_TRACY_DEPTH 0
#if PERFKIT_ENABLE
#define PERFKIT_TRACY_ZONE(variable, name, color, depth, is_active)                             \
  const ::perfkit::FrameCounter::Zone variable(::perfkit::detail::AnnotatedFramesIf(is_active), \
                                               ::perfkit::detail::AnnotatedZoneId(name, TracyFunction))
#define PERFKIT_TRACY_SCOPE(name, color, depth) \
  PERFKIT_TRACY_ZONE(PERFKIT_CONCAT(perfkit_zone_, __LINE__), name, color, depth, true)
#define PERFKIT_TRACY_TRANSIENT(variable, name, depth, is_active) \
  const ::perfkit::FrameCounter::Zone variable =                  \
      ::perfkit::detail::AnnotatedCopyZone(::perfkit::detail::AnnotatedFramesIf(is_active), name)

#define FrameMark ::perfkit::detail::MarkAnnotated()
#define FrameMarkNamed(name) ::perfkit::detail::MarkAnnotated(name)
#define FrameMarkStart(name) ::perfkit::detail::StartAnnotatedRun(name)
#define FrameMarkEnd(name) ::perfkit::detail::EndAnnotatedRun(name)
#else
// Names `is_active` without evaluating it, so that it does not become an unused variable.
#define PERFKIT_TRACY_ZONE(variable, name, color, depth, is_active) static_assert(sizeof(is_active) != 0)
#define PERFKIT_TRACY_SCOPE(name, color, depth)
#define PERFKIT_TRACY_TRANSIENT(variable, name, depth, is_active) static_assert(sizeof(is_active) != 0)

#define FrameMark
#define FrameMarkNamed(name)
#define FrameMarkStart(name)
#define FrameMarkEnd(name)
#endif

// Macros that wrap a lock declare the lock itself.
#undef TracyLockable
#undef TracyLockableN
#undef TracySharedLockable
#undef TracySharedLockableN
#undef LockableBase
#undef SharedLockableBase
#undef LockMark
#undef LockableName
#define TracyLockable(type, variable) type variable
#define TracyLockableN(type, variable, description) type variable
#define TracySharedLockable(type, variable) type variable
#define TracySharedLockableN(type, variable, description) type variable
#define LockableBase(type) type
#define SharedLockableBase(type) type
#define LockMark(variable) static_cast<void>(variable)
#define LockableName(variable, text, size)

// There is no viewer, so code under `if (ZoneIsActive)` is skipped.
#undef ZoneIsActive
#undef ZoneIsActiveV
#undef TracyIsConnected
#undef TracyIsStarted
#define ZoneIsActive false
#define ZoneIsActiveV(variable) false
#define TracyIsConnected false
#define TracyIsStarted false

// Text, names, values and colours that zones have in Tracy only.
#undef ZoneText
#undef ZoneTextV
#undef ZoneTextF
#undef ZoneTextVF
#undef ZoneName
#undef ZoneNameV
#undef ZoneNameF
#undef ZoneNameVF
#undef ZoneColor
#undef ZoneColorV
#undef ZoneValue
#undef ZoneValueV
#define ZoneText(...)
#define ZoneTextV(...)
#define ZoneTextF(...)
#define ZoneTextVF(...)
#define ZoneName(...)
#define ZoneNameV(...)
#define ZoneNameF(...)
#define ZoneNameVF(...)
#define ZoneColor(...)
#define ZoneColorV(...)
#define ZoneValue(...)
#define ZoneValueV(...)

// Plots, messages, allocations, and the connection to the viewer.
#undef FrameImage
#undef TracyPlot
#undef TracyPlotConfig
#undef TracyMessage
#undef TracyMessageL
#undef TracyMessageC
#undef TracyMessageLC
#undef TracyMessageS
#undef TracyMessageLS
#undef TracyMessageCS
#undef TracyMessageLCS
#undef TracyLogString
#undef TracyAppInfo
#undef TracyAlloc
#undef TracyFree
#undef TracyAllocN
#undef TracyFreeN
#undef TracyAllocS
#undef TracyFreeS
#undef TracyAllocNS
#undef TracyFreeNS
#undef TracySecureAlloc
#undef TracySecureFree
#undef TracySecureAllocN
#undef TracySecureFreeN
#undef TracySecureAllocS
#undef TracySecureFreeS
#undef TracySecureAllocNS
#undef TracySecureFreeNS
#undef TracyMemoryDiscard
#undef TracyMemoryDiscardS
#undef TracySourceCallbackRegister
#undef TracyParameterRegister
#undef TracyParameterSetup
#undef TracySetProgramName
#undef TracySectionLeave
#undef TracySectionSetup
#undef TracyFiberEnter
#undef TracyFiberEnterHint
#undef TracyFiberLeave
#undef TracyNoop
#define FrameImage(...)
#define TracyPlot(...)
#define TracyPlotConfig(...)
#define TracyMessage(...)
#define TracyMessageL(...)
#define TracyMessageC(...)
#define TracyMessageLC(...)
#define TracyMessageS(...)
#define TracyMessageLS(...)
#define TracyMessageCS(...)
#define TracyMessageLCS(...)
#define TracyLogString(...)
#define TracyAppInfo(...)
#define TracyAlloc(...)
#define TracyFree(...)
#define TracyAllocN(...)
#define TracyFreeN(...)
#define TracyAllocS(...)
#define TracyFreeS(...)
#define TracyAllocNS(...)
#define TracyFreeNS(...)
#define TracySecureAlloc(...)
#define TracySecureFree(...)
#define TracySecureAllocN(...)
#define TracySecureFreeN(...)
#define TracySecureAllocS(...)
#define TracySecureFreeS(...)
#define TracySecureAllocNS(...)
#define TracySecureFreeNS(...)
#define TracyMemoryDiscard(...)
#define TracyMemoryDiscardS(...)
#define TracySourceCallbackRegister(...)
#define TracyParameterRegister(...)
#define TracyParameterSetup(...)
#define TracySetProgramName(...)
#define TracySectionLeave(...)
#define TracySectionSetup(...)
#define TracyFiberEnter(...)
#define TracyFiberEnterHint(...)
#define TracyFiberLeave
#define TracyNoop

#undef TracySectionEnter
#undef TracySectionEnterCategory
#define TracySectionEnter(...) 0
#define TracySectionEnterCategory(...) 0
