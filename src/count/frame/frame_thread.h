// One thread of a FrameCounter: its events, its zones, and when other threads may access them.
//
// A thread has exclusive access to its tree while it is inside a zone. Another thread (for a report, or to disable
// counting) may visit the tree only while the owner is outside of all zones. Each side first stores its own word and
// then loads the other's, in one total order (seq_cst):
//
//   owner, outermost zone                     visitor, under `mutex`
//   inside = 1 (exchange)                     attention = 1
//   attention != 0? step back, wait           inside != 0? busy: give up
//     for `mutex`, try again                  else: exclusive access until attention = 0
//
// So at most one of the two finds the other's word 0. Inner zones access neither word. The thread that marks frames is
// never visited: reports that read its tree run on that thread.
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
  static constexpr unsigned kSerialShift = 40;                                      // 10^12 visits of zones per thread
  static constexpr uint64_t kMaxSerial = (uint64_t{1} << (64 - kSerialShift)) - 1;  // 16 million threads

  // For the calling thread.
  FrameThread(const ZoneShape& shape, std::string name, uint64_t serial)
      : tree(shape), name(std::move(name)), serial(serial), tid(sys::kernel().gettid()) {
    tree.SetEntryBase(serial << kSerialShift);
  }

  // Returns the serial of the thread on which a zone was entered. `entry`: the id of the visit (ZoneTree::top_entry).
  static uint64_t SerialOf(uint64_t entry) { return entry >> kSerialShift; }

  // Fills `now`, including the ticks, which some read paths leave 0. Always inline, because a call is expensive after a
  // system call (src/sys/read.h).
  [[gnu::always_inline]] void Read(Snapshot& now) const noexcept {
    reader.Read(now);
    if (now.ticks == 0) now.ticks = ReadTicks();
  }

  // Takes the events, which the calling thread has opened, and begins a frame of the tree.
  void Open(std::optional<CounterSet> opened);
  // Closes the events; the tree keeps what was counted.
  void Close();
  // Closes the events of a thread outside of all zones. A frame of a sequence that its marks have not ended is dropped:
  // its next frame begins with other events. Call it with `mutex` held, on the owner or in TryVisit.
  void CloseOutside(uint64_t ns_per_tick_q32);
  bool open() const { return open_; }

  // Owner side of the protocol above. StepInside waits while a visitor is there.
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

  // Ends the tree's frame at the snapshot in tree.scratch(), which is that of the last zone's end; does nothing if the
  // frame has no zones. Call it on the owner when inside, or on a visitor; with `mutex` held.
  void Roll(uint64_t ns_per_tick_q32);

  // Publishes what was counted until the last snapshot.
  void Publish() noexcept { slot.Publish(tree.scratch()); }

  // Returns true if zones and marks have to take the slow path. Loads one word.
  bool is_watched() const { return watch_.any(); }

  // As in ThreadWatch.
  void NoteCrossThread(uint64_t entry) { watch_.NoteCrossThread(entry); }
  void AbandonCrossThread() { watch_.AbandonCrossThread(tree); }
  std::shared_ptr<ZoneLog> StartLog(uint64_t epoch) { return watch_.StartLog(tree, epoch); }
  void StopLog() { watch_.StopLog(); }
  ZoneLog* log() const { return watch_.log(); }
  // Logs the changes of the stack of zones, if there is a log. `ticks`: when zones were left; 0 means now.
  void FollowLog(uint64_t ticks) noexcept {
    if (ZoneLog* const listening = log(); listening != nullptr) listening->Follow(tree, ticks);
  }
  // Logs that the thread is no longer attached, if there is a log. `ticks`: as in FollowLog.
  void EndLog(uint64_t ticks) noexcept {
    if (ZoneLog* const listening = log(); listening != nullptr) listening->End(ticks != 0 ? ticks : ReadTicks());
  }

  // While an object of this class exists, its thread is changing the tree, and a signal handler must not use it.
  // Relaxed stores are enough, because the handler runs on the same thread; the fences keep the compiler from moving
  // them.
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
  bool ready = false;       // the owner may enter zones at once; not for visitors
  bool is_worker = true;    // not the thread that marks the main frame
  bool own_frames = false;  // marks of a sequence other than the main one end the tree's frames
  uint32_t opens = 0;       // how often its events were opened; older snapshots can't be compared
  bool draining = false;    // it was inside a zone when counting was disabled; guarded by mutex
  bool dirty = false;       // something was counted since the last Roll
  uint64_t frame = 0;       // number of the main frame that these counts belong to
  SlotWriter slot;
  const std::string name;
  const uint64_t serial;  // unlike an address, never used for a later thread
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
