// The list of a thread's bindings, which a thread-local object ends at the thread's exit. Other thread-local objects
// may be destroyed later, in an unknown order. They find `exiting` set, and nothing bound.
//
// A signal handler may look through the list at any time. So a binding is complete before one store adds it, one store
// removes it, and it is freed once neither the list nor the cache refers to it.
#include "src/count/frame/thread_binding.h"

#include <utility>

namespace perfkit::count {

namespace {

constinit const CachedBinding kNoBinding;

struct Binding : CachedBinding {
  std::shared_ptr<Bindable> owned;
  ExitFunction at_exit = nullptr;
  std::atomic<Binding*> next{nullptr};
};

using Link = std::atomic<Binding*>;

// Trivially destructible, so both can be read after the list was destroyed.
constinit thread_local bool exiting = false;
constinit thread_local Link first_binding{nullptr};

void ForgetInCache(const CachedBinding* binding) {
  if (binding_cache.load(std::memory_order_relaxed) == binding) {
    binding_cache.store(&kNoBinding, std::memory_order_relaxed);
  }
}

// Returns the link to the binding of `instance`, or the last link, which is nullptr.
Link* LinkTo(const Bindable* instance) {
  Link* link = &first_binding;
  for (Binding* binding = *link; binding != nullptr && binding->instance != instance; binding = *link) {
    link = &binding->next;
  }
  return link;
}

// The first thing that is changed is the list, so that a handler cannot put the binding back into the cache.
std::unique_ptr<Binding> Remove(Link& link) {
  std::unique_ptr<Binding> binding(link.load(std::memory_order_relaxed));
  link.store(binding->next.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ForgetInCache(binding.get());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return binding;
}

void RemoveClosed() {
  for (Link* link = &first_binding; link->load(std::memory_order_relaxed) != nullptr;) {
    Binding& binding = *link->load(std::memory_order_relaxed);
    if (binding.owned->closed()) {
      Remove(*link);
    } else {
      link = &binding.next;
    }
  }
}

void End(const Binding& binding) {
  if (binding.state != nullptr && !binding.owned->closed()) binding.at_exit(*binding.owned, binding.state);
}

// Ends the thread's bindings with the thread.
struct BindingsOwner {
  ~BindingsOwner() {
    exiting = true;
    binding_cache.store(&kNoBinding, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    while (first_binding.load(std::memory_order_relaxed) != nullptr) End(*Remove(first_binding));
  }
};

}  // namespace

constinit thread_local std::atomic<const CachedBinding*> binding_cache __attribute__((tls_model("initial-exec"))) =
    &kNoBinding;

void* FindBindingSlow(const Bindable* instance) noexcept {
  if (exiting) return nullptr;
  const Binding* const binding = LinkTo(instance)->load(std::memory_order_relaxed);
  if (binding == nullptr) return nullptr;
  binding_cache.store(binding, std::memory_order_relaxed);
  return binding->state;
}

bool Bind(std::shared_ptr<Bindable> instance, void* state, ExitFunction at_exit) {
  if (exiting) return false;
  thread_local BindingsOwner owner;
  (void)owner;
  RemoveClosed();  // A good moment to release instances that ended meanwhile.
  Link* const link = LinkTo(instance.get());
  Binding* binding = link->load(std::memory_order_relaxed);
  if (binding != nullptr) {  // This instance's refusal.
    binding->at_exit = at_exit;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    binding->state = state;
  } else {
    binding = new Binding;
    binding->instance = instance.get();
    binding->state = state;
    binding->owned = std::move(instance);
    binding->at_exit = at_exit;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    link->store(binding, std::memory_order_relaxed);
  }
  binding_cache.store(binding, std::memory_order_relaxed);
  return true;
}

void Unbind(const Bindable* instance, bool run_exit) {
  if (exiting) return;
  Link* const link = LinkTo(instance);
  if (link->load(std::memory_order_relaxed) == nullptr) return;
  const std::unique_ptr<Binding> binding = Remove(*link);
  if (run_exit) End(*binding);
}

}  // namespace perfkit::count
