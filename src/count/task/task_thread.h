// One thread that runs tasks: its events, the task that is open on it, and what it has counted in each node.
//
//   last ──────────── now          at each switch: what was counted in between belongs to the innermost account and its
//        one interval              node, or to node 0 if there is none; then `now` is the next interval's beginning
//
// So the sums of all nodes are the difference of the first and the last snapshot, by construction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "perfkit/counter.h"
#include "src/count/task/node_sums.h"
#include "src/count/task/task_account.h"
#include "src/count/task/task_nodes.h"

namespace perfkit::count {

// On its own thread, except sums().
class alignas(64) TaskThread {
 public:
  // `serial` differs from that of all other threads, and is not 0.
  TaskThread(size_t nodes, const CountedEvents& events, uint64_t serial, std::optional<CounterSet> set)
      : sums_(nodes, events), serial_(serial), set_(std::move(set)) {
    if (set_) {
      static_cast<CounterReader&>(reader_) = *set_;
      sums_.SetGapped(set_->gapped());
    }
    Start();
  }

  // Begins the first interval now, not where it was constructed: the set-up is in no sum.
  void Start() noexcept {
    Read(snapshots_[last_]);
    first_ = snapshots_[last_];
  }

  // Ends the current interval, and begins the next one. current() may be another one then, if another thread has
  // suspended it.
  [[gnu::always_inline]] void Advance() noexcept {
    TaskAccount* account = current_;
    if (account != nullptr && account->cross_thread.load(std::memory_order_relaxed)) [[unlikely]] {
      account = nullptr;
      DropCrossThread();
    }
    const Snapshot& begin = snapshots_[last_];
    Snapshot& now = snapshots_[1 - last_];
    Read(now);
    if (account != nullptr) {
      sums_.Add(account->node, begin, now);
      sums_.events().Add(account->sums, begin, now);
    } else {
      sums_.Add(TaskNodes::kOutside, begin, now);
    }
    last_ = 1 - last_;
  }

  // Opens a suspended account at the last snapshot.
  [[gnu::always_inline]] void Open(TaskAccount& account) noexcept {
    const uint64_t now = last().ticks;
    sums_.AddCall(account.root);
    if (account.sums.calls++ != 0 && now > account.suspended_ticks) {
      account.wait_ticks += now - account.suspended_ticks;
      sums_.AddWait(account.root, now - account.suspended_ticks);
    }
    account.migrations += account.last_thread != 0 && account.last_thread != serial_;
    account.last_thread = serial_;
    account.below = current_;
    account.thread.store(this, std::memory_order_relaxed);
    current_ = &account;
  }
  // Closes current() at the last snapshot. Requires that there is one.
  [[gnu::always_inline]] void Close() noexcept {
    TaskAccount& account = *current_;
    current_ = account.below;
    account.suspended_ticks = last().ticks;
    account.thread.store(nullptr, std::memory_order_relaxed);
  }

  TaskAccount* current() const { return current_; }
  NodeSums& sums() { return sums_; }
  const NodeSums& sums() const { return sums_; }
  // The snapshots at which it began, and of the last switch.
  const Snapshot& first() const { return first_; }
  const Snapshot& last() const { return snapshots_[last_]; }

 private:
  [[gnu::always_inline]] void Read(Snapshot& now) const noexcept {
    now.ticks = 0;
    reader_.Read(now);
    if (now.ticks == 0) now.ticks = ReadTicks();
  }
  // Takes accounts off the stack that another thread has suspended: what was counted since is no task's.
  [[gnu::noinline]] void DropCrossThread() noexcept {
    while (current_ != nullptr && current_->cross_thread.load(std::memory_order_relaxed)) {
      TaskAccount& account = *current_;
      current_ = account.below;
      account.suspended_ticks = UINT64_MAX;  // When is not known: the wait from then on counts as 0 (Open).
      account.thread.store(nullptr, std::memory_order_relaxed);
    }
  }

  CounterReader reader_;
  TaskAccount* current_ = nullptr;
  size_t last_ = 0;
  std::array<Snapshot, 2> snapshots_{};
  NodeSums sums_;
  uint64_t serial_;
  Snapshot first_{};
  std::optional<CounterSet> set_;
};

}  // namespace perfkit::count
