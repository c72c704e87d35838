// The implementation of FrameCounter: its threads and its frames, and what may be done on which thread.
//
// Who may access which data:
//   the marking thread      its tree, the main history, hitches, enabling: no lock, no other thread uses them
//   a worker inside a zone  the frame under way in its ZoneTree: no lock (frame_thread.h says why)
//   a sequence's owner      the frames of its FrameSequence (a frame sequence other than the main one): with the
//                           owner's FrameThread::mutex
//   any thread              the list of threads: with `mutex_`; a worker's closed frames: with the worker's own mutex
//
// In a forked child other threads' locks may be held forever, so nothing locks there: each function tests
// `in_forked_child_` before it locks. The destructor also runs there, so the lists that it frees (threads, names)
// change under a ForkBlocker only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/frame_counter.h"
#include "src/count/frame/defined_names.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/frame_recording.h"
#include "src/count/frame/frame_thread.h"
#include "src/count/frame/hitch_reporter.h"
#include "src/count/frame/main_frames.h"
#include "src/count/frame/mistake_counts.h"
#include "src/count/frame/own_cost.h"
#include "src/count/frame/slot_sum.h"
#include "src/count/frame/thread_binding.h"
#include "src/count/frame/thread_groups.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {

class FrameCounterImpl : public Bindable, public std::enable_shared_from_this<FrameCounterImpl> {
 public:
  using Group = ThreadGroup;
  using Zone = FrameCounter::Zone;

  FrameCounterImpl(const FrameOptions& options, std::atomic<bool>& enabled, std::atomic<uint32_t>& draining);
  // Second half of construction: attaches the constructing thread.
  void Start(const FrameOptions& options);
  // Called by ~FrameCounter: releases everything but this object itself, to which threads' bindings may still refer.
  void Close();

  // Hot paths. Require that counting is enabled, unless a comment says otherwise.
  void Mark() noexcept;
  void Mark(FrameId id) noexcept;
  void Enter(ZoneId id, Zone* zone) noexcept;
  void EnterPlain(ZoneId id) noexcept;                         // also while threads are draining
  void Leave(const Zone& zone) noexcept;                       // also once counting is disabled, inside the zone
  void Leave(const Zone& zone, FrameRecord& counts) noexcept;  // likewise
  void LeaveInnermost() noexcept;                              // also while threads are draining
  void AddText(ZoneRecordKind kind, FrameId id, std::string_view text) noexcept;

  ZoneId DefineZone(std::string_view name);
  FrameId DefineFrame(std::string_view name, uint64_t budget_ns);
  // Returns the first frame with this name; defines it if there is none. Locks only in that case.
  FrameId FrameNamed(std::string_view name);
  // Returns false if the thread is attached already or was refused, and in a forked child.
  bool AttachNamed(std::string_view name);
  void DetachThisThread() { Unbind(this, true); }
  // As above; ignored on the thread that marks the main frames.
  void DetachWorker() {
    if (FindBinding(this) != main_.get()) DetachThisThread();
  }
  void SwitchOff();

  // Listens to the zones and frames of all threads from now on, and ends an earlier recording. Thread-safe.
  // Errors: FailedPrecondition in a forked child, once the FrameCounter is destroyed, or without a tick counter.
  absl::StatusOr<std::unique_ptr<FrameRecording>> Record();
  void EndRecording(const FrameRecording& recording);
  static std::shared_ptr<FrameCounterImpl> Of(const FrameCounter& frames) { return frames.impl_; }
  const char* sequence_name(size_t sequence) const { return names_.sequence_name(sequence); }

  // Returns the zones of all threads, grouped by the threads' names. The marking thread's group comes first.
  std::vector<Group> Groups();
  FrameStats Stats();

  const EventPlan& plan() const { return plan_; }
  const OwnCost& own_cost() const { return own_cost_; }
  const HitchWatch& watch() const { return hitches_.watch(); }
  // Returns the main frames up to the last mark. First adds those that Mark has left for later (Settle).
  const History& history() {
    Settle();
    return frames_.history();
  }
  const FrameSequence* sequence(FrameId id) const;
  void Totals(SlotTotals& out) const noexcept { SumSlots(*slots_, plan_, out); }
  bool MayCount() const { return !in_forked_child_; }
  // Number of threads that have been in a zone since before counting was disabled. Thread-safe.
  uint32_t draining() const { return draining_.load(std::memory_order_relaxed); }
  // Returns false for a zone that was begun while counting was disabled, or on a thread that was refused.
  static bool IsEntered(const Zone& zone) { return zone.impl_ != nullptr; }
  uint64_t ns_per_tick_q32() const { return ns_per_tick_q32_; }
  uint64_t budget_ns() const { return hitches_.budget_ns(); }
  // Returns the budget of a sequence's frames. Thread-safe.
  uint64_t budget_ns(FrameId id) const {
    const FrameSequence* const sequence = names_.sequence(id);
    return sequence != nullptr ? sequence->budget_ns() : hitches_.budget_ns();
  }

  void SetOnHitch(std::function<void(const Hitch&)> callback) { hitches_.SetCallback(std::move(callback)); }

 private:
  // Unless a comment says otherwise, those that take a FrameThread are called on that thread, and those without one on
  // the marking thread. A thread is `ready` if its events are open and it may use its tree. It is watched if a
  // recording listens, or if one of its zones was left on another thread. Functions named ...Ready do the work of a
  // ready thread; those named ...Watched also call CatchUp, and write to the thread's log. Those named ...Any do the
  // work of a thread in any state.

  // Returns the calling thread, attached if it was not; nullptr if it was refused. On any thread.
  FrameThread* This() noexcept {
    if (void* const bound = FindBinding(this); bound != nullptr) return static_cast<FrameThread*>(bound);
    return WasRefused(this) && slots_->full() ? nullptr : Attach({});
  }
  // Both on the thread that is attached.
  void Refuse(const std::shared_ptr<FrameCounterImpl>& self);
  FrameThread* Attach(std::string_view name) noexcept;
  bool Prepare(FrameThread& thread) noexcept;
  bool DropIfInterrupting(const FrameThread& thread) noexcept;
  [[gnu::always_inline]] uint64_t EndMainFrame() noexcept;
  [[gnu::always_inline]] uint64_t EndReadyFrame(FrameThread& thread) noexcept;
  [[gnu::noinline]] uint64_t EndWatchedFrame(FrameThread& thread) noexcept;
  void MarkSequence(FrameSequence& sequence, FrameId id, FrameThread& thread) noexcept;
  void LogHitch(const Hitch& hitch) noexcept;
  void CatchUp(FrameThread& thread) noexcept;
  [[gnu::noinline]] void EnterAny(ZoneId id, Zone* zone) noexcept;
  void EnterReady(FrameThread& thread, ZoneId id, Zone* zone) noexcept;
  [[gnu::noinline]] void EnterWatched(FrameThread& thread, ZoneId id, Zone* zone) noexcept;
  void Fill(Zone& zone, FrameThread& thread) noexcept;
  [[gnu::noinline]] void LeaveAny(const Zone& zone) noexcept;
  bool LeaveReady(FrameThread& thread) noexcept;
  [[gnu::noinline]] void LeaveWatched(FrameThread& thread) noexcept;
  void FollowNow();                   // on any thread, with mutex_ held
  void Drained(FrameThread& thread);  // on any thread, with the worker's FrameThread::mutex held
  void PrepareMain() noexcept;
  void PrepareWorker(FrameThread& thread) noexcept;
  void LeaveTop(FrameThread& thread) noexcept;
  [[gnu::noinline]] void LeaveOutermost(FrameThread& thread) noexcept;
  void StepOutside(FrameThread& thread) noexcept;
  void LeaveOutOfOrder(FrameThread& thread, uint64_t entry) noexcept;
  void LeaveElsewhere(uint64_t entry) noexcept;    // on the thread where the zone ends, not the one that entered it
  void Settle() noexcept;                          // requires that no FrameThread::Work exists
  [[gnu::noinline]] void SettleAtWork() noexcept;  // requires that one exists
  void ExplainHitch() noexcept;
  void CloseMain();
  void EndLogs();                       // with mutex_ held, in Close
  void EndThread(FrameThread& thread);  // on that thread, as it ends or is detached
  void Retire(FrameThread& thread);     // likewise, with mutex_ held
  void OnForkedChild();                 // in the child

  std::atomic<bool>& enabled_;
  std::atomic<uint32_t>& draining_;  // FrameCounter's
  EventPlan plan_;
  ZoneShape shape_;
  uint64_t ns_per_tick_q32_;
  OwnCost own_cost_;
  std::shared_ptr<SlotTable> slots_;

  // The marking thread's.
  // ThreadSerial of the marking thread, 0 once that has ended; FrameThread::serial is another numbering.
  std::atomic<uint64_t> main_serial_;
  std::unique_ptr<FrameThread> main_;
  MainFrames frames_;
  HitchReporter hitches_;

  MistakeCounts mistakes_;

  std::mutex mutex_;  // guards workers_, ended_, next_serial_, recording_, and definitions in names_ (read without it)
  std::vector<std::unique_ptr<FrameThread>> workers_;
  EndedThreads ended_;
  uint64_t next_serial_ = 1;
  FrameRecording* recording_ = nullptr;  // until its EndRecording
  DefinedNames names_;
  bool in_forked_child_ = false;  // Set in OnForkedChild; nothing locks afterwards.

  sys::ForkListener fork_listener_;  // Declared last: unregistered before anything else is destroyed.
};

}  // namespace perfkit::count
