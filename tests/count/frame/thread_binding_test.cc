// Threads and instances that end in every order.
#include "src/count/frame/thread_binding.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace perfkit::count
