// A value that signal handlers read while another thread replaces it. Readers never wait; a replaced value is kept
// until no reader can still use it.
//
//   Publish: current ──> new                 old ──> waiting ──> draining ──> freed
//   readers of phase 0  ███ ██               Collect switches the phase, so that later readers are counted elsewhere;
//   readers of phase 1        ███ █          it frees the old values once the old phase has no readers left.
//
// This counts as sleepable RCU does (McKenney, "Sleepable RCU", LWN 202847), without its waiting. Collect
// switches only to a phase that has no readers. A reader may be slow between reading the phase's number and counting
// itself. If Collect finds that phase empty, such a reader has not loaded the value yet, so it will load the new one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/in_handler.h"
#include "src/base/mix.h"

namespace perfkit::base {

// Readers: any thread, any number, also in signal handlers and nested on one thread. All other calls: one thread at a
// time. No reader may be left when this is destroyed. A reader that never leaves keeps memory: one that a longjmp has
// skipped, or one on a thread that does not exist in a forked child.
template <class T>
class Published {
 public:
  explicit Published(std::unique_ptr<const T> first) : current_(first.release()) {}
  ~Published() { delete current_.load(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  // The value stays valid as long as its Reader.
  class Reader {
   public:
    // Both accesses pair with the exchange in Publish and the loads in HasReaders: either Collect counts this reader,
    // or the reader gets the new value.
    PERFKIT_IN_HANDLER explicit Reader(Published& of) : slot_(of.SlotOfThisThread()) {
      slot_.fetch_add(1, std::memory_order_seq_cst);
      value_ = of.current_.load(std::memory_order_seq_cst);
    }
    // Release pairs with the load in HasReaders: the reader has finished with the value.
    PERFKIT_IN_HANDLER ~Reader() { slot_.fetch_sub(1, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    const T& operator*() const { return *value_; }

   private:
    std::atomic<uint32_t>& slot_;
    const T* value_;
  };

  const T& value() const { return *current_.load(std::memory_order_relaxed); }

  void Publish(std::unique_ptr<const T> next) {
    waiting_.emplace_back(current_.exchange(next.release(), std::memory_order_seq_cst));
    Collect();
  }

  // Frees the values that no reader uses. To be called now and then; never waits.
  void Collect() {
    for (int i = 0; i < 2; ++i) {
      const uint32_t phase = phase_.load(std::memory_order_relaxed);
      if (HasReaders(1 - phase)) return;
      draining_.clear();
      if (waiting_.empty()) return;
      draining_ = std::exchange(waiting_, {});
      phase_.store(1 - phase, std::memory_order_seq_cst);
    }
  }

  // Visits the values that were replaced and are not freed yet.
  template <class Visit>
  void ForEachOld(Visit visit) const {
    for (const auto* const list : {&waiting_, &draining_}) {
      for (const std::unique_ptr<const T>& old : *list) visit(*old);
    }
  }

 private:
  // Threads count in different slots where possible: the slot is chosen by the address of the stack.
  static constexpr size_t kSlots = 16;
  struct alignas(64) Slot {
    std::atomic<uint32_t> readers{0};
  };

  PERFKIT_IN_HANDLER std::atomic<uint32_t>& SlotOfThisThread() {
    const auto stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) >> 16;
    return slots_[phase_.load(std::memory_order_relaxed)][base::Mix(stack) >> 60].readers;
  }

  bool HasReaders(uint32_t phase) const {
    for (const Slot& slot : slots_[phase]) {
      if (slot.readers.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }

  std::atomic<const T*> current_;
  std::atomic<uint32_t> phase_{0};
  Slot slots_[2][kSlots];
  std::vector<std::unique_ptr<const T>> waiting_, draining_;
};

}  // namespace perfkit::base
