// What a thread has to do with an instance (a FrameCounter, a ThreadSlots): found in one comparison, undone at exit.
//
// A thread remembers the instance that it used last in two words of initial-exec thread-local storage, and all others
// in a list. The list shares ownership of each instance's shell: the address of a shell that any living thread
// remembers is never used again, so a comparison of addresses is enough, and either may end first.
#pragma once

#include <atomic>
#include <memory>

namespace perfkit::count {

// The part of an instance that outlives it while threads remember it.
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

struct BindingCache {
  const Bindable* instance;
  void* state;
};
extern constinit thread_local BindingCache binding_cache __attribute__((tls_model("initial-exec")));

// Slow half of FindBinding: looks through the list.
void* FindBindingSlow(const Bindable* instance) noexcept;

// What the calling thread bound to `instance`; nullptr when it has not, or is about to exit.
inline void* FindBinding(const Bindable* instance) noexcept {
  return binding_cache.instance == instance ? binding_cache.state : FindBindingSlow(instance);
}

// True if the calling thread is bound to nullptr: `instance` refused it. Only after FindBinding returned nullptr.
inline bool WasRefused(const Bindable* instance) noexcept { return binding_cache.instance == instance; }

// Called when the thread exits or unbinds, unless the instance was closed first.
using ExitFunction = void (*)(Bindable& instance, void* state);

// Binds `state` for the calling thread; nullptr, without an `at_exit`, until it is bound to more. False when the thread
// is exiting: what runs in the destructors of its other thread-local objects is not counted. Allocates.
bool Bind(std::shared_ptr<Bindable> instance, void* state, ExitFunction at_exit);
// Undoes it early, calling `at_exit` if `run_exit`.
void Unbind(const Bindable* instance, bool run_exit);

}  // namespace perfkit::count
