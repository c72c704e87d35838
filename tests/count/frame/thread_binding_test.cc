// Threads and instances that end in every order.
#include "src/count/frame/thread_binding.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/single_step.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

struct Instance : Bindable {
  ~Instance() { ++*destroyed; }
  explicit Instance(int* destroyed) : destroyed(destroyed) {}
  void Close() { MarkClosed(); }
  int* destroyed;
  std::vector<void*> exits;
};

void Note(Bindable& instance, void* state) { static_cast<Instance&>(instance).exits.push_back(state); }

TEST_CASE("binding: found by its thread only, told at its exit") {
  int destroyed = 0, state = 0;
  auto instance = std::make_shared<Instance>(&destroyed);
  CHECK(FindBinding(instance.get()) == nullptr);
  std::thread([&] {
    REQUIRE(Bind(instance, &state, Note));
    CHECK(FindBinding(instance.get()) == &state);
  }).join();
  CHECK(FindBinding(instance.get()) == nullptr);
  CHECK(instance->exits == std::vector<void*>{&state});
  CHECK(instance.use_count() == 1);
}

TEST_CASE("binding: several instances on one thread") {
  int destroyed = 0;
  std::thread([&] {
    std::vector<std::shared_ptr<Instance>> instances;
    std::vector<int> states(5);
    for (int& state : states) {
      instances.push_back(std::make_shared<Instance>(&destroyed));
      Bind(instances.back(), &state, Note);
    }
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < 5; ++i) REQUIRE(FindBinding(instances[i].get()) == &states[i]);
    }
    Unbind(instances[2].get(), true);
    CHECK(instances[2]->exits.size() == 1);
    CHECK(FindBinding(instances[2].get()) == nullptr);
    CHECK(FindBinding(instances[3].get()) == &states[3]);
  }).join();
  CHECK(destroyed == 5);
}

TEST_CASE("binding: the instance may end first, and its address is not used again meanwhile") {
  int destroyed = 0, state = 0;
  std::thread([&] {
    auto instance = std::make_shared<Instance>(&destroyed);
    const Bindable* const address = instance.get();
    Bind(instance, &state, Note);
    instance->Close();
    instance.reset();
    CHECK(destroyed == 0);  // this thread remembers the address, so it lives
    auto next = std::make_shared<Instance>(&destroyed);
    CHECK(static_cast<const Bindable*>(next.get()) != address);
    CHECK(FindBinding(next.get()) == nullptr);
    Bind(next, &state, Note);
    CHECK(destroyed == 1);  // forgotten with the next binding
    CHECK(next->exits.empty());
  }).join();
  CHECK(destroyed == 2);
}

TEST_CASE("binding: a thread that is exiting is bound to nothing") {
  static std::shared_ptr<Instance>* shared = nullptr;
  static bool bound_late = true;
  struct Late {
    ~Late() { bound_late = Bind(*shared, &bound_late, Note) || FindBinding(shared->get()) != nullptr; }
  };
  int destroyed = 0, state = 0;
  auto instance = std::make_shared<Instance>(&destroyed);
  shared = &instance;
  std::thread([&] {
    thread_local Late late;  // constructed before the list, so destroyed after it
    (void)&late;
    Bind(instance, &state, Note);
  }).join();
  CHECK(!bound_late);
  CHECK(instance->exits.size() == 1);
}

// Two bindings of this thread, for a handler that runs after each instruction.
struct SteppedBinding {
  const Bindable* instance = nullptr;
  void* state = nullptr;
  [[gnu::noinline]] bool IsFound() const {
    const void* const last = FindLastBinding(instance);
    return (last == state || last == nullptr) && FindBinding(instance) == state;
  }
};
SteppedBinding g_stepped[2];
volatile int g_used_by_handler = 0;
volatile int g_found_wrong = 0;

bool UseBinding() {
  if (!g_stepped[g_used_by_handler].IsFound()) g_found_wrong = g_found_wrong + 1;
  return true;
}

TEST_CASE("binding: a handler that uses another instance, at any instruction, changes no result", "[signals]") {
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  int destroyed = 0;
  int states[2] = {};
  std::shared_ptr<Instance> instances[2];
  for (int i = 0; i < 2; ++i) {
    instances[i] = std::make_shared<Instance>(&destroyed);
    REQUIRE(Bind(instances[i], &states[i], Note));
    g_stepped[i] = {instances[i].get(), &states[i]};
  }
  {
    const testing::SingleSteps steps(UseBinding);
    for (int i = 0; i < 2; ++i) {
      g_used_by_handler = i;
      for (int used = 0; used < 2; ++used) {
        bool found = false;
        testing::SingleSteps::Over([&] { found = g_stepped[used].IsFound(); });
        CHECK(found);
      }
    }
  }
  CHECK(g_found_wrong == 0);
  for (const std::shared_ptr<Instance>& instance : instances) Unbind(instance.get(), false);
}

}  // namespace
}  // namespace perfkit::count
