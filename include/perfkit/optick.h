// Optick's macros, which count in perfkit: include this header instead of "optick.h". Optick itself is not needed.
// UseAnnotations (annotations.h) says where perfkit counts.
//
//   macros                                        in perfkit
//   OPTICK_FRAME, OPTICK_FRAME_FLIP,              without a type, or with CPU: FrameCounter::Mark(), on the thread that
//   OPTICK_FRAME_EVENT                            constructed the FrameCounter; with another type: Mark(id) for the
//                                                 frames of that type
//   OPTICK_EVENT, OPTICK_CATEGORY                 a zone; without a name, it has that of its function, with class and
//                                                 arguments
//   OPTICK_GPU_EVENT                              a zone on the CPU: what the GPU does is not counted
//   OPTICK_EVENT_DYNAMIC                          a zone with a name that is made at run time; locks
//   OPTICK_PUSH, OPTICK_PUSH_DYNAMIC, OPTICK_POP  FrameCounter::Enter and Leave
//   OPTICK_THREAD, OPTICK_APP                     the name of the thread until the end of the block, if it has been in
//                                                 no zone yet
//   OPTICK_START_THREAD, OPTICK_STOP_THREAD       the same, from OPTICK_START_THREAD to OPTICK_STOP_THREAD
//   OPTICK_TAG, OPTICK_UPDATE, captures,          nothing, and their arguments are not evaluated
//   OPTICK_CUSTOM_EVENT, storages, GPU contexts
//
// Categories have no effect. Namespace Optick is not declared, as with USE_OPTICK=0. With PERFKIT_ENABLE=0 all macros
// expand to nothing.
#pragma once

#include "perfkit/annotations.h"
#include "perfkit/enable.h"

#undef OPTICK_FUNC
#undef OPTICK_EVENT
#undef OPTICK_CATEGORY
#undef OPTICK_FRAME
#undef OPTICK_FRAME_FLIP
#undef OPTICK_FRAME_EVENT
#undef OPTICK_THREAD
#undef OPTICK_START_THREAD
#undef OPTICK_STOP_THREAD
#undef OPTICK_EVENT_DYNAMIC
#undef OPTICK_PUSH
#undef OPTICK_PUSH_DYNAMIC
#undef OPTICK_POP
#undef OPTICK_GPU_EVENT
#undef OPTICK_APP

#if PERFKIT_ENABLE
#define OPTICK_FUNC __PRETTY_FUNCTION__

// The first of its arguments.
#define PERFKIT_OPTICK_FIRST(first, ...) first
#define PERFKIT_OPTICK_ZONE(name)                                                                                   \
  const ::perfkit::FrameCounter::Zone PERFKIT_CONCAT(perfkit_zone_, __LINE__)(::perfkit::detail::AnnotatedFrames(), \
                                                                              ::perfkit::ZoneId{name})

#define OPTICK_EVENT(...) PERFKIT_OPTICK_ZONE(PERFKIT_OPTICK_FIRST(__VA_ARGS__ __VA_OPT__(, ) OPTICK_FUNC, ))
#define OPTICK_CATEGORY(name, category) PERFKIT_OPTICK_ZONE(name)
#define OPTICK_GPU_EVENT(name) PERFKIT_OPTICK_ZONE(name)
#define OPTICK_EVENT_DYNAMIC(name)                                              \
  const ::perfkit::FrameCounter::Zone PERFKIT_CONCAT(perfkit_zone_, __LINE__) = \
      ::perfkit::detail::AnnotatedCopyZone(::perfkit::detail::AnnotatedFrames(), name)
#define OPTICK_PUSH(name) ::perfkit::detail::EnterAnnotated({name})
#define OPTICK_PUSH_DYNAMIC(name) ::perfkit::detail::EnterAnnotatedCopy(name)
#define OPTICK_POP() ::perfkit::detail::LeaveAnnotated()

#define OPTICK_FRAME(name, ...) ::perfkit::detail::MarkAnnotatedType("" #__VA_ARGS__)
#define OPTICK_FRAME_FLIP(...) ::perfkit::detail::MarkAnnotatedType("" #__VA_ARGS__)
#define OPTICK_FRAME_EVENT(...) ::perfkit::detail::MarkAnnotatedType("" #__VA_ARGS__)

#define OPTICK_THREAD(name) \
  const auto PERFKIT_CONCAT(perfkit_thread_, __LINE__) = ::perfkit::detail::AttachAnnotatedThread(name)
#define OPTICK_APP(name) OPTICK_THREAD(name)
#define OPTICK_START_THREAD(name) ::perfkit::detail::NameAnnotatedThread(name)
#define OPTICK_STOP_THREAD() ::perfkit::detail::LeaveAnnotatedThread()
#else
#define OPTICK_FUNC ""
#define OPTICK_EVENT(...)
#define OPTICK_CATEGORY(...)
#define OPTICK_FRAME(...)
#define OPTICK_FRAME_FLIP(...)
#define OPTICK_FRAME_EVENT(...)
#define OPTICK_THREAD(...)
#define OPTICK_START_THREAD(...)
#define OPTICK_STOP_THREAD(...)
#define OPTICK_EVENT_DYNAMIC(...)
#define OPTICK_PUSH(...)
#define OPTICK_PUSH_DYNAMIC(...)
#define OPTICK_POP(...)
#define OPTICK_GPU_EVENT(...)
#define OPTICK_APP(...)
#endif

#undef OPTICK_TAG
#undef OPTICK_UPDATE
#undef OPTICK_CUSTOM_EVENT
#undef OPTICK_STORAGE_REGISTER
#undef OPTICK_STORAGE_EVENT
#undef OPTICK_STORAGE_PUSH
#undef OPTICK_STORAGE_POP
#undef OPTICK_SET_STATE_CHANGED_CALLBACK
#undef OPTICK_SET_MEMORY_ALLOCATOR
#undef OPTICK_SHUTDOWN
#undef OPTICK_GPU_INIT_D3D12
#undef OPTICK_GPU_INIT_VULKAN
#undef OPTICK_GPU_CONTEXT
#undef OPTICK_GPU_FLIP
#undef OPTICK_START_CAPTURE
#undef OPTICK_STOP_CAPTURE
#undef OPTICK_SAVE_CAPTURE
#define OPTICK_TAG(...)
#define OPTICK_UPDATE(...)
#define OPTICK_CUSTOM_EVENT(...)
#define OPTICK_STORAGE_REGISTER(...)
#define OPTICK_STORAGE_EVENT(...)
#define OPTICK_STORAGE_PUSH(...)
#define OPTICK_STORAGE_POP(...)
#define OPTICK_SET_STATE_CHANGED_CALLBACK(...)
#define OPTICK_SET_MEMORY_ALLOCATOR(...)
#define OPTICK_SHUTDOWN(...)
#define OPTICK_GPU_INIT_D3D12(...)
#define OPTICK_GPU_INIT_VULKAN(...)
#define OPTICK_GPU_CONTEXT(...)
#define OPTICK_GPU_FLIP(...)
#define OPTICK_START_CAPTURE(...)
#define OPTICK_STOP_CAPTURE(...)
#define OPTICK_SAVE_CAPTURE(...)
