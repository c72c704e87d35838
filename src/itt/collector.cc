// The beginning and the end of tasks, and the end of collection. The beginning of a task finds the calling thread's
// open tasks and the zone of its handle, each by one load, and enters the zone; its end leaves it. Threads and names
// are set up when they are first seen. In a forked child the FrameCounter is disabled: tasks are pushed and popped
// there, but not counted, and nothing locks for long.
#include "src/itt/collector.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/itt/open_threads.h"
#include "src/itt/wait_outside.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"

namespace perfkit::itt {
namespace {

// The calling thread's open tasks; nullptr before its first one, and while it ends. Initial-exec: found by one load.
[[gnu::tls_model("initial-exec")]] constinit thread_local OpenTasks* t_tasks = nullptr;
constinit thread_local bool t_exiting = false;

OpenThreads& Threads() {
  static OpenThreads* const threads = new OpenThreads;  // Never destroyed: threads end after it.
  return *threads;
}

// Ends a thread's open tasks with the thread.
struct TasksOwner {
  std::shared_ptr<OpenTasks> tasks;

  ~TasksOwner() {
    t_exiting = true;
    t_tasks = nullptr;
    if (tasks == nullptr) return;
    Collector::EndThread(*tasks);
    Threads().Remove(tasks);
  }
};

void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

std::string TextOr(const char* text, const char* otherwise) { return text != nullptr ? text : otherwise; }

// Returns the symbol of a function if its module exports it, else its module and offset.
std::string FunctionName(const void* function) {
  Dl_info found{};
  if (dladdr(function, &found) == 0) return absl::StrFormat("0x%x", reinterpret_cast<uintptr_t>(function));
  if (found.dli_sname != nullptr && found.dli_saddr == function) return found.dli_sname;
  const std::string path = TextOr(found.dli_fname, "");
  return absl::StrFormat("%s+0x%x", path.substr(path.rfind('/') + 1),
                         reinterpret_cast<uintptr_t>(function) - reinterpret_cast<uintptr_t>(found.dli_fbase));
}

std::string NameOf(const Domain* domain, KeyKind kind, const void* key) {
  std::string name = domain != nullptr ? TextOr(domain->name, "(unnamed)") : "(no domain)";
  name += ": ";
  if (kind == KeyKind::kFrame) return name + "(frame)";
  if (key == nullptr) return name + "(unnamed)";
  if (kind == KeyKind::kFunction) return name + FunctionName(key);
  return name + TextOr(static_cast<const StringHandle*>(key)->text, "(unnamed)");
}

// The key of the frames of a domain: no handle has this address.
constexpr char kFrameKey = 0;

// Returns true in a handler that runs on the thread's alternate stack, which may be anywhere. With SS_AUTODISARM the
// kernel does not tell.
bool IsOnSignalStack() noexcept {
  stack_t stack{};
  return ::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

// Ends all zones of the calling thread, the program's own among them, without counts.
void AbandonZones(count::FrameThread& thread) {
  const count::FrameThread::Work work(thread);
  count::ZoneTree& tree = thread.tree;
  while (tree.depth() > tree.open_depth()) tree.SkipLeave();  // Dropped ones.
  thread.FollowLog(0);
  for (size_t depth = 1; depth <= tree.open_depth(); ++depth) thread.NoteCrossThread(tree.OpenAt(depth).entry);
  thread.AbandonCrossThread();
  thread.FollowLog(0);
}

}  // namespace

Collector::Collector(FrameCounter& frames, ThreadNames thread_names)
    : frames_(frames), impl_(count::FrameCounterImpl::Of(frames)), thread_names_(thread_names) {
  Threads();  // Made here rather than by a thread's first task, which a fork may interrupt.
}

inline OpenTasks* Collector::ThisThread() noexcept {
  OpenTasks* const tasks = t_tasks;
  return tasks != nullptr ? tasks : SetUpThread();
}

[[gnu::noinline]] OpenTasks* Collector::SetUpThread() {
  if (t_exiting) return nullptr;
  thread_local TasksOwner owner;
  const int tid = sys::kernel().gettid();
  owner.tasks = std::make_shared<OpenTasks>(tid);
  if (thread_names_ == ThreadNames::kCollector) owner.tasks->Rename(tid == sys::kernel().getpid() ? "main" : "threads");
  Threads().Add(owner.tasks);
  return t_tasks = owner.tasks.get();
}

void Collector::EndThread(OpenTasks& tasks) {
  Collector* const collector = tasks.collector();
  if (collector == nullptr) return;
  const OpenTasks::Work work(tasks, __builtin_frame_address(0));
  if (collector->ended_.load(std::memory_order_seq_cst)) return;  // Pairs with Stop.
  Count(collector->uncounted_.unended, tasks.CountZones());
  tasks.Forget();
}

// Returns true in a signal handler that has interrupted the collector on this thread: it must count nothing. If such a
// handler has jumped away, ends what is open on the thread, and returns false.
[[gnu::noinline]] bool Collector::IsInHandler(OpenTasks& tasks, const void* frame) noexcept {
  if (!tasks.HasJumped(frame) || IsOnSignalStack()) return true;
  const OpenTasks::Work work(tasks, frame);
  if (ended_.load(std::memory_order_seq_cst)) return false;  // Pairs with Stop.
  EndJump(tasks);
  return false;
}

// Ends what was open on the calling thread when a handler jumped. The handler may have interrupted the FrameCounter,
// too, which then takes the thread for one in a handler, and has a zone without a valid begin.
void Collector::EndJump(OpenTasks& tasks) noexcept {
  Count(uncounted_.jumped, 1 + (tasks.collector() == this ? tasks.CountZones() : 0));
  if (tasks.collector() == this) tasks.Forget();
  auto* const thread = static_cast<count::FrameThread*>(count::FindBinding(impl_.get()));
  if (thread != nullptr) AbandonZones(*thread);
}

// Returns why a task is not counted that has found the FrameCounter disabled.
std::atomic<uint64_t>& Collector::WhyDisabled() {
  std::atomic_thread_fence(std::memory_order_acquire);  // Pairs with the store of FrameCounter::SetEnabled.
  return table_taken_.load(std::memory_order_relaxed) ? uncounted_.late : uncounted_.paused;
}

void Collector::Begin(const Domain* domain, OpenKind kind, const Id& id, KeyKind key_kind, const void* key) noexcept {
  OpenTasks* const tasks = ThisThread();
  if (tasks == nullptr) [[unlikely]]
    return Count(uncounted_.refused);
  const void* const frame = __builtin_frame_address(0);
  if (tasks->at_work() && IsInHandler(*tasks, frame)) [[unlikely]]
    return Count(uncounted_.in_handler);
  const OpenTasks::Work work(*tasks, frame);
  if (stopping_.load(std::memory_order_seq_cst)) [[unlikely]]  // Pairs with Stop.
    return BeginTooLate(*tasks, domain, kind, id);
  tasks->Follow(this);
  OpenTasks::Entry* const entry = tasks->Push(domain, kind, id);
  if (entry == nullptr) [[unlikely]]
    return Count(uncounted_.too_deep);
  if (paused_.load(std::memory_order_relaxed)) [[unlikely]]
    return Count(uncounted_.paused);
  if (!frames_.enabled()) [[unlikely]]
    return Count(WhyDisabled());
  BeginWithZone(*tasks, *entry, key_kind, key);
}

// Adds an entry without a zone while Stop waits. Without it, the end of this task would end a task around it.
void Collector::BeginTooLate(OpenTasks& tasks, const Domain* domain, OpenKind kind, const Id& id) noexcept {
  if (ended_.load(std::memory_order_seq_cst)) return;  // Pairs with Stop.
  tasks.Follow(this);
  tasks.Push(domain, kind, id);
}

inline void Collector::BeginWithZone(OpenTasks& tasks, OpenTasks::Entry& entry, KeyKind key_kind,
                                     const void* key) noexcept {
  if (tasks.has_to_attach()) [[unlikely]]
    tasks.Attach(frames_);
  const void* const address = key_kind == KeyKind::kFrame ? &kFrameKey : key;
  const char* name = zones_.Find(entry.domain, address);
  if (name == nullptr) [[unlikely]]
    name = Define(entry.domain, key_kind, address);
  const FrameCounter::Zone* const zone = tasks.Enter(entry, frames_, ZoneId{name});
  if (!count::FrameCounterImpl::IsEntered(*zone)) [[unlikely]]
    Count(frames_.enabled() ? uncounted_.refused : WhyDisabled());
}

// Beyond ZoneTable::kMaxZones names each begin comes here: it is slower, and counted all the same.
[[gnu::noinline]] const char* Collector::Define(const Domain* domain, KeyKind key_kind, const void* key) {
  const ZoneId zone = frames_.DefineZone(NameOf(domain, key_kind, key));
  if (zone.name != nullptr) zones_.Add(domain, key, zone.name);
  return zone.name;
}

void Collector::End(const Domain* domain, OpenKind kind, const Id& id) noexcept {
  OpenTasks* const tasks = t_tasks;
  if (tasks == nullptr) [[unlikely]] {
    if (!t_exiting) Count(uncounted_.stray_ends);
    return;  // If the thread is exiting, the begin was counted, as refused or as unended.
  }
  const void* const frame = __builtin_frame_address(0);
  if (tasks->at_work() && IsInHandler(*tasks, frame)) [[unlikely]]
    return;  // The begin, in the same handler, was counted as in_handler.
  const OpenTasks::Work work(*tasks, frame);
  if (ended_.load(std::memory_order_seq_cst)) [[unlikely]]  // Pairs with Stop.
    return;
  const uint32_t count = tasks->collector() == this ? tasks->CountTo(domain, kind, id) : 0;
  if (count == 0) [[unlikely]]
    return Count(uncounted_.stray_ends);
  if (count > 1) [[unlikely]]
    Count(uncounted_.cut, count - 1);
  tasks->Pop(count);
}

// Does not look at frames_, which may be gone.
bool Collector::IsTiming() {
  if (!impl_->MayCount() || stopping_.load(std::memory_order_relaxed)) return false;  // Or in a forked child.
  if (!paused_.load(std::memory_order_relaxed)) return true;
  Count(uncounted_.paused);
  return false;
}

void Collector::BeginTimed(const Domain* domain, const Id& id, const StringHandle* name) {
  if (IsTiming()) {
    timed_.Begin(domain, id, NameOf(domain, KeyKind::kHandle, name), sys::ClockNs(CLOCK_MONOTONIC));
  } else if (impl_->MayCount() && !stopping_.load(std::memory_order_relaxed)) {
    timed_.BeginUntimed(domain, id);
  }
}

void Collector::EndTimed(const Domain* domain, const Id& id) {
  if (!impl_->MayCount() || stopping_.load(std::memory_order_relaxed)) return;
  timed_.End(domain, id, sys::ClockNs(CLOCK_MONOTONIC));
}

void Collector::Submit(const Domain* domain, Timestamp begin, Timestamp end) {
  if (!IsTiming()) return;
  timed_.Submit(NameOf(domain, KeyKind::kFrame, nullptr), begin, end, sys::ClockNs(CLOCK_MONOTONIC));
}

void Collector::NameThread(const char* name) {
  OpenTasks* const tasks = ThisThread();
  const void* const frame = __builtin_frame_address(0);
  if (tasks == nullptr || name == nullptr || (tasks->at_work() && IsInHandler(*tasks, frame))) return;
  const OpenTasks::Work work(*tasks, frame);
  if (thread_names_ == ThreadNames::kCollector) return tasks->Rename(name);
  if (!stopping_.load(std::memory_order_seq_cst)) impl_->AttachNamed(name);  // Pairs with Stop.
}

void Collector::Stop(uint64_t give_up_after_ns) {
  stopping_.store(true, std::memory_order_seq_cst);  // Pairs with the loads after OpenTasks::Work, as ended_ below.
  if (!impl_->MayCount()) return ended_.store(true, std::memory_order_relaxed);
  if (t_tasks != nullptr) {
    const bool has_jumped = t_tasks->at_work();  // No handler calls Stop.
    const OpenTasks::Work work(*t_tasks, __builtin_frame_address(0));
    if (has_jumped) EndJump(*t_tasks);
    GiveUp(*t_tasks);  // On its own thread: with counts.
  }
  const std::vector<std::shared_ptr<OpenTasks>> threads = Threads().All();
  const auto is_open = [this](const std::shared_ptr<OpenTasks>& tasks) {
    return tasks->collector() == this && tasks->zones() > 0;
  };
  constexpr int kMaxWaitMs = 100;
  for (int waited = 0; waited < kMaxWaitMs && std::any_of(threads.begin(), threads.end(), is_open); ++waited) {
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    sys::kernel().nanosleep(&millisecond);
  }
  ended_.store(true, std::memory_order_seq_cst);
  const std::vector<const OpenTasks*> jumped = WaitUntilOutside(threads, give_up_after_ns);
  for (const std::shared_ptr<OpenTasks>& tasks : threads) {
    if (std::ranges::find(jumped, tasks.get()) == jumped.end()) {
      GiveUp(*tasks);
    } else if (tasks->collector() == this) {  // Its entries stay its own, and it looks at them no more.
      Count(uncounted_.jumped);
      Count(uncounted_.unended, tasks->zones());
    }
  }
}

// Ends what is open. On another thread than its own, zones have no counts then.
void Collector::GiveUp(OpenTasks& tasks) {
  if (tasks.collector() == this) Count(uncounted_.unended, tasks.PopAll());
}

}  // namespace perfkit::itt
