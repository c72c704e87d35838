// Counts the tasks and frames of ITT-annotated code as zones of a FrameCounter.
//
//   ittnotify ── calls.cc ──> Collector ──> FrameCounter: counts by thread and zone
//                                 └───────> TimedTasks: what has only times
//
// The FrameCounter is the program's own (collection.cc), or one that libperfkit_itt.so makes for a table at the exit
// (library/own_table.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/itt/abi.h"
#include "src/itt/open_tasks.h"
#include "src/itt/timed_tasks.h"
#include "src/itt/zone_table.h"

namespace perfkit::itt {

// What a zone is named after: a string handle, the address of a function, or a frame's domain alone.
enum class KeyKind : uint8_t { kHandle, kFunction, kFrame };

// Who names the threads of the FrameCounter.
enum class ThreadNames : uint8_t {
  kCollector,  // "main" or "threads", or what ITT names them, from the next task outside of all others.
  kProgram,    // The program. ITT names those that have been in no zone yet.
};

// Numbers of tasks, frames and ends that are not counted, or not as they were annotated. Each is a line of the report.
struct Uncounted {
  std::atomic<uint64_t> paused{0};      // Begun while collection was paused, or the FrameCounter was disabled.
  std::atomic<uint64_t> late{0};        // Begun after EndForTable.
  std::atomic<uint64_t> refused{0};     // Begun on a thread that ends, or on one too many.
  std::atomic<uint64_t> in_handler{0};  // Begun in a signal handler that interrupted the collector.
  std::atomic<uint64_t> too_deep{0};    // Inside of OpenTasks::kMaxDepth others.
  std::atomic<uint64_t> stray_ends{0};  // Ends without a begin on their thread.
  std::atomic<uint64_t> cut{0};         // Ended by the end of a task or frame around them: counted up to then.
  std::atomic<uint64_t> unended{0};     // Open when their thread or the collection ended.
  // Begins and ends that a signal handler left by siglongjmp, and the tasks that were open on their threads then.
  std::atomic<uint64_t> jumped{0};
};

// Thread-safe. Never destroyed: a thread may be about to call it as long as the process lives.
class Collector {
 public:
  // Requires that `frames` lives until Stop, if that is called, and otherwise until the process ends.
  Collector(FrameCounter& frames, ThreadNames thread_names);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Begins a task or a frame on the calling thread. Neither locks nor allocates, except the first on each thread, the
  // first of each name, and each with a name beyond ZoneTable::kMaxZones.
  void Begin(const Domain* domain, OpenKind kind, const Id& id, KeyKind key_kind, const void* key) noexcept;
  // Ends the innermost one of the thread with this domain, kind and id, and what was begun inside of it.
  void End(const Domain* domain, OpenKind kind, const Id& id) noexcept;

  // Overlapped tasks, regions, submitted frames: times alone.
  void BeginTimed(const Domain* domain, const Id& id, const StringHandle* name);
  void EndTimed(const Domain* domain, const Id& id);
  void Submit(const Domain* domain, Timestamp begin, Timestamp end);

  void NameThread(const char* name);
  // While it is paused, tasks and frames that begin are not counted. Those that are open are counted until they end.
  void SetPaused(bool paused) { paused_.store(paused, std::memory_order_relaxed); }
  // To be called before the FrameCounter is disabled for a last table: tasks that begin after that are late, not
  // paused.
  void EndForTable() { table_taken_.store(true, std::memory_order_relaxed); }

  // Ends collection: what begins from now on is ignored. Ends the tasks of the calling thread, with counts, and waits
  // up to 100 ms for those that are open on other threads. Zones that are open after that are given up: they have no
  // counts (FrameStats::cross_thread). From its return on, no thread touches the FrameCounter: it also waits for
  // threads that are inside of a begin or an end. Those that a handler has taken out of one by siglongjmp are given up
  // (wait_outside.h): what is open on them is `unended`. In a forked child it does not wait. Call it once.
  void Stop(uint64_t give_up_after_ns = 10'000'000'000);

  const Uncounted& uncounted() const { return uncounted_; }
  TimedTasks::Totals timed() const { return timed_.Take(); }

  // Called when a thread ends.
  static void EndThread(OpenTasks& tasks);

 private:
  void BeginTooLate(OpenTasks& tasks, const Domain* domain, OpenKind kind, const Id& id) noexcept;
  void BeginWithZone(OpenTasks& tasks, OpenTasks::Entry& entry, KeyKind key_kind, const void* key) noexcept;
  const char* Define(const Domain* domain, KeyKind key_kind, const void* key);
  OpenTasks* ThisThread() noexcept;
  OpenTasks* SetUpThread();
  std::atomic<uint64_t>& WhyDisabled();
  bool IsInHandler(OpenTasks& tasks, const void* frame) noexcept;
  void EndJump(OpenTasks& tasks) noexcept;
  bool IsTiming();
  void GiveUp(OpenTasks& tasks);

  FrameCounter& frames_;
  const std::shared_ptr<count::FrameCounterImpl> impl_;  // Of frames_. May outlive it.
  const ThreadNames thread_names_;
  ZoneTable zones_;
  TimedTasks timed_;
  Uncounted uncounted_;
  std::atomic<bool> paused_{false};
  std::atomic<bool> table_taken_{false};
  std::atomic<bool> stopping_{false};  // Nothing begins any more.
  std::atomic<bool> ended_{false};     // frames_ is not touched any more.
};

}  // namespace perfkit::itt
