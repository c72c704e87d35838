// Feeds the zones, frames and threads of code that is annotated for another profiler into a FrameCounter.
//
//   perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}});
//   perfkit::UseAnnotations(&frames);      // from now on, all annotated code counts there
//   RunEngine();
//   fputs(frames.FormatZones().c_str(), stdout);
//   perfkit::UseAnnotations(nullptr);      // before `frames` is destroyed
//
// The macros are in tracy.h (Tracy's) and optick.h (Optick's). An annotated file includes one of these instead of the
// profiler's own header, and nothing else changes in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "perfkit/enable.h"
#include "perfkit/frame_counter.h"

namespace PERFKIT_NAMESPACE {

#if PERFKIT_ENABLE
// From now on, zones, frames and threads of annotated code belong to `frames`; with nullptr, to none: an annotated zone
// then costs one load. Requires the thread that constructed `frames`; nullptr may be passed on any thread. Before a
// FrameCounter is destroyed, replace it, and wait until no thread is in an annotated zone or in one of the macros. Each
// new FrameCounter allocates about 1 KiB that is never freed, because Tracy keeps pointers to the names of events.
void UseAnnotations(FrameCounter* frames) noexcept;

// What the macros expand to. Not for programs.
namespace detail {

extern constinit std::atomic<FrameCounter*> annotated_frames;

// Acquire: pairs with the release in UseAnnotations.
inline FrameCounter* AnnotatedFrames() noexcept { return annotated_frames.load(std::memory_order_acquire); }
inline FrameCounter* AnnotatedFramesIf(bool is_active) noexcept { return is_active ? AnnotatedFrames() : nullptr; }

// Returns the id of a zone: `name`, or `function` if `name` is nullptr.
constexpr ZoneId AnnotatedZoneId(const char* name, const char* function) noexcept {
  return {name != nullptr ? name : function};
}
// Begins a zone with a name that is made at run time. Locks. Allocates for a new name.
inline FrameCounter::Zone AnnotatedCopyZone(FrameCounter* frames, std::string_view name) {
  return FrameCounter::Zone(frames, frames != nullptr ? frames->DefineZone(name) : ZoneId{""});
}

// Enter a zone, and leave the zone that was entered last. A Leave belongs to the last Enter on its thread, whichever
// FrameCounter was used at that time, and is ignored without one. Enters beyond kMaxEntered at a time are not counted.
inline constexpr size_t kMaxEntered = 64;
void EnterAnnotated(ZoneId id) noexcept;
// As above, with a name that is made at run time. Locks. Allocates for a new name.
void EnterAnnotatedCopy(std::string_view name);
void LeaveAnnotated() noexcept;

inline void MarkAnnotated() noexcept {
  if (FrameCounter* const frames = AnnotatedFrames(); frames != nullptr) frames->Mark();
}
// Marks the frames of that name. The first mark of a name defines its frames: it locks and allocates.
// FrameCounter::DefineFrame allows 15 names: marks of further ones are ignored, and each of these marks locks.
void MarkAnnotated(std::string_view name) noexcept;
// As above, with the text of a macro's arguments, "Optick::FrameType::Render, time": the name is the last identifier
// before the comma. "CPU" and an empty text mean the main frames.
void MarkAnnotatedType(std::string_view type) noexcept;
// Start and end a zone `name`, a string that stays valid until the end. Require the same thread for both. A thread has
// at most kMaxRuns at a time; further ones are not counted. An end belongs to the last start with its name, whichever
// FrameCounter was used at that time, and is ignored without one.
inline constexpr size_t kMaxRuns = 8;
void StartAnnotatedRun(const char* name) noexcept;
void EndAnnotatedRun(const char* name) noexcept;

inline std::optional<FrameCounter::AttachedThread> AttachAnnotatedThread(std::string_view name) {
  FrameCounter* const frames = AnnotatedFrames();
  return frames != nullptr ? std::optional(frames->AttachThread(name)) : std::nullopt;
}
// As FrameCounter::AttachThread, until the end of the thread or LeaveAnnotatedThread. nullptr is ignored. On the thread
// that marks the main frames, neither NameAnnotatedThread nor LeaveAnnotatedThread has an effect.
void NameAnnotatedThread(const char* name) noexcept;
void LeaveAnnotatedThread() noexcept;

// A frame that has ended, with the names of its events. `record` is valid until the next mark. The strings in `names`
// are NUL-terminated and never freed.
struct MarkedFrame {
  const FrameRecord* record = nullptr;  // nullptr means that no frame has ended.
  std::span<const char* const> names{};
};
// Marks the main frames, and returns the frame that has ended. Returns no frame (record is nullptr) on other threads
// than the one that constructed the FrameCounter.
MarkedFrame MarkAnnotatedFrame() noexcept;

// Writes the events that were counted to `text`: "page-faults: 3, task-clock: 1200". Returns the length. If an event
// does not fit, it and those after it are left out.
size_t FormatCounts(const FrameCounter& frames, const FrameRecord& counts, std::span<char> text) noexcept;

}  // namespace detail
#else
inline void UseAnnotations(FrameCounter*) noexcept {}
#endif

}  // namespace PERFKIT_NAMESPACE
