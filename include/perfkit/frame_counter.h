// Counts the frames of a program's main loop: by frame, zone and thread, and why a frame was late.
//
//   perfkit::FrameCounter frames({.events = {"task-clock", "page-faults", "instructions"}, .hitch_budget = 20ms});
//   frames.OnHitch([](const perfkit::Hitch& h) { LogHitch(h.frame, h.cause, h.worst_zone); });
//   while (running) {
//     { PERFKIT_ZONE(frames, "physics");  world.Step(); }
//     Draw(frames.last());
//     frames.Mark();
//   }
//
// It never fails: an event that can't be counted has a reason instead of counts. With task-clock, page-faults,
// context-switches and cpu-migrations, zones and marks usually make no system call: task-clock needs one after each
// context switch, and every 20 ms. path() says how each event is read. Zones and marks do not call malloc after set-up,
// unless a zone ends on another thread than it began on; a thread's set-up is AttachThread, or its first zone. Without
// memory for it, the process ends (std::terminate). A thread's memory grows with its zones: a zone that is new to the
// thread, entered from a new address of its name, or deeper than any before, may map 8 KiB or more by a system call,
// and so may the end of a frame with values of a new magnitude. perf counts no page faults for that; getrusage does
// (ReadPath::kUsage), in the zone or frame around it. 36 zones and four events take some 50 KiB a thread. Without
// memory, a zone is dropped (FrameStats::dropped), and a value is in no percentile (FrameStats::unplaced).
// Compiled with PERFKIT_ENABLE=0 (enable.h), zones expand to nothing, and the rest does nothing.
#pragma once

#include <atomic>
#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // Durations and clocks. The rest of <chrono>, the calendar, takes 0.1 s for each file.
#else
#include <chrono>
#endif
#if defined(__GLIBCXX__) && __has_include(<bits/std_function.h>)
#include <bits/std_function.h>  // std::function. The rest of <functional> takes 0.07 s for each file.
#else
#include <functional>
#endif
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/enable.h"
#include "perfkit/event_specs.h"
#include "perfkit/frame.h"
#include "perfkit/thread_slots.h"

namespace PERFKIT_NAMESPACE {

class Metric;

namespace count {
class FrameCounterImpl;
class FrameThread;
}  // namespace count

struct FrameOptions {
  // At most kMaxEvents; further ones, and groups without room, are not counted, and the reports say so. A text with
  // braces is a list for ParseEventList: the events of a group are on the PMU together.
  EventSpecs events{};
  // Frames that take longer are hitches; 0 disables hitches. To explain hitches, the kernel logs the context switches
  // and page faults of the marking thread. This takes two rings of 64 KiB of locked memory, and some 100 ns for each
  // switch and fault.
  std::chrono::nanoseconds hitch_budget{0};
  std::optional<ReadPath> only_path{};  // As CounterOptions::only_path.
  size_t history_frames = 512;          // Frames kept for history(); rounded up to a power of two.
  size_t max_zones = 256;               // Maximum number of different zone paths of a thread.
  size_t max_depth = 64;                // Maximum depth of nested zones.
  size_t max_threads = 256;             // Attached at the same time, without the marking one; more are not counted.
};

#if PERFKIT_ENABLE
// The thread that constructs it (the marking thread) marks frames, reads the results, enables, disables and destroys
// it; methods that other threads may call say so. Any thread may enter zones: it is attached at its first zone, and its
// counts are merged when it ends. Requires that no zone is open when the FrameCounter is destroyed. In a forked child
// it is disabled.
//
// Zones inside another zone are async-signal-safe, unless a Zone ends on another thread than it began on (that locks).
// On threads other than the marking one, an outermost zone may lock, and after SetEnabled it may open or close events.
// Marks are not async-signal-safe. Zones of a handler that interrupts the start or end of another zone, a mark, or a
// read of the results, are dropped (FrameStats::dropped). Such a handler must not end by siglongjmp: all later zones
// of the thread would be dropped, or wait for a lock that it holds.
class FrameCounter {
 public:
  using Options = FrameOptions;

  // Opens and tests the events on this thread, in about 1 ms; the first time in a process 10 ms more, except on arm64,
  // to measure the rate of the tick counter.
  explicit FrameCounter(const Options& options);
  ~FrameCounter();
  FrameCounter(const FrameCounter&) = delete;
  FrameCounter& operator=(const FrameCounter&) = delete;

  // Ends frame N and starts frame N + 1 with one read of the counters. The first Mark, or an earlier zone of this
  // thread, starts the first frame. Requires the constructing thread; other calls are ignored and counted
  // (FrameStats::foreign_marks). Does not allocate.
  void Mark() noexcept {
    if (enabled()) MarkMain();
  }
  // Defines the frames of another loop ("audio", "simulation"), to be marked with the returned id. The first thread
  // that marks such a frame owns these frames until that thread ends, or its AttachedThread is destroyed; then the next
  // thread that marks one owns them. Marks by others are ignored and counted (foreign_marks). If a thread owns the
  // frames of several loops, its zones belong to those that it owned first; zones of the marking thread always belong
  // to the main frames. At most 15 loops: marks of further ids are ignored. Two calls with the same name define two
  // loops.
  //
  // A session with SessionOptions::keep keeps frames that take longer than `budget`; 0 means no budget. OnHitch is
  // called for main frames only. Thread-safe. Allocates.
  FrameId DefineFrame(std::string_view name, std::chrono::nanoseconds budget = std::chrono::nanoseconds(0));
  // As Mark(), for the frames `id`, on the thread that owns them. Locks; a thread's first mark of `id` may allocate.
  void Mark(FrameId id) noexcept {
    if (enabled()) MarkOther(id);
  }

  // Asks a session with SessionOptions::keep to keep the current frame, for this reason: "level 3". Copies up to 256
  // bytes of the text; a frame may have several reasons. Any thread may call it. As a zone does, it attaches the
  // thread, and it is async-signal-safe under the same conditions. Costs no more than a zone, and less if no session
  // listens.
  void Keep(std::string_view reason) noexcept { Keep(FrameId(), reason); }
  void Keep(FrameId id, std::string_view reason) noexcept {
    if (enabled()) KeepFrame(id, reason);
  }

  // Attaches a text to the current frame, e.g. "level=3, players=64": slow frames show it (ProfileZone::state), whether
  // they are kept for it or not. As Keep otherwise. A text has up to 256 bytes; a
  // longer one is cut, and says so. A frame may have several texts: a session shows up to 1 KiB of them.
  void AttachState(std::string_view state) noexcept { AttachState(FrameId(), state); }
  void AttachState(FrameId id, std::string_view state) noexcept {
    if (enabled()) AttachToFrame(id, state);
  }

  // A zone from construction to destruction; PERFKIT_ZONE declares one. Must end before zones that were entered earlier
  // on its thread. A zone that ends on another thread has no counts; FrameStats::cross_thread counts these zones.
  class [[nodiscard]] Zone {
   public:
    Zone(FrameCounter& frames, ZoneId id) noexcept {
      if (frames.enabled()) frames.EnterZone(id, *this);
    }
    // The same if `frames` is not nullptr, and otherwise no zone.
    Zone(FrameCounter* frames, ZoneId id) noexcept {
      if (frames != nullptr && frames->enabled()) frames->EnterZone(id, *this);
    }
    ~Zone() {
      if (impl_ != nullptr) LeaveZone(*this);
    }
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;

    // Ends the zone now instead of in the destructor. Writes to `counts` what was counted since it was entered, or
    // since the last mark if that came later; FrameRecord::number is 0. `missing` has all bits if the zone has no
    // counts: counting is disabled, it was dropped, it ends on another thread or before a zone inside of it.
    void End(FrameRecord& counts) noexcept {
      counts = {};
      if (impl_ != nullptr) EndZone(*this, counts);
      impl_ = nullptr;
    }

   private:
    friend class FrameCounter;
    friend class count::FrameCounterImpl;
    count::FrameCounterImpl* impl_ = nullptr;
    count::FrameThread* thread_;
    uint64_t entry_;  // Id of this visit: the thread's serial and a count; 0 if the zone was dropped.
  };
  // Start and end a zone, for engines that report zones by callbacks. Leave ends the innermost zone of the thread; a
  // Leave without a zone is only counted (FrameStats::mismatched).
  void Enter(ZoneId id) noexcept {
    if (enabled_.load(std::memory_order_acquire) || draining()) EnterPlain(id);
  }
  void Leave() noexcept {
    if (enabled_.load(std::memory_order_acquire) || draining()) LeavePlain();
  }
  // Returns the id of a zone with a name that is made at run time; the same for the same name. Names are never
  // forgotten: those beyond 65,536 are the zone "(more names)". Valid as long as the FrameCounter. Thread-safe. Locks;
  // allocates for a new name.
  ZoneId DefineZone(std::string_view name);

  // Attaches the calling thread now instead of at its first zone, with a name for the report, until the result is
  // destroyed or the thread ends. Destroy the result on the same thread. Threads with the same name form one group;
  // ended threads beyond 256 names form the group "(more threads)".
  // The result may outlive the FrameCounter. Thread-safe. No effect on the marking thread, on an attached one, beyond
  // max_threads, and in a forked child.
  class [[nodiscard]] AttachedThread {
   public:
    AttachedThread(AttachedThread&& other) noexcept : impl_(std::move(other.impl_)) {}
    ~AttachedThread();

   private:
    friend class FrameCounter;
    explicit AttachedThread(std::shared_ptr<count::FrameCounterImpl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<count::FrameCounterImpl> impl_;
  };
  AttachedThread AttachThread(std::string_view name);

  // Sets the function that Mark calls for each frame over the budget, on the marking thread. It may enter zones, read
  // results and set another callback. It must not call Mark() or destroy the FrameCounter. Its time counts in the next
  // frame. An exception ends the program.
  void OnHitch(std::function<void(const Hitch&)> callback);

  // Disabling closes the events of all threads, except of other threads that are inside a zone: they close theirs when
  // they leave their outermost zone. A zone or a mark then costs one load (Enter and Leave: two). After enabling,
  // threads open their events at their next outermost zone. The next frame starts at the marking thread's first zone or
  // Mark: what came before it in the current frame is not counted.
  void SetEnabled(bool enabled);
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }

  // Return the last frame (before the first one, a record without counts), and the latest FrameOptions::history_frames,
  // as views that are valid until the next Mark.
  const FrameRecord& last() const;
  FrameHistory history() const;
  // Return copies of the same for the frames `id`. Thread-safe unless `id` is the main loop's.
  FrameRecord last(FrameId id) const;
  std::vector<FrameRecord> history(FrameId id) const;
  // Returns all zones of all threads: each group of threads with its root first, and each parent before its children.
  // Counts are not scaled, include perfkit's own cost, and exclude the current frame. Until the first frame has ended,
  // zones of other threads are included.
  std::vector<ZoneStats> zones() const;
  // Returns the latest 64 hitches, oldest first.
  std::vector<Hitch> hitches() const;
  // Writes to `out` the sums of the counters of all threads but the marking one, including ended threads. Includes what
  // a thread counted up to the end of its last outermost zone. Thread-safe; never waits for another thread.
  void WorkerTotals(SlotTotals& out) const noexcept;
  FrameStats Stats() const;

  // Returns the tables of zones, the hitches and perfkit's own cost, as text. Subtracts perfkit's calibrated cost,
  // which no other function does. ">=" marks sums that lack calls that ended on another thread (ZoneStats::at_least).
  std::string FormatZones() const;
  // As above, with a table for each of `metrics` (metric.h): its values for the total and the self of each zone.
  // "(part)" marks values of sums that lack such calls.
  std::string FormatZones(std::span<const Metric> metrics) const;

  // The events, in the order of FrameOptions::events. Texts are valid as long as this object, and "" if i >= size().
  size_t size() const;
  std::string_view name(size_t i) const;
  std::string_view reason(size_t i) const;  // Why event i can't be counted, or "".
  ReadPath path(size_t i) const;            // How event i is read; meaningless if it can't be counted.

 private:
  friend class count::FrameCounterImpl;
  void MarkMain() noexcept;
  void MarkOther(FrameId id) noexcept;
  void KeepFrame(FrameId id, std::string_view reason) noexcept;
  void AttachToFrame(FrameId id, std::string_view state) noexcept;
  void EnterZone(ZoneId id, Zone& zone) noexcept;
  static void LeaveZone(const Zone& zone) noexcept;
  static void EndZone(const Zone& zone, FrameRecord& counts) noexcept;
  void EnterPlain(ZoneId id) noexcept;
  void LeavePlain() noexcept;

  // Requires that enabled_ was loaded with acquire before: pairs with SwitchOff's store to it, before which this is set.
  bool draining() const noexcept { return draining_.load(std::memory_order_relaxed) != 0; }

  std::atomic<bool> enabled_{true};
  // Number of threads that have been in a zone since before counting was disabled; one more while it is being disabled.
  std::atomic<uint32_t> draining_{0};
  std::shared_ptr<count::FrameCounterImpl> impl_;
};
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/frame_counter.h"
#endif

#define PERFKIT_CONCAT_INNER(a, b) a##b
#define PERFKIT_CONCAT(a, b) PERFKIT_CONCAT_INNER(a, b)
#if PERFKIT_ENABLE
// Makes the rest of the enclosing block the zone `name`, a string literal.
#define PERFKIT_ZONE(frames, name) \
  const ::perfkit::FrameCounter::Zone PERFKIT_CONCAT(perfkit_zone_, __LINE__)((frames), ::perfkit::ZoneId{"" name})
#else
// Names `frames` without evaluating it, so that it does not become an unused parameter.
#define PERFKIT_ZONE(frames, name) static_assert(sizeof(frames) != 0, "" name)
#endif
