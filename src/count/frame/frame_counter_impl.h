// The inside of a FrameCounter: its threads, its frames, and who may do what on which thread.
//
// Three kinds of access, and the data of each:
//   the marking thread      its tree, the main history, hitches, on and off: no lock, no other thread reads it
//   a worker inside a zone  its own tree's frame under way: no lock (frame_thread.h says why)
//   anything cold           the list of threads: `mutex_`; a worker's closed frames: the worker's own mutex
//
// In the child of a fork other threads' locks may be held for ever, so nothing locks there: each way to a lock asks
// `in_forked_child_` first. What is destroyed there nonetheless (lists of threads, of names) changes under a
// ForkBlocker only.
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
  // The FrameCounter dies: everything is given back but the shell that threads may still remember.
  void Close();

  // Hot paths; counting is switched on.
  void Mark() noexcept;
  void Mark(FrameId id) noexcept;
  void Enter(ZoneId id, Zone* zone) noexcept;
  void EnterPlain(ZoneId id) noexcept;  // also while threads are draining
  void Leave(const Zone& zone) noexcept;
  void LeaveInnermost() noexcept;  // also while threads are draining
  void Keep(FrameId id, std::string_view reason) noexcept;

  ZoneId DefineZone(std::string_view name);
  FrameId DefineFrame(std::string_view name, uint64_t budget_ns);
  bool AttachNamed(std::string_view name);
  void DetachThisThread() { Unbind(this, true); }
  void SwitchOff();

  // Listens to the zones and frames of all threads from now on; a recording before it hears no more. Any thread.
  // Errors: FailedPrecondition in a forked child, once the FrameCounter is destroyed, or without a tick counter.
  absl::StatusOr<std::unique_ptr<FrameRecording>> Record();
  void EndRecording(const FrameRecording& recording);
  static std::shared_ptr<FrameCounterImpl> Of(const FrameCounter& frames) { return frames.impl_; }
  const char* chain_name(size_t chain) const { return names_.chain_name(chain); }

  // The threads by their names. The marking thread's group comes first.
  std::vector<Group> Groups();
  FrameStats Stats();

  const EventPlan& plan() const { return plan_; }
  const OwnCost& own_cost() const { return own_cost_; }
  const HitchWatch& watch() const { return hitches_.watch(); }
  // Up to the last mark: works off what Mark has left for later.
  const History& history() {
    Settle();
    return frames_.history();
  }
  const FrameChain* chain(FrameId id) const;
  void Totals(SlotTotals& out) const noexcept { SumSlots(*slots_, plan_, out); }
  bool MayCount() const { return !in_forked_child_; }
  uint64_t ns_per_tick_q32() const { return ns_per_tick_q32_; }
  uint64_t budget_ns() const { return hitches_.budget_ns(); }
  // Of a chain, on any thread.
  uint64_t budget_ns(FrameId id) const {
    const FrameChain* const chain = names_.chain(id);
    return chain != nullptr ? chain->budget_ns() : hitches_.budget_ns();
  }

  void SetOnHitch(std::function<void(const Hitch&)> callback) { hitches_.SetCallback(std::move(callback)); }

 private:
  FrameThread* This() noexcept {
    if (void* const bound = FindBinding(this); bound != nullptr) return static_cast<FrameThread*>(bound);
    return WasRefused(this) && slots_->full() ? nullptr : Attach({});
  }
  void Refuse(const std::shared_ptr<FrameCounterImpl>& self);
  FrameThread* Attach(std::string_view name) noexcept;
  bool Prepare(FrameThread& thread) noexcept;
  bool DropIfInterrupting(const FrameThread& thread) noexcept;
  uint64_t EndMainFrame() noexcept;
  uint64_t EndReadyFrame(FrameThread& thread) noexcept;
  [[gnu::noinline]] uint64_t EndWatchedFrame(FrameThread& thread) noexcept;
  void MarkChain(FrameChain& chain, FrameId id, FrameThread& thread) noexcept;
  void LogHitch(const Hitch& hitch) noexcept;
  void Catch(FrameThread& thread) noexcept;
  [[gnu::always_inline]] void EnterReady(FrameThread& thread, ZoneId id, Zone* zone) noexcept;
  [[gnu::noinline]] void EnterWatched(FrameThread& thread, ZoneId id, Zone* zone) noexcept;
  [[gnu::always_inline]] bool LeaveReady(FrameThread& thread) noexcept;
  [[gnu::noinline]] void LeaveWatched(FrameThread& thread) noexcept;
  void FollowNow();
  void Drained(FrameThread& thread);
  void PrepareMain() noexcept;
  void PrepareWorker(FrameThread& thread) noexcept;
  void LeaveTop(FrameThread& thread) noexcept;
  void LeaveOutermost(FrameThread& thread) noexcept;
  void StepOutside(FrameThread& thread) noexcept;
  void LeaveOutOfOrder(FrameThread& thread, uint64_t entry) noexcept;
  void LeaveElsewhere(uint64_t entry) noexcept;
  void Settle() noexcept;
  void ExplainHitch() noexcept;
  void CloseMain();
  void EndThread(FrameThread& thread);
  void Retire(FrameThread& thread);
  void OnForkedChild();

  std::atomic<bool>& enabled_;
  std::atomic<uint32_t>& draining_;  // FrameCounter's
  EventPlan plan_;
  ZoneShape shape_;
  uint64_t ns_per_tick_q32_;
  OwnCost own_cost_;
  std::shared_ptr<SlotTable> slots_;

  // The marking thread's.
  uint64_t main_serial_;  // ThreadSerial of the marking thread; FrameThread::serial is another numbering.
  std::unique_ptr<FrameThread> main_;
  MainFrames frames_;
  HitchReporter hitches_;

  MistakeCounts mistakes_;

  std::mutex mutex_;  // guards what follows, as far as it is written
  std::vector<std::unique_ptr<FrameThread>> workers_;
  EndedThreads ended_;
  uint64_t next_serial_ = 1;
  FrameRecording* recording_ = nullptr;  // until its EndRecording
  DefinedNames names_;
  bool in_forked_child_ = false;  // Set in OnForkedChild; nothing locks afterwards.

  sys::ForkListener fork_listener_;  // last: unregistered before anything else dies
};

}  // namespace perfkit::count
