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

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/frame_counter.h"
#include "src/count/frame/detail_log.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/frame_chain.h"
#include "src/count/frame/frame_recording.h"
#include "src/count/frame/frame_thread.h"
#include "src/count/frame/history.h"
#include "src/count/frame/hitch_watch.h"
#include "src/count/frame/own_cost.h"
#include "src/count/frame/slot_sum.h"
#include "src/count/frame/thread_binding.h"
#include "src/count/frame/zone_merge.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {

class FrameCounterImpl : public Bindable {
 public:
  static constexpr size_t kMaxChains = 16;  // the main one is not stored
  using Zone = FrameCounter::Zone;

  FrameCounterImpl(const FrameOptions& options, std::atomic<bool>& enabled, std::atomic<uint32_t>& draining);
  // Second half of construction: attaches the constructing thread.
  void Start(const std::shared_ptr<FrameCounterImpl>& self);
  // The FrameCounter dies: everything is given back but the shell that threads may still remember.
  void Close();

  // Hot paths; counting is switched on.
  void Mark() noexcept;
  void Mark(FrameId id) noexcept;
  void Enter(ZoneId id, Zone* zone) noexcept;
  void EnterPlain(ZoneId id) noexcept;  // also while threads are draining
  void Leave(const Zone& zone) noexcept;
  void LeaveInnermost() noexcept;  // also while threads are draining

  ZoneId DefineZone(std::string_view name);
  FrameId DefineFrame(std::string_view name);
  bool AttachNamed(std::string_view name);
  void DetachThisThread() { Unbind(this, true); }
  void SwitchOff();

  // Listens to the zones and frames of all threads from now on; a recording before it hears no more. Any thread.
  // Errors: FailedPrecondition in a forked child, once the FrameCounter is destroyed, or without a tick counter.
  absl::StatusOr<std::unique_ptr<FrameRecording>> Record();
  void EndRecording(const FrameRecording& recording);
  static std::shared_ptr<FrameCounterImpl> Of(const FrameCounter& frames) { return frames.impl_; }
  const char* chain_name(size_t chain) const { return chain == 0 ? "" : chains_[chain]->name().c_str(); }

  // A group of threads with one name, merged. The marking thread's comes first.
  struct Group {
    std::string name;
    uint32_t live = 0;
    ZoneMerge zones;
  };
  std::vector<Group> Groups();
  FrameStats Stats();

  const EventPlan& plan() const { return plan_; }
  const OwnCost& own_cost() const { return own_cost_; }
  const HitchWatch& watch() const { return watch_; }
  // Up to the last mark: works off what Mark has left for later.
  const History& history() {
    Settle();
    return history_;
  }
  const FrameChain* chain(FrameId id) const;
  void Totals(SlotTotals& out) const noexcept { SumSlots(*slots_, plan_, out); }
  bool MayCount() const { return !in_forked_child_; }
  uint64_t ns_per_tick_q32() const { return ns_per_tick_q32_; }
  uint64_t budget_ns() const { return budget_ns_; }

  void SetOnHitch(std::function<void(const Hitch&)> callback) {
    on_hitch_ = std::make_shared<const std::function<void(const Hitch&)>>(std::move(callback));
  }

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
  void LeaveOutOfOrder(FrameThread& thread, uint64_t entry) noexcept;
  void LeaveElsewhere(uint64_t entry) noexcept;
  void Settle() noexcept;
  void ExplainHitch() noexcept;
  void CloseMain();
  void EndThread(FrameThread& thread);
  void Retire(FrameThread& thread);
  Group& GroupNamed(std::vector<Group>& groups, const std::string& name) const;
  void OnForkedChild();

  std::atomic<bool>& enabled_;
  std::atomic<uint32_t>& draining_;  // changes with a worker's mutex held
  EventPlan plan_;
  FrameOptions options_;
  ZoneShape shape_;
  uint64_t budget_ns_;
  uint64_t budget_ticks_ = 0;  // budget_ns_, rounded down
  uint64_t ns_per_tick_q32_ = 0;
  OwnCost own_cost_;
  std::shared_ptr<SlotTable> slots_;
  std::weak_ptr<FrameCounterImpl> self_;

  // The marking thread's.
  uint64_t main_serial_ = 0;
  std::unique_ptr<FrameThread> main_;
  History history_;
  HitchWatch watch_;
  DetailLog log_;
  std::shared_ptr<const std::function<void(const Hitch&)>> on_hitch_;
  uint64_t next_frame_ = 0;

  std::atomic<uint64_t> frame_{0};  // the main frame under way, for workers' sums: relaxed, a frame late does no harm
  std::atomic<uint64_t> foreign_marks_{0}, cross_thread_{0},
      interrupted_{0};  // numbers for people: ordered with nothing
  std::atomic<uint32_t> refused_{0};

  std::mutex mutex_;
  std::vector<std::unique_ptr<FrameThread>> workers_;
  std::vector<Group> retired_;
  uint64_t retired_dropped_ = 0, retired_mismatched_ = 0;
  uint64_t next_serial_ = 1;
  FrameRecording* recording_ = nullptr;  // until its EndRecording
  std::deque<std::string> names_;
  std::array<std::unique_ptr<FrameChain>, kMaxChains> chains_;
  std::atomic<uint32_t> chain_count_{1};
  bool in_forked_child_ = false;  // of a fork

  sys::ForkListener fork_listener_;  // last: unregistered before anything else dies
};

}  // namespace perfkit::count
