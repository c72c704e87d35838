// Counting the frames of a program that runs in a loop: per frame, per zone, on every thread, and why a frame was late.
//
//   perfkit::FrameCounter frames({.events = {"task-clock", "page-faults", "instructions"}, .hitch_budget = 20ms});
//   frames.OnHitch([](const perfkit::Hitch& h) { LogHitch(h.frame, h.cause, h.worst_zone); });
//   while (running) {
//     { PERFKIT_ZONE(frames, "physics");  world.Step(); }
//     Draw(frames.last());
//     frames.Mark();
//   }
//
// It never fails: what cannot be counted has no number and a reason. With the usual software events neither a zone nor
// a mark makes a system call. After set-up nothing allocates; a thread's first zone is its set-up.
// Compiled with PERFKIT_ENABLE=0 the macros expand to nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event_type.h"
#include "perfkit/frame.h"
#include "perfkit/thread_slots.h"

#ifndef PERFKIT_ENABLE
#define PERFKIT_ENABLE 1
#endif

namespace perfkit {

namespace count {
class FrameCounterImpl;
class FrameThread;
}  // namespace count

struct FrameOptions {
  std::vector<EventSpec> events{};  // kMaxEvents at most; further ones are ignored
  // Frames that take longer are hitches. 0: no frame is, and the kernel's log is not kept (it costs two rings of 64 KiB
  // of locked memory, and some 100 ns at each context switch and page fault of the marking thread).
  std::chrono::nanoseconds hitch_budget{0};
  std::optional<ReadPath> only_path{};  // see CounterOptions
  size_t history_frames = 512;          // kept for history(); rounded up to a power of two
  size_t max_zones = 256;               // different paths of zones, a thread
  size_t max_depth = 64;                // zones open at once, a thread
  size_t max_threads = 256;             // at once, besides the marking one; more are not counted
};

// Belongs to the thread that constructs it: that one marks frames, asks for numbers and switches it on and off. Zones
// may be entered on any thread; each is attached at its first zone and folded in when it ends. No zone may be open
// anywhere when the FrameCounter dies. In the child of a fork it is switched off.
// Signal handlers may enter and leave zones on threads that are attached, but not mark frames. Zones of a handler that
// interrupts the entry or the end of another zone, or a mark, are dropped (FrameStats::dropped).
class FrameCounter {
 public:
  using Options = FrameOptions;

  // Opens the events on this thread and proves them: about 1 ms, and 10 ms once a process on machines whose kernel does
  // not tell how fast the tick counter runs.
  explicit FrameCounter(const Options& options);
  ~FrameCounter();
  FrameCounter(const FrameCounter&) = delete;
  FrameCounter& operator=(const FrameCounter&) = delete;

  // Ends frame N and starts frame N + 1, at one reading of the counters. The first frame starts with the first zone or
  // Mark. On the constructing thread; elsewhere it is ignored and counted (FrameStats::foreign_marks).
  void Mark() noexcept {
    if (enabled()) MarkMain();
  }
  // Frames beside the main ones ("audio", "simulation"), each marked by the thread that marks it first, until that
  // thread ends. At most 15; the excess is ignored. A worker's zones are then summed by its own frames.
  FrameId DefineFrame(std::string_view name);
  void Mark(FrameId id) noexcept {
    if (enabled()) MarkOther(id);
  }

  // A zone from construction to destruction; PERFKIT_ZONE is the short way. Ends before anything that was entered
  // earlier on its thread; if it ends on another thread it has no number, and is counted as `cross_thread`.
  class [[nodiscard]] Zone {
   public:
    Zone(FrameCounter& frames, ZoneId id) noexcept {
      if (frames.enabled()) frames.EnterZone(id, *this);
    }
    ~Zone() {
      if (impl_ != nullptr) LeaveZone(*this);
    }
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;

   private:
    friend class FrameCounter;
    friend class count::FrameCounterImpl;
    count::FrameCounterImpl* impl_ = nullptr;
    count::FrameThread* thread_;
    uint64_t entry_;
  };
  // For engines that report their own zones by callbacks. Leave ends the innermost zone; one too many is counted
  // (FrameStats::mismatched), and nothing else happens.
  void Enter(ZoneId id) noexcept {
    if (enabled() || draining()) EnterPlain(id);
  }
  void Leave() noexcept {
    if (enabled() || draining()) LeavePlain();
  }
  // A zone with a name that is made at run time. Lives as long as the FrameCounter. Any thread; allocates.
  ZoneId DefineZone(std::string_view name);

  // Attaches the calling thread now rather than at its first zone, under a name for the report (threads of one name are
  // one group), until the result dies or the thread ends.
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

  // Called by Mark for every frame over the budget; its own time belongs to the next frame.
  void OnHitch(std::function<void(const Hitch&)> callback);

  // Off means detached: no event stays open (on threads that are inside a zone: until they leave it), a zone or a mark
  // costs one load (Enter and Leave: two). On again, threads are attached as they come; the frame in between is not
  // counted.
  void SetEnabled(bool enabled);
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }

  // The frames so far, on the constructing thread. References are good until the next Mark.
  const FrameRecord& last() const;
  FrameHistory history() const;
  FrameRecord last(FrameId id) const;  // of another frame, copied; any thread
  std::vector<FrameRecord> history(FrameId id) const;
  // All zones of all threads, each group of threads with its root first and every parent before its children.
  // Raw numbers. Frames that are not over yet are not in them.
  std::vector<ZoneStats> zones() const;
  std::vector<Hitch> hitches() const;  // the last 64
  // Sums over the other threads' counters, up to the end of their last outermost zones; ended threads included.
  void WorkerTotals(SlotTotals& out) const noexcept;
  FrameStats Stats() const;

  // The zone tables, the hitches and our own cost, as text. Our calibrated cost is subtracted here, and only here.
  std::string FormatZones() const;

  size_t size() const;
  std::string_view name(size_t i) const;
  std::string_view reason(size_t i) const;  // why event i has no number; "" when it has
  ReadPath path(size_t i) const;            // how it is read; meaningless when it is not

 private:
  friend class count::FrameCounterImpl;
  void MarkMain() noexcept;
  void MarkOther(FrameId id) noexcept;
  void EnterZone(ZoneId id, Zone& zone) noexcept;
  static void LeaveZone(const Zone& zone) noexcept;
  void EnterPlain(ZoneId id) noexcept;
  void LeavePlain() noexcept;

  bool draining() const noexcept { return draining_.load(std::memory_order_relaxed) != 0; }

  std::atomic<bool> enabled_{true};
  std::atomic<uint32_t> draining_{0};  // threads that were inside a zone when counting was switched off, and still are
  std::shared_ptr<count::FrameCounterImpl> impl_;
};

}  // namespace perfkit

#define PERFKIT_CONCAT_INNER(a, b) a##b
#define PERFKIT_CONCAT(a, b) PERFKIT_CONCAT_INNER(a, b)
#if PERFKIT_ENABLE
// The rest of the enclosing block is the zone `name`, a string literal.
#define PERFKIT_ZONE(frames, name) \
  const ::perfkit::FrameCounter::Zone PERFKIT_CONCAT(perfkit_zone_, __LINE__)((frames), ::perfkit::ZoneId{"" name})
#else
#define PERFKIT_ZONE(frames, name) static_assert(true, "" name)
#endif
