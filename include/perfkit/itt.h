// Counts the tasks of ITT-annotated code (TBB, oneDNN, OpenCV, OpenVINO, PyTorch, the program itself) as zones of a
// FrameCounter of the program.
//
//   int main() {
//     perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}});
//     const auto itt = perfkit::IttCollection::Start(frames);   // before the first call of annotated code
//     if (!itt.ok()) fprintf(stderr, "%s\n", itt.status().ToString().c_str());
//     ...
//   }                                                           // it ends before `frames` does
//
// It needs libperfkit_itt.so at run time: ittnotify, which annotated code links, loads a library, and cannot load a
// program. docs/itt.md says what becomes a zone. A zone's name is "domain: task".
// With PERFKIT_ENABLE=0, Start returns an error, and nothing is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "perfkit/enable.h"
#include "perfkit/frame_counter.h"

#if PERFKIT_ENABLE
#include "absl/status/statusor.h"
#else
#include "perfkit/off/reason.h"
#endif

namespace PERFKIT_NAMESPACE {

// Overlapped tasks, regions and submitted frames of one name. They belong to no thread, so they have times alone.
struct IttTimes {
  std::string name;  // "domain: task"; "domain: (frame)" for submitted frames.
  uint64_t calls = 0;
  uint64_t total_ns = 0, max_ns = 0;
};

// Copies of ittnotify since the process began, and numbers of tasks, frames and ends since Start.
struct IttStats {
  // Each annotated program and library has a copy of ittnotify, and is connected at its first ITT call. A copy that
  // made its first call before Start, without INTEL_LIBITTNOTIFY64, is never connected: perfkit cannot know of it.
  uint32_t copies = 0;
  uint32_t unknown_copies = 0;  // Those of another layout, from before 2011. They are left alone.

  uint64_t paused = 0;  // Begun after __itt_pause, or while the FrameCounter was disabled: no zones.
  // Begun on a thread that was ending, or that FrameOptions::max_threads refused, or in a signal handler that
  // interrupted a mark, or the start or end of one of the program's own zones: no zones.
  uint64_t refused = 0;
  uint64_t in_handler = 0;  // Begun in a signal handler that interrupted the start or end of a task: no zones.
  uint64_t too_deep = 0;    // Begun inside of 64 others: no zones.
  uint64_t stray_ends = 0;  // Ends without a begin on their thread since Start: ignored.
  uint64_t cut = 0;         // Ended by the end of a task or frame around them: counted up to then.
  uint64_t unended = 0;     // Open when their thread ended, or at the end of the collection.
  // Begins and ends that a signal handler left by siglongjmp, which is a fault of the program (docs/itt.md), and the
  // tasks that were open on their threads then: no counts. The program's own zones that were open have none, either.
  uint64_t jumped = 0;

  std::vector<IttTimes> times;  // By name.
  uint64_t timed_open = 0;      // Overlapped tasks and regions without an end.
  uint64_t timed_stray = 0;     // Ends of such without a begin.
  uint64_t timed_dropped = 0;   // Beyond 100,000 open ones, or 1,000 names.
  uint64_t timed_invalid = 0;   // Submitted frames without valid times, such as those that end later than now.
};

#if PERFKIT_ENABLE
// A process has one at a time. Each takes 200 KB, which stay allocated: other threads may be about to use them.
// Requires the thread that constructed the FrameCounter, unless a comment says otherwise. The program or library that
// contains perfkit must stay loaded. Tasks in signal handlers: as zones (FrameCounter), but a thread's first task and
// the first of a name lock and allocate. In a forked child it counts nothing. Movable, not copyable: a moved-from one
// may only be assigned to or destroyed.
class IttCollection {
 public:
  // Loads libperfkit_itt.so, unless it is loaded already. If INTEL_LIBITTNOTIFY64 is not set, sets it for ittnotify,
  // and PERFKIT_ITT_FORWARD_ONLY, so that programs that this one starts count nothing: no other thread may read or
  // change the environment at the same time. Tasks are zones of `frames` from now on, on the thread that they run on,
  // inside of the program's own zones. libperfkit_itt.so then writes no table of its own at the exit.
  //
  // `collector_path`: the library. If it is nullptr, INTEL_LIBITTNOTIFY64 names it, and without that the dynamic linker
  // finds it (the program's RUNPATH, LD_LIBRARY_PATH, the system's folders). Destroy the result before `frames`.
  // Errors: NotFound if there is no such library, or if it cannot be loaded; FailedPrecondition if
  // INTEL_LIBITTNOTIFY64 names another collector, if another IttCollection was not stopped (in a forked child also the
  // parent's), if `frames` was constructed before the fork of this process, or if the library is no libperfkit_itt.so,
  // or one of an incompatible perfkit.
  static absl::StatusOr<IttCollection> Start(FrameCounter& frames, const char* collector_path = nullptr);

  IttCollection(IttCollection&& other) noexcept;
  IttCollection& operator=(IttCollection&& other) noexcept;
  ~IttCollection();  // As Stop.

  // Ends the collection: ITT calls have no effect from now on, until there is another one. Waits up to 100 ms for other
  // threads to leave their tasks. Zones of tasks that stay open are given up: they are counted in
  // FrameStats::cross_thread, and what their threads counted since they were last outside of all zones is missing until
  // they enter and leave another zone. Those of the calling thread end here, with counts. A thread that a signal
  // handler has taken out of a begin or an end by siglongjmp is given up after it has run or slept for 10 s more; its
  // tasks are `unended`, and its zones stay open. May be called more than once.
  void Stop();

  // Thread-safe. Locks. Also after Stop.
  IttStats Stats() const;

 private:
  class Impl;
  explicit IttCollection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};
#else
class IttCollection {
 public:
  static detail::UnimplementedOr<IttCollection> Start(FrameCounter&, const char* = nullptr) { return {}; }
  void Stop() {}
  IttStats Stats() const { return {}; }
};
#endif

}  // namespace PERFKIT_NAMESPACE
