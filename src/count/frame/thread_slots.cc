// ThreadSlots: events on every thread, and one slot for each. Threads publish to their slots, any thread adds the slots
// up, and neither waits for the other (slot_table.h). The numbers of a thread that ends stay in its slot. Only
// attaching and ending take the lock.
#include "perfkit/thread_slots.h"

#include <mutex>
#include <utility>

#include "src/count/frame/event_plan.h"
#include "src/count/frame/slot_sum.h"
#include "src/count/frame/slot_writer.h"
#include "src/count/frame/thread_binding.h"
#include "src/sys/fork_registry.h"

namespace perfkit {
namespace count {
namespace {

// The state of one thread.
struct SlotThread {
  std::optional<CounterSet> set;
  SlotWriter writer;
  Snapshot now{};

  void Read() {
    if (set) {
      set->Read(now);
    } else {
      now.missing = ~0u;
    }
  }
};

}  // namespace

class ThreadSlotsImpl : public Bindable {
 public:
  ThreadSlotsImpl(std::vector<EventSpec> events, const ThreadSlots::Options& options)
      : plan(events, options.only_path) {
    plan.OpenFirst();
    table = std::make_shared<SlotTable>(SlotWriter::WordsFor(plan.size(), plan.multiplexable()), options.max_threads);
  }

  SlotThread* Attach(const std::shared_ptr<ThreadSlotsImpl>& self) {
    if (in_forked_child_) return nullptr;
    const sys::ForkBlocker fork_blocker;
    auto thread = std::make_unique<SlotThread>();
    if (!thread->writer.Claim(table, plan.size(), plan.multiplexable())) return Refuse(self);
    thread->set = plan.OpenNext();
    thread->Read();
    thread->writer.StartAt(thread->now);
    thread->writer.Publish(thread->now);
    SlotThread* const state = thread.get();
    if (!Bind(self, state, [](Bindable& impl, void* ended) { static_cast<ThreadSlotsImpl&>(impl).End(ended); })) {
      thread->writer.Release();
      return nullptr;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    threads.push_back(std::move(thread));
    state->Read();  // Again, after all that allocates.
    state->writer.StartAt(state->now);
    state->writer.Publish(state->now);
    return state;
  }

  // Called on the thread that ends. Closes its events; its slot keeps the numbers.
  void End(void* state) {
    if (in_forked_child_) return;
    const sys::ForkBlocker fork_blocker;
    const std::lock_guard<std::mutex> lock(mutex);
    if (closed()) return;
    std::erase_if(threads, [state](const std::unique_ptr<SlotThread>& thread) {
      if (thread.get() != state) return false;
      thread->Read();
      thread->writer.Publish(thread->now);
      thread->writer.Release();
      return true;
    });
  }

  void Close() {
    const auto lock = in_forked_child_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex);
    MarkClosed();
    threads.clear();
  }

  bool in_forked_child() const { return in_forked_child_; }

  EventPlan plan;
  std::shared_ptr<SlotTable> table;
  std::atomic<uint32_t> refused{0};

 private:
  SlotThread* Refuse(const std::shared_ptr<ThreadSlotsImpl>& self) {
    // Counted once for each thread, however often it tries.
    if (FindBinding(this) == nullptr && WasRefused(this)) return nullptr;
    Bind(self, nullptr, nullptr);
    refused.fetch_add(1, std::memory_order_relaxed);  // statistics: no order needed
    return nullptr;
  }

  std::mutex mutex;
  std::vector<std::unique_ptr<SlotThread>> threads;  // changes under a ForkBlocker: a forked child destroys its copy
  bool in_forked_child_ = false;                     // then another thread of the parent may hold the mutex forever
  sys::ForkListener fork_listener{[](void* self) { static_cast<ThreadSlotsImpl*>(self)->in_forked_child_ = true; },
                                  this};  // Declared last: unregistered first.
};

}  // namespace count

ThreadSlots::ThreadSlots(EventSpecs events, const Options& options)
    : impl_(std::make_shared<count::ThreadSlotsImpl>(std::move(events), options)) {}

ThreadSlots::~ThreadSlots() {
  impl_->Close();
  count::Unbind(impl_.get(), false);
}

bool ThreadSlots::Attach() {
  // A forked child has a copy of the parent's binding, but its events are closed.
  if (impl_->in_forked_child()) return false;
  return count::FindBinding(impl_.get()) != nullptr || impl_->Attach(impl_) != nullptr;
}

void ThreadSlots::Publish() noexcept {
  auto* thread = static_cast<count::SlotThread*>(count::FindBinding(impl_.get()));
  if (thread == nullptr && !(count::WasRefused(impl_.get()) && impl_->table->full())) [[unlikely]]
    thread = impl_->Attach(impl_);
  if (thread == nullptr) return;
  thread->Read();
  thread->writer.Publish(thread->now);
}

void ThreadSlots::Total(SlotTotals& out) const noexcept { count::SumSlots(*impl_->table, impl_->plan, out); }

Count ThreadSlots::count(const SlotTotals& totals, size_t i) const {
  if (i >= size() || (totals.missing >> i & 1) != 0) return {};
  const bool multiplexable = (impl_->plan.multiplexable() >> i & 1) != 0;
  return MakeCount(totals.values[i], multiplexable ? totals.times[i] : Snapshot::Times{}, impl_->plan.fixed_flags(i));
}

size_t ThreadSlots::size() const { return impl_->plan.size(); }
std::string_view ThreadSlots::reason(size_t i) const { return i < size() ? impl_->plan.reason(i) : ""; }
uint32_t ThreadSlots::refused() const { return impl_->refused.load(std::memory_order_relaxed); }

}  // namespace perfkit
