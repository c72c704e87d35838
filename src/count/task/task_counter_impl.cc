// The switches of tasks. Each finds the calling thread's TaskThread in thread-local storage and changes only that and
// the account, so threads that switch at once share nothing. Before anything is changed, TaskAccount::thread shows a
// wrong use: the call is ignored and counted, or the task has no counts from then on
// (TaskAccount::cross_thread).
#include "src/count/task/task_counter_impl.h"

#include <algorithm>
#include <utility>

#include "src/count/tick_rate.h"
#include "src/sys/kernel.h"

namespace perfkit::count {
namespace {

constexpr size_t kHistogramRows = 1024;  // 128 KiB

// Nodes have 16-bit numbers. Not for zones: the outside of tasks, names beyond max_zones, TaskLog::kUnknownNode.
size_t MaxZones(const TaskOptions& options) { return std::min<size_t>(options.max_zones, UINT16_MAX - 3); }

}  // namespace

TaskCounterImpl::TaskCounterImpl(const TaskOptions& options)
    : plan_(options.events, options.only_path),
      max_threads_(options.max_threads),
      ns_per_tick_q32_(TickRateOf(UserPage{}).ns_per_tick_q32),
      nodes_(MaxZones(options) + 1),
      chains_(MaxZones(options)),
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
  auto thread = std::make_unique<TaskThread>(ended_.size(), CountedPlan(), ThreadSerial(),
                                             static_cast<uint32_t>(sys::kernel().gettid()), plan_.OpenNext());
  const auto at_exit = [](Bindable& impl, void* state) { static_cast<TaskCounterImpl&>(impl).EndThread(state); };
  if (!Bind(shared_from_this(), thread.get(), at_exit)) return nullptr;
  threads_.push_back(std::move(thread));
  TaskThread* const attached = threads_.back().get();
  if (recording_ != nullptr) recording_->Add(*attached);
  attached->Start();  // After all that allocates.
  attached->BeginLog();
  attached_.store(threads_.size(), std::memory_order_relaxed);
  return attached;
}

// Remembers the refusal, so that it is counted once for each thread.
TaskThread* TaskCounterImpl::Refuse() {
  if (WasRefused(this)) return nullptr;
  Bind(shared_from_this(), nullptr, nullptr);
  AddOne(tally_.refused);
  return nullptr;
}

// Called on the thread that ends. Suspends the tasks that are still open on it.
void TaskCounterImpl::EndThread(void* thread) {
  if (in_forked_child_) return;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return;
  std::erase_if(threads_, [this, thread](const std::unique_ptr<TaskThread>& ending) {
    if (ending.get() != thread) return false;
    ending->Advance();
    ending->EndLog();
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
  // No thread uses the TaskCounter any more.
  if (!in_forked_child_) {
    for (const std::unique_ptr<TaskThread>& thread : threads_) thread->EndLog();
  }
  threads_.clear();
}

absl::StatusOr<std::unique_ptr<TaskRecording>> TaskCounterImpl::Record() {
  const auto refused = [](const char* why) { return absl::Status(absl::StatusCode::kFailedPrecondition, why); };
  if (in_forked_child_) return refused("the TaskCounter is the parent process's");
  if (ns_per_tick_q32_ == 0) return refused("tasks have no times: this machine has no tick counter");
  auto recording = std::make_unique<TaskRecording>(shared_from_this(), ns_per_tick_q32_);
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return refused("the TaskCounter is gone");
  if (recording_ != nullptr) recording_->Detach();
  recording_ = recording.get();
  for (const std::unique_ptr<TaskThread>& thread : threads_) recording->Add(*thread);
  return recording;
}

void TaskCounterImpl::EndRecording(const TaskRecording& recording) {
  if (in_forked_child_) return;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recording_ != &recording) return;  // a later one listens
  recording_ = nullptr;
  for (const std::unique_ptr<TaskThread>& thread : threads_) thread->StopLog();
}

// The parent's recording reads its own copy of the logs.
void TaskCounterImpl::OnForkedChild() {
  in_forked_child_ = true;
  for (const std::unique_ptr<TaskThread>& thread : threads_) thread->StopLog();
}

std::vector<uint64_t> TaskCounterImpl::ThreadsThat(bool (TaskThread::*is_so)() noexcept) const {
  const std::unique_lock<std::mutex> lock = Lock();
  std::vector<uint64_t> serials;
  for (const std::unique_ptr<TaskThread>& thread : threads_) {
    if ((thread.get()->*is_so)()) serials.push_back(thread->serial());
  }
  return serials;
}

std::vector<uint64_t> TaskCounterImpl::ThreadsOutside() const { return ThreadsThat(&TaskThread::is_outside); }
std::vector<uint64_t> TaskCounterImpl::ThreadsInLostTasks() const { return ThreadsThat(&TaskThread::is_in_lost_task); }

// Returns an account that no task uses: a returned one, or else a new one. Called with the mutex held.
TaskAccount* TaskCounterImpl::TakeAccount() {
  // Acquire: pairs with the release in End. Takes the whole list: if single ones were taken, an account could be taken
  // and returned while another thread compares the head (ABA).
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  if (free_ == nullptr) return &accounts_.emplace_back(*this);
  return std::exchange(free_, free_->next_free);
}

EndedTasks* TaskCounterImpl::EndedOf(uint16_t root) {
  if (ended_[root] == nullptr) ended_[root] = std::make_unique<EndedTasks>(plan_.size());
  return ended_[root].get();
}

// Returns nullptr in a forked child: another thread may have been changing the lists at the fork.
TaskAccount* TaskCounterImpl::Create(ZoneId name) {
  if (in_forked_child_) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  // Without a name it would be an empty row of tables, and no level of a profile's stacks.
  const bool named = name.name != nullptr && name.name[0] != '\0';
  uint16_t root = nodes_.Define(TaskNodes::kOutside, named ? name.name : "(no name)");
  if (root == TaskNodes::kOutside) {
    root = other_names_;
    AddOne(tally_.dropped);
  }
  TaskAccount* const account = TakeAccount();
  EndedTasks* const ended = EndedOf(root);
  ++ended->created;
  account->Begin(root, tally_.created.fetch_add(1, std::memory_order_relaxed) + 1, ended);
  return account;
}

void TaskCounterImpl::NoteCrossThread(TaskAccount& account) noexcept {
  if (account.cross_thread.exchange(true, std::memory_order_relaxed)) return;
  AddOne(tally_.cross_thread);
  account.ended->cross_thread.store(true, std::memory_order_relaxed);
}

void TaskCounterImpl::ResumeOn(TaskThread* thread, TaskAccount& account) noexcept {
  if (thread != nullptr) [[likely]] {
    thread->Open(account);
    return thread->Follow(account.below);
  }
  account.open_uncounted = true;
  account.ended->refused.store(true, std::memory_order_relaxed);
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

// Returns the calling thread if `account` is the innermost one on it, so that the caller may close it. Otherwise
// finishes the suspension, or counts the wrong use, and returns nullptr.
[[gnu::always_inline]] inline TaskThread* TaskCounterImpl::ThreadToSuspendOn(TaskAccount& account) noexcept {
  TaskThread* const thread = FindThread();
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  if (thread != nullptr && opened == thread && thread->current() == &account) [[likely]]
    return thread;
  return SettleSuspend(thread, account);
}

// The rest of ThreadToSuspendOn: the rare cases, and wrong use.
TaskThread* TaskCounterImpl::SettleSuspend(TaskThread* thread, TaskAccount& account) noexcept {
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  if (opened != nullptr && opened != thread) {
    NoteCrossThread(account);
    return nullptr;
  }
  if (std::exchange(account.open_uncounted, false)) {
    account.suspended_ticks = ReadTicks();  // It ran until now, so its wait begins now.
    return nullptr;
  }
  if (opened != nullptr) thread->Advance();  // Drops what other threads have suspended.
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
  thread->Follow(&account);
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
  thread->Follow(&from);
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
  const uint16_t outer = std::exchange(account.node, node);
  thread->sums().AddCall(node);
  thread->Follow(&account, outer);
  return &account;
}

// Zones of a suspended task may be left, too: a coroutine that is destroyed while it is suspended leaves all of its
// zones. That needs no snapshot.
[[gnu::flatten]] void TaskCounterImpl::LeaveZone(TaskAccount& account) noexcept {
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  TaskThread* const thread = FindThread();
  if (opened != nullptr && opened != thread) [[unlikely]]
    return NoteCrossThread(account);
  if (account.skipped != 0) [[unlikely]] {
    --account.skipped;
    return;
  }
  const bool is_running = opened != nullptr && thread->current() == &account;
  if (is_running) thread->Advance();
  const uint16_t node = account.node;
  if (node != account.root) account.node = nodes_.parent(node);
  if (is_running) thread->Follow(&account, node);
}

bool TaskCounterImpl::IsInterrupted(TaskAccount& account) noexcept {
  TaskThread* const opened = account.thread.load(std::memory_order_relaxed);
  if (opened == nullptr || opened != FindThread() || opened->current() == &account) return false;
  opened->Advance();  // Drops what other threads have suspended.
  return opened->current() != &account;
}

void TaskCounterImpl::End(TaskAccount& account) noexcept {
  if (account.is_open() && !IsInterrupted(account)) Suspend(account);
  EndedTasks& ended = *account.ended;
  AddOne(tally_.ended);
  AddOne(ended.tasks);
  // Still open: on another thread, or interrupted by another task. Its thread may still access it, so it is never used
  // again.
  if (account.is_open() || account.cross_thread.load(std::memory_order_relaxed)) return NoteCrossThread(account);
  // Else it also ran on a thread that was refused, or where another thread suspended a task that interrupted it: its
  // times are not known.
  if (account.sums.missing != ~0u) {
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

// The chain is kept as it is now: the awaiter is suspended where it awaits until the other task is done.
void TaskCounterImpl::SetAwaiter(TaskAccount& account, const TaskAccount* awaiter) noexcept {
  if (awaiter == &account) return;  // A helper that runs as the same task: who awaits that, has not changed.
  uint16_t chain = AwaitChains::kNone;
  if (awaiter != nullptr && awaiter->impl == this)
    chain = chains_.Add({awaiter->awaiters.load(std::memory_order_relaxed), awaiter->node});
  account.awaiters.store(chain, std::memory_order_relaxed);
}

}  // namespace perfkit::count
