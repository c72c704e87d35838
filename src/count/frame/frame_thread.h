// One thread of a FrameCounter: its events, its zones, and who may look at them when.
//
// A thread's tree is its own while it is inside a zone. Another thread (for a report, or to switch counting off) is let
// in only while the owner is provably outside. Both sides announce first and look second, in one total order:
//
//   owner, outermost zone                     visitor, under `mutex`
//   inside = 1 (exchange)                     attention = 1
//   attention != 0? step back, wait           inside != 0? it is busy: leave it
//     for `mutex`, try again                  else: all of it is ours until attention = 0
//
// At most one of the two sees the other's word unset. Inner zones touch neither word.
// The thread that marks frames is never visited: reports are its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "perfkit/counter.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/slot_writer.h"
#include "src/count/frame/thread_watch.h"
#include "src/count/frame/zone_tree.h"
#include "src/sys/kernel.h"

namespace perfkit::count {

class FrameThread {
 public:
  static constexpr unsigned kSerialShift = 40;  // 10^12 visits of zones a thread, 16 million threads

  // Of the calling thread.
  FrameThread(const ZoneShape& shape, std::string name, uint64_t serial)
      : tree(shape), name(std::move(name)), serial(serial), tid(sys::kernel().gettid()) {
    tree.SetEntryBase(serial << kSerialShift);
  }

  // The serial of the thread on which a zone was entered, from the name of the visit.
  static uint64_t SerialOf(uint64_t entry) { return entry >> kSerialShift; }

  // Fills `now`, with the tick counter whatever the path. Inline for its price after a system call: src/sys/read.h.
  [[gnu::always_inline]] void Read(Snapshot& now) const noexcept {
    now.ticks = 0;
    reader.Read(now);
    if (now.ticks == 0) now.ticks = ReadTicks();
  }

  // Opens the events of the calling thread, and starts the tree at now.
  void Open(std::optional<CounterSet> opened);
  // Closes them; the tree keeps what was counted.
  void Close();
  bool open() const { return open_; }

  // Owner side of the protocol above. StepInside returns with the thread inside.
  void StepInside() noexcept;
  void StepOutside() noexcept { inside_.exchange(0, std::memory_order_seq_cst); }

  // Visitor side: runs `visit` if the owner is outside. Call it with `mutex` held.
  template <class Visit>
  bool TryVisit(Visit&& visit) {
    attention_.store(1, std::memory_order_seq_cst);                     // pairs with StepInside's load
    const bool outside = inside_.load(std::memory_order_seq_cst) == 0;  // pairs with StepInside's exchange
    if (outside) visit();
    attention_.store(0, std::memory_order_seq_cst);
    return outside;
  }

  // Ends the frame that its last zones belong to, at the snapshot at which it was last outside.
  // On the owner inside, or on a visitor; with `mutex` held.
  void Roll(uint64_t ns_per_tick_q32);

  // Publishes what was counted until the last snapshot.
  void Publish() noexcept { slot.Publish(tree.scratch()); }

  // What makes zones and marks take their slow ways. One word, so that the fast ones look once.
  bool is_watched() const { return watch_.any(); }

  // As ThreadWatch's.
  void NoteCrossThread(uint64_t entry) { watch_.NoteCrossThread(entry); }
  void AbandonCrossThread() { watch_.AbandonCrossThread(tree); }
  std::shared_ptr<ZoneLog> StartLog(uint64_t epoch) { return watch_.StartLog(tree, epoch); }
  void StopLog() { watch_.StopLog(); }
  ZoneLog* log() const { return watch_.log(); }
  // Tells the log, if there is one, what has changed on the stack of zones until `ticks`; 0: now.
  void FollowLog(uint64_t ticks) noexcept {
    if (ZoneLog* const listening = log(); listening != nullptr) listening->Follow(tree, ticks);
  }

  // While one lives, the owner is at work on the tree: what a signal handler finds then is half changed. Plain stores:
  // the handler runs on the same thread, and the fences keep the compiler from moving them.
  class Work {
   public:
    explicit Work(FrameThread& thread) : thread_(thread) {
      thread_.at_work_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Work() {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      thread_.at_work_.store(false, std::memory_order_relaxed);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    FrameThread& thread_;
  };
  bool at_work() const { return at_work_.load(std::memory_order_relaxed); }

  CounterReader reader;
  ZoneTree tree;
  bool ready = false;       // zones may be entered without asking: the owner's word, never a visitor's
  bool is_worker = true;    // not the thread that marks the main frame
  bool own_frames = false;  // a frame of its own drives the tree
  uint32_t opens = 0;       // how often its events were opened: what was read before the last time is no base
  bool draining = false;    // it was inside a zone when counting was switched off; guarded by mutex
  bool dirty = false;       // something was counted since the last Roll
  uint64_t frame = 0;       // which frame that belongs to
  SlotWriter slot;
  const std::string name;
  const uint64_t serial;  // a later thread may get the same address
  const int tid;
  std::mutex mutex;

 private:
  std::optional<CounterSet> set_;
  bool open_ = false;
  std::atomic<bool> at_work_{false};
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> attention_{0};
  ThreadWatch watch_;
};

}  // namespace perfkit::count
