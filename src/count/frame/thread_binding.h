// A thread's state for an instance (a FrameCounter, a ThreadSlots): usually found by one comparison, released when the
// thread exits.
//
// One word of initial-exec thread-local storage refers to the binding that the thread used last; a list has all of
// them. It is one word because a signal handler may use another instance at any instruction of FindBinding: two words
// could be those of two instances. The list shares ownership of each instance's Bindable. So no other instance gets its
// address while the list has it, and comparing addresses is enough. The thread may end before the instance or after it.
#pragma once

#include <atomic>
#include <memory>

namespace perfkit::count {

// The part of an instance that lives until the last thread has removed it from its list.
class Bindable {
 public:
  bool closed() const { return closed_.load(std::memory_order_acquire); }

 protected:
  ~Bindable() = default;
  // Release: pairs with the acquire in closed().
  void MarkClosed() { closed_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> closed_{false};
};

// The part of a binding that FindBinding reads. `state` changes only if a refusal becomes a binding.
struct CachedBinding {
  const Bindable* instance = nullptr;
  void* state = nullptr;
};
// Never nullptr. Relaxed accesses are enough, because only handlers on the same thread access it, too.
extern constinit thread_local std::atomic<const CachedBinding*> binding_cache
    __attribute__((tls_model("initial-exec")));

// Slow half of FindBinding: looks through the list.
void* FindBindingSlow(const Bindable* instance) noexcept;

// Returns what the calling thread has bound to `instance`; nullptr if it has bound nothing, or is exiting.
inline void* FindBinding(const Bindable* instance) noexcept {
  const CachedBinding* const cached = binding_cache.load(std::memory_order_relaxed);
  return cached->instance == instance ? cached->state : FindBindingSlow(instance);
}
// As above, but never searches the list: also nullptr if the thread has used another instance last.
inline void* FindLastBinding(const Bindable* instance) noexcept {
  const CachedBinding* const cached = binding_cache.load(std::memory_order_relaxed);
  return cached->instance == instance ? cached->state : nullptr;
}

// Returns true if nullptr is bound to `instance`, which means that it refused the calling thread. Requires that
// FindBinding(instance) has just returned nullptr. A signal handler that uses another instance in between makes it
// false: then the thread tries again in vain, and is counted as refused again.
inline bool WasRefused(const Bindable* instance) noexcept {
  return binding_cache.load(std::memory_order_relaxed)->instance == instance;
}

// Called when the thread exits, and by Unbind if `run_exit`. Not called if the instance was closed before, or if
// `state` is nullptr.
using ExitFunction = void (*)(Bindable& instance, void* state);

// Binds `state` to `instance` on the calling thread, in place of what was bound before; nullptr means that `instance`
// refuses the thread. Returns false if the thread is exiting: what other thread-local objects do in their destructors
// is not counted. Allocates.
bool Bind(std::shared_ptr<Bindable> instance, void* state, ExitFunction at_exit);
// Removes the binding before the thread exits. Calls its `at_exit` if `run_exit`.
void Unbind(const Bindable* instance, bool run_exit);

}  // namespace perfkit::count
