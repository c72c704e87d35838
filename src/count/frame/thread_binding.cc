// The list of a thread's bindings, whose destructor ends them at the thread's exit. Other thread-local objects may be
// destroyed later, in an unknown order. They find `exiting` set, and nothing bound.
#include "src/count/frame/thread_binding.h"

#include <utility>
#include <vector>

namespace perfkit::count {

constinit thread_local BindingCache binding_cache __attribute__((tls_model("initial-exec"))) = {};

namespace {

struct Binding {
  std::shared_ptr<Bindable> instance;
  void* state;
  ExitFunction at_exit;
};

// Trivially destructible, so it can be read after the list was destroyed.
constinit thread_local bool exiting = false;

struct BindingList {
  std::vector<Binding> bindings;

  ~BindingList() {
    exiting = true;
    binding_cache = {};
    for (Binding& binding : bindings) End(binding);
  }

  static void End(Binding& binding) {
    if (binding.state != nullptr && !binding.instance->closed()) binding.at_exit(*binding.instance, binding.state);
  }
};

BindingList& List() {
  thread_local BindingList list;
  return list;
}

}  // namespace

void* FindBindingSlow(const Bindable* instance) noexcept {
  if (exiting) return nullptr;
  for (const Binding& binding : List().bindings) {
    if (binding.instance.get() != instance) continue;
    binding_cache = {instance, binding.state};
    return binding.state;
  }
  return nullptr;
}

bool Bind(std::shared_ptr<Bindable> instance, void* state, ExitFunction at_exit) {
  if (exiting) return false;
  std::vector<Binding>& bindings = List().bindings;
  // Removes this instance's refusal, which is a binding to nullptr. It is also a good moment to release instances that
  // ended meanwhile.
  std::erase_if(bindings, [&instance](const Binding& binding) {
    return binding.instance->closed() || binding.instance == instance;
  });
  binding_cache = {instance.get(), state};
  bindings.push_back({std::move(instance), state, at_exit});
  return true;
}

void Unbind(const Bindable* instance, bool run_exit) {
  if (exiting) return;
  std::vector<Binding>& bindings = List().bindings;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].instance.get() != instance) continue;
    Binding binding = std::move(bindings[i]);
    bindings.erase(bindings.begin() + static_cast<ptrdiff_t>(i));
    if (binding_cache.instance == instance) binding_cache = {};
    if (run_exit) BindingList::End(binding);
    return;
  }
}

}  // namespace perfkit::count
