// One thread that runs tasks: its events, the task that is open on it, and what it has counted in each node.
//
//   last ──────────── now          at each switch: what was counted in between belongs to the innermost account and its
//        one interval              node, or to node 0 if there is none; then `now` is the next interval's beginning
//
// So the sums of all nodes are the difference of the first and the last snapshot, by construction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "perfkit/counter.h"
#include "src/count/task/ended_tasks.h"
#include "src/count/task/node_sums.h"
#include "src/count/task/task_account.h"
#include "src/count/task/task_log.h"
#include "src/count/task/task_nodes.h"

namespace perfkit::count {

// Used by its own thread only, except sums(), is_outside() and is_in_lost_task(), which all threads may read, and
// StartLog and StopLog.
class alignas(64) TaskThread {
 public:
  // `serial` differs from that of all other threads, and is not 0.
  TaskThread(size_t nodes, const CountedEvents& events, uint64_t serial, uint32_t tid, std::optional<CounterSet> set)
      : sums_(nodes, events), serial_(serial), tid_(tid), set_(std::move(set)) {
    if (set_) {
      static_cast<CounterReader&>(reader_) = *set_;
      sums_.SetGapped(set_->gapped());
    }
    Start();
  }

  // Begins the first interval now. The constructor does so, too; a call at the end of the thread's set-up excludes what
  // the set-up itself has counted.
  void Start() noexcept {
    Read(*last_);
    first_ = *last_;
  }

  // Ends the current interval, and begins the next one. If another thread has suspended current(), drops it first:
  // current() is then another account, or nullptr.
  [[gnu::always_inline]] void Advance() noexcept {
    TaskAccount* account = current_;
    if (account != nullptr && account->cross_thread.load(std::memory_order_relaxed)) [[unlikely]] {
      account = nullptr;
      DropCrossThread();
    }
    Read(*next_);
    if (account != nullptr) {
      sums_.Add(account->node, *last_, *next_, &account->sums);
    } else {
      sums_.Add(TaskNodes::kOutside, *last_, *next_, nullptr);
    }
    std::swap(last_, next_);
  }

  // Opens a suspended account at the last snapshot.
  [[gnu::always_inline]] void Open(TaskAccount& account) noexcept {
    const uint64_t now = last().ticks;
    sums_.AddCall(account.root);
    ++account.sums.calls;
    if (account.suspended_ticks != 0 && now > account.suspended_ticks) {
      account.wait_ticks += now - account.suspended_ticks;
      sums_.AddWait(account.root, now - account.suspended_ticks);
    }
    if (account.last_thread != serial_ && account.last_thread != 0) {
      ++account.migrations;
      sums_.AddMigration(account.root);
    }
    account.last_thread = serial_;
    account.below = current_;
    account.thread.store(this, std::memory_order_relaxed);
    SetCurrent(&account);
  }
  // Closes current() at the last snapshot. Requires that there is one.
  [[gnu::always_inline]] void Close() noexcept {
    TaskAccount& account = *current_;
    SetCurrent(account.below);
    account.suspended_ticks = last().ticks;
    account.thread.store(nullptr, std::memory_order_relaxed);
  }

  // To be called after each change. If a recording listens, logs where the thread is since the last snapshot. Until
  // then it was in `node` of `before`; nullptr means in no task.
  [[gnu::always_inline]] void Follow(const TaskAccount* before, uint16_t node) noexcept {
    if (is_recorded_.load(std::memory_order_relaxed)) [[unlikely]]
      FollowNow(before, node);
  }
  [[gnu::always_inline]] void Follow(const TaskAccount* before) noexcept {
    if (is_recorded_.load(std::memory_order_relaxed)) [[unlikely]]
      FollowNow(before, before != nullptr ? before->node : TaskNodes::kOutside);
  }

  // Start and stop logging for a recording. Any thread, with the list of threads locked. The first StartLog allocates
  // memory that is kept until the thread ends.
  std::shared_ptr<TaskLog> StartLog(uint64_t epoch) {
    constexpr size_t kLogWords = size_t{1} << 17;  // 1 MiB: 43,000 switches between two reads
    if (log_ == nullptr) log_ = std::make_shared<TaskLog>(kLogWords);
    log_->Start(epoch);
    is_recorded_.store(true, std::memory_order_release);  // Pairs with log().
    return log_;
  }
  void StopLog() {
    is_recorded_.store(false, std::memory_order_relaxed);
    if (log_ != nullptr) log_->Start(0);
  }
  // Begins the log of a thread that has just been attached: it was in no task before.
  void BeginLog() noexcept {
    if (TaskLog* const listening = log(); listening != nullptr) listening->Add({}, 0, {}, last().ticks);
  }
  // Ends the log: the thread is detached at the last snapshot.
  void EndLog() noexcept {
    if (TaskLog* const listening = log(); listening != nullptr) {
      listening->End(PositionOf(current_, current_ != nullptr ? current_->node : TaskNodes::kOutside),
                     before_last_ticks(), last().ticks);
    }
  }
  // Returns true if the thread is in no task. Thread-safe.
  bool is_outside() noexcept {
    return std::atomic_ref<TaskAccount*>(current_).load(std::memory_order_relaxed) == nullptr;
  }
  // Returns true if another thread has suspended or ended its task, and it has not switched since. Thread-safe.
  bool is_in_lost_task() noexcept {
    const TaskAccount* const account = std::atomic_ref<TaskAccount*>(current_).load(std::memory_order_relaxed);
    return account != nullptr && account->cross_thread.load(std::memory_order_relaxed);
  }
  uint64_t serial() const { return serial_; }
  uint32_t tid() const { return tid_; }

  TaskAccount* current() const { return current_; }
  NodeSums& sums() { return sums_; }
  const NodeSums& sums() const { return sums_; }
  // Return the snapshots of Start and of the last switch.
  const Snapshot& first() const { return first_; }
  const Snapshot& last() const { return *last_; }

 private:
  [[gnu::always_inline]] void Read(Snapshot& now) const noexcept {
    now.ticks = 0;
    reader_.Read(now);
    if (now.ticks == 0) now.ticks = ReadTicks();
  }
  // An atomic store, for is_outside; loads on this thread need not be.
  [[gnu::always_inline]] void SetCurrent(TaskAccount* account) noexcept {
    std::atomic_ref<TaskAccount*>(current_).store(account, std::memory_order_relaxed);
  }
  // On the owner; nullptr if no recording listens.
  TaskLog* log() const noexcept {
    // Acquire: pairs with the release in StartLog.
    return is_recorded_.load(std::memory_order_acquire) ? log_.get() : nullptr;
  }
  // Returns when the last interval began.
  uint64_t before_last_ticks() const { return next_->ticks; }
  static TaskPosition PositionOf(const TaskAccount* account, uint16_t node) noexcept {
    if (account == nullptr) return {};
    // How long it ran is not known.
    if (account->cross_thread.load(std::memory_order_relaxed)) return {.node = TaskLog::kUnknownNode};
    return {node, account->awaiters.load(std::memory_order_relaxed), account->number};
  }
  [[gnu::noinline]] void FollowNow(const TaskAccount* before, uint16_t node) noexcept {
    TaskLog* const listening = log();
    if (listening == nullptr) return;
    listening->Add(PositionOf(before, node), before_last_ticks(),
                   PositionOf(current_, current_ != nullptr ? current_->node : TaskNodes::kOutside), last().ticks);
  }
  // Drops the innermost accounts that another thread has suspended. The interval that ends now belongs to no task. The
  // account that they interrupted may have run in it, so it lacks a part: it has no counts, and is in no quantile.
  [[gnu::noinline]] void DropCrossThread() noexcept {
    if (TaskLog* const listening = log(); listening != nullptr) listening->Abandon(last().ticks);
    while (current_ != nullptr && current_->cross_thread.load(std::memory_order_relaxed)) {
      TaskAccount& account = *current_;
      SetCurrent(account.below);
      account.suspended_ticks = UINT64_MAX;  // The time is not known, so Open adds no wait.
      account.thread.store(nullptr, std::memory_order_relaxed);
    }
    if (current_ == nullptr) return;
    current_->sums.missing = ~0u;
    current_->ended->cross_thread.store(true, std::memory_order_relaxed);
  }

  CounterReader reader_;
  TaskAccount* current_ = nullptr;
  std::array<Snapshot, 2> snapshots_{};
  // The last one, and the one that Advance fills next: that of the switch before the last.
  Snapshot* last_ = &snapshots_[0];
  Snapshot* next_ = &snapshots_[1];
  NodeSums sums_;
  uint64_t serial_;
  uint32_t tid_;
  std::atomic<bool> is_recorded_{false};
  std::shared_ptr<TaskLog> log_;  // Set once.
  Snapshot first_{};
  std::optional<CounterSet> set_;
};

}  // namespace perfkit::count
