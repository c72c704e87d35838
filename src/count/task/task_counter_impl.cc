// The switches of tasks. Each finds the calling thread's TaskThread in thread-local storage and works on that and on
// the account alone, so threads that switch at once share nothing. What is wrongly used is told by the account's
// thread, before anything is changed: it is ignored and counted, or the task has no number from then on.
#include "src/count/task/task_counter_impl.h"

#include <algorithm>
#include <utility>

#include "src/count/tick_rate.h"

namespace perfkit::count {
namespace {

constexpr size_t kHistogramRows = 1024;  // 128 KiB

// Nodes have 16-bit numbers; two of them are the outside of tasks and the names beyond max_zones.
size_t MaxZones(const TaskOptions& options) { return std::min<size_t>(options.max_zones, UINT16_MAX - 3); }

}  // namespace

TaskCounterImpl::TaskCounterImpl(const TaskOptions& options)
    : plan_(options.events, options.only_path),
      max_threads_(options.max_threads),
      ns_per_tick_q32_(TickRateOf(UserPage{}).ns_per_tick_q32),
      nodes_(MaxZones(options) + 1),
      other_names_(nodes_.Define(TaskNodes::kOutside, "(more names)")),
      rows_(kHistogramRows),
      ended_(MaxZones(options) + 2) {
  plan_.OpenFirst();
  ended_threads_ = std::make_unique<NodeSums>(ended_.size(), CountedPlan());
  EndedOf(other_names_);
}

std::unique_lock<std::mutex> TaskCounterImpl::Lock() const {
  return in_forked_child_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
}

TaskThread* TaskCounterImpl::Attach() {
  TaskThread* const known = FindThread();
  if (known != nullptr || in_forked_child_) return known;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (threads_.size() >= max_threads_) return Refuse();
  auto thread = std::make_unique<TaskThread>(ended_.size(), CountedPlan(), ThreadSerial(), plan_.OpenNext());
  const auto at_exit = [](Bindable& impl, void* state) { static_cast<TaskCounterImpl&>(impl).EndThread(state); };
  if (!Bind(shared_from_this(), thread.get(), at_exit)) return nullptr;
  thread->Start();
  threads_.push_back(std::move(thread));
  attached_.store(threads_.size(), std::memory_order_relaxed);
  return threads_.back().get();
}

// Remembers the refusal, so that it is counted once for each thread.
TaskThread* TaskCounterImpl::Refuse() {
  if (WasRefused(this)) return nullptr;
  Bind(shared_from_this(), nullptr, nullptr);
  AddOne(tally_.refused);
  return nullptr;
}

// On the thread itself. Tasks that are still open on it are suspended.
void TaskCounterImpl::EndThread(void* thread) {
  if (in_forked_child_) return;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return;
  std::erase_if(threads_, [this, thread](const std::unique_ptr<TaskThread>& ending) {
    if (ending.get() != thread) return false;
    ending->Advance();
    while (ending->current() != nullptr) ending->Close();
    ended_threads_->Merge(ending->sums());
    return true;
  });
  attached_.store(threads_.size(), std::memory_order_relaxed);
}

void TaskCounterImpl::Close() {
  const sys::ForkBlocker fork_blocker;
  const std::unique_lock<std::mutex> lock = Lock();
  MarkClosed();
  threads_.clear();
}

// Returns nullptr at the end of the list. Called with the mutex held.
TaskAccount* TaskCounterImpl::TakeAccount() {
  // Acquire: pairs with the release in End. All at once, so that no account comes back in between.
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  if (free_ == nullptr) return &accounts_.emplace_back(*this);
  return std::exchange(free_, free_->next_free);
}

EndedTasks* TaskCounterImpl::EndedOf(uint16_t root) {
  if (ended_[root] == nullptr) ended_[root] = std::make_unique<EndedTasks>(plan_.size());
  return ended_[root].get();
}

// Returns nullptr in a forked child: another thread may have been at work on the lists when it forked.
TaskAccount* TaskCounterImpl::Create(ZoneId name) {
  if (in_forked_child_) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  uint16_t root = nodes_.Define(TaskNodes::kOutside, name.name);
  if (root == TaskNodes::kOutside) {
    root = other_names_;
    AddOne(tally_.dropped);
  }
  TaskAccount* const account = TakeAccount();
  account->Begin(root, EndedOf(root));
  AddOne(tally_.created);
  return account;
}

void TaskCounterImpl::NoteCrossThread(TaskAccount& account) noexcept {
  if (!account.cross_thread.exchange(true, std::memory_order_relaxed)) AddOne(tally_.cross_thread);
}

void TaskCounterImpl::ResumeOn(TaskThread* thread, TaskAccount& account) noexcept {
  if (thread != nullptr) [[likely]]
    return thread->Open(account);
  account.open_uncounted = true;
  account.sums.missing = ~0u;
}

[[gnu::flatten]] void TaskCounterImpl::Resume(TaskAccount& account) noexcept {
  TaskThread* thread = FindThread();
  if (thread == nullptr && !(WasRefused(this) && attached_.load(std::memory_order_relaxed) >= max_threads_))
      [[unlikely]]
    thread = Attach();
  if (account.is_open()) [[unlikely]]
    return AddOne(tally_.mismatched);
  if (thread != nullptr) thread->Advance();
  ResumeOn(thread, account);
}

// Returns the calling thread if `account` is the innermost one on it. Otherwise deals with it, and returns nullptr.
[[gnu::always_inline]] inline TaskThread* TaskCounterImpl::ThreadToSuspendOn(TaskAccount& account) noexcept {
  TaskThread* const thread = FindThread();
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  if (thread != nullptr && opened == thread && thread->current() == &account) [[likely]]
    return thread;
  return SettleSuspend(thread, account);
}

// The rest of ThreadToSuspendOn: what is rare, or wrong.
TaskThread* TaskCounterImpl::SettleSuspend(TaskThread* thread, TaskAccount& account) noexcept {
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  if (opened != nullptr && opened != thread) {
    NoteCrossThread(account);
    return nullptr;
  }
  if (std::exchange(account.open_uncounted, false)) {
    account.suspended_ticks = ReadTicks();  // It ran until now: that was no wait.
    return nullptr;
  }
  if (opened != nullptr) thread->Advance();  // Takes off what other threads have suspended.
  if (opened != nullptr && thread->current() == &account) return thread;
  AddOne(tally_.mismatched);
  return nullptr;
}

[[gnu::flatten]] void TaskCounterImpl::Suspend(TaskAccount& account) noexcept {
  TaskThread* const thread = ThreadToSuspendOn(account);
  if (thread == nullptr) [[unlikely]]
    return;
  thread->Advance();
  if (thread->current() == &account) thread->Close();
}

[[gnu::flatten]] void TaskCounterImpl::Switch(TaskAccount& from, TaskAccount& to) noexcept {
  TaskThread* const thread = ThreadToSuspendOn(from);
  if (thread == nullptr || to.is_open() || to.impl != this) [[unlikely]] {
    if (thread != nullptr) Suspend(from);
    return to.impl->Resume(to);
  }
  thread->Advance();
  if (thread->current() == &from) thread->Close();
  thread->Open(to);
}

[[gnu::flatten]] TaskAccount* TaskCounterImpl::EnterZone(ZoneId id) noexcept {
  TaskThread* const thread = FindThread();
  if (thread == nullptr || thread->current() == nullptr) return nullptr;
  TaskAccount& account = *thread->current();
  uint16_t node = account.skipped != 0 ? TaskNodes::kOutside : nodes_.Find(account.node, id.name);
  if (node == TaskNodes::kOutside) [[unlikely]] {
    if (account.skipped == 0 && !in_forked_child_) node = nodes_.Define(account.node, id.name);
    if (node == TaskNodes::kOutside) {
      ++account.skipped;
      AddOne(tally_.dropped);
      return &account;
    }
  }
  thread->Advance();
  account.node = node;
  thread->sums().AddCall(node);
  return &account;
}

// A zone of a suspended task costs nothing to leave: a coroutine that is destroyed where it waits leaves all of its
// own.
[[gnu::flatten]] void TaskCounterImpl::LeaveZone(TaskAccount& account) noexcept {
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  TaskThread* const thread = FindThread();
  if (opened != nullptr && opened != thread) [[unlikely]]
    return NoteCrossThread(account);
  if (account.skipped != 0) [[unlikely]] {
    --account.skipped;
    return;
  }
  if (opened != nullptr && thread->current() == &account) thread->Advance();
  if (account.node != account.root) account.node = nodes_.parent(account.node);
}

void TaskCounterImpl::End(TaskAccount& account) noexcept {
  if (account.is_open()) Suspend(account);
  AddOne(tally_.ended);
  // Still open: on another thread, or interrupted by another task. Its thread may look at it, so it is never used
  // again.
  if (account.is_open() || account.cross_thread.load(std::memory_order_relaxed)) return NoteCrossThread(account);
  EndedTasks& ended = *account.ended;
  AddOne(ended.tasks);
  if (account.sums.missing != ~0u) {  // Else it also ran where nothing is known.
    ended.run_ns.Add(ToNs(account.sums.ticks), rows_);
    ended.wait_ns.Add(ToNs(account.wait_ticks), rows_);
  }
  for (size_t i = 0; i < plan_.size(); ++i) {
    const Count count = CountOf(account.sums, i);
    if (count.validity.counted() && count.coverage() == 1) ended.values[i].Add(count.value, rows_);
  }
  account.next_free = returned_.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in TakeAccount.
  while (!returned_.compare_exchange_weak(account.next_free, &account, std::memory_order_release)) {
  }
}

}  // namespace perfkit::count
