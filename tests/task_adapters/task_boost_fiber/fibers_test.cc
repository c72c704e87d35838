// Fibers of Boost as tasks, on one thread and on several.
#include <algorithm>
#include <atomic>
#include <boost/fiber/all.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "perfkit/task_boost_fiber.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

namespace fibers = boost::fibers;

constexpr size_t kParts = 6;

// Pages that one fiber touches between its switches.
struct FiberPages {
  explicit FiberPages(uint32_t seed) : random(seed), fresh(2 * kParts * 8) {}

  void TouchSome() {
    const size_t pages = random() % 8;
    fresh.Touch(touched, pages);
    touched += pages;
  }

  std::minstd_rand random;
  testing::FreshPages fresh;
  size_t touched = 0;
  TaskCounter::Task task{};
};

// What the threads have counted by the kernel's own numbers: at least, and at most.
struct ThreadFaults {
  std::atomic<uint64_t> least{0}, most{0};
};

uint64_t FaultsByUsage() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

// Attaches the calling thread, and adds its faults: from then until the end of the scope at least, until the end of the
// thread at most, because Boost's scheduler switches fibers once more when the thread's objects are destroyed.
class CountedThread {
 public:
  CountedThread(TaskCounter& tasks, ThreadFaults& faults) : tasks_(tasks), faults_(faults) {
    // Constructed before the thread's scheduler, so that it is destroyed after it.
    thread_local UntilExit until_exit;
    until_exit = {&faults.most, FaultsByUsage()};
    tasks.AttachThread();
    begin_ = FaultsByUsage();
  }
  ~CountedThread() {
    TaskCounter::Task last = tasks_.Create({"end"});
    const uint64_t end = FaultsByUsage();
    { const TaskScope scope(last); }  // A switch: all that came before it is in the sums.
    faults_.least += end - begin_;
  }
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;

 private:
  struct UntilExit {
    std::atomic<uint64_t>* most = nullptr;
    uint64_t before = 0;
    ~UntilExit() { *most += FaultsByUsage() - before; }
  };

  TaskCounter& tasks_;
  ThreadFaults& faults_;
  uint64_t begin_ = 0;
};

void CheckSums(const TaskCounter& tasks, const ThreadFaults& faults) {
  uint64_t sum = tasks.Outside().counts[0].value;
  for (const TaskZoneStats& zone : tasks.zones()) sum += zone.self[0].value;
  CHECK(sum >= faults.least);
  CHECK(sum <= faults.most + (testing::kSanitized ? 100 : 0));
  const TaskStats stats = tasks.Stats();
  CHECK(stats.mismatched + stats.cross_thread + stats.dropped + stats.refused_threads == 0);
}

// What all fibers of a test share.
struct ManyFibers {
  TaskCounter tasks{{.events = {"page-faults", "task-clock"}}};
  std::deque<FiberPages> all;
  std::atomic<size_t> left{0};
  fibers::mutex mutex;
  fibers::condition_variable_any done;
};

// A zone that is open over switches; yields, and waits for a lock that other fibers hold while they yield.
void RunFiber(ManyFibers& shared, FiberPages& own) {
  {
    const FiberTask counted(own.task);
    for (size_t part = 0; part < kParts; ++part) {
      PERFKIT_TASK_ZONE(shared.tasks, "part");
      own.TouchSome();
      if (own.random() % 4 == 0) {
        const std::lock_guard<fibers::mutex> lock(shared.mutex);
        boost::this_fiber::yield();
      } else {
        boost::this_fiber::yield();
      }
      own.TouchSome();
    }
  }
  const std::lock_guard<fibers::mutex> lock(shared.mutex);
  if (--shared.left == 0) shared.done.notify_all();
}

void WaitForAll(ManyFibers& shared) {
  std::unique_lock<fibers::mutex> lock(shared.mutex);
  shared.done.wait(lock, [&shared] { return shared.left == 0; });
}

void CheckFibers(ManyFibers& shared, const ThreadFaults& faults) {
  uint64_t counted = 0, touched = 0;
  size_t too_few = 0;
  for (const FiberPages& fiber : shared.all) {
    const uint64_t of_fiber = fiber.task.totals().counts[0].value;
    too_few += of_fiber < fiber.touched ? 1 : 0;
    counted += of_fiber;
    touched += fiber.touched;
  }
  CHECK(too_few == 0);
  CHECK(testing::AreFaultsOf(counted, touched, faults.most - touched));
  const std::vector<TaskZoneStats> zones = shared.tasks.zones();
  REQUIRE(zones.size() >= 2);
  CHECK(zones[0].name == "fiber");
  CHECK(zones[1].calls == shared.all.size() * kParts);
  CheckSums(shared.tasks, faults);
}

// Starts fibers on each of several threads; any of the threads may run any part of a fiber.
void RunOnThreads(size_t fibers_a_thread, size_t threads, fibers::launch launch) {
  ManyFibers shared;
  if (!shared.tasks.reason(0).empty()) SKIP_TEST(std::string(shared.tasks.reason(0)));
  for (size_t i = 0; i < fibers_a_thread * threads; ++i) {
    shared.all.emplace_back(static_cast<uint32_t>(i + 1)).task = shared.tasks.Create({"fiber"});
  }
  shared.left = shared.all.size();
  ThreadFaults faults;
  std::vector<std::thread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const CountedThread counted(shared.tasks, faults);
      fibers::use_scheduling_algorithm<CountedAlgorithm<fibers::algo::shared_work>>();
      for (size_t i = t * fibers_a_thread; i < (t + 1) * fibers_a_thread; ++i) {
        FiberPages& own = shared.all[i];
        fibers::fiber(launch, [&shared, &own] { RunFiber(shared, own); }).detach();
      }
      WaitForAll(shared);
    });
  }
  for (std::thread& worker : workers) worker.join();
  CheckFibers(shared, faults);
}

TEST_CASE("task boost fiber: fibers that change threads have exactly their own faults", "[task]") {
  RunOnThreads(60, 4, fibers::launch::post);
}

// A fiber that is launched so runs at once, without its scheduler's pick: its starter has a task of its own.
TEST_CASE("task boost fiber: also those that run at once", "[task]") { RunOnThreads(60, 4, fibers::launch::dispatch); }

TEST_CASE("task boost fiber: 40,000 fibers on 8 threads have exactly their own faults", "[task][.heavy]") {
  RunOnThreads(5'000, 8, fibers::launch::post);
}

// On one thread it is known who runs when.
TEST_CASE("task boost fiber: a fiber that starts another one is suspended meanwhile", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task outer = tasks.Create({"outer"}), inner = tasks.Create({"inner"});
  testing::FreshPages pages(1000);
  ThreadFaults faults;
  std::thread([&] {
    const CountedThread counted(tasks, faults);
    fibers::use_scheduling_algorithm<CountedAlgorithm<fibers::algo::round_robin>>();
    fibers::fiber([&] {
      const FiberTask of_outer(outer);
      pages.Touch(0, 100);
      fibers::fiber started(fibers::launch::dispatch, [&] {
        pages.Touch(100, 30);  // Before its FiberTask: outside of tasks.
        const FiberTask of_inner(inner);
        const FiberTask again(outer);  // Does nothing.
        pages.Touch(130, 200);
        boost::this_fiber::yield();
        pages.Touch(330, 200);
      });
      pages.Touch(530, 50);
      started.join();
    }).join();
    pages.Touch(580, 20);
  }).join();
  const uint64_t others = faults.most - 600;
  CHECK(testing::AreFaultsOf(outer.totals().counts[0].value, 150, others));
  CHECK(testing::AreFaultsOf(inner.totals().counts[0].value, 400, others));
  CHECK(testing::AreFaultsOf(tasks.Outside().counts[0].value, 50, others));
  CHECK(outer.totals().migrations + inner.totals().migrations == 0);
  CheckSums(tasks, faults);
}

// An algorithm with properties of its own, which calls the hooks itself: the fiber of the highest priority runs first.
struct Priority : FiberTaskProperties {
  using FiberTaskProperties::FiberTaskProperties;
  int priority = 0;
};

class ByPriority : public fibers::algo::algorithm_with_properties<Priority> {
 public:
  void awakened(fibers::context* fiber, Priority&) noexcept override {
    OnFiberAwakened(fiber);
    ready_.push_back(fiber);
  }
  fibers::context* pick_next() noexcept override {
    if (ready_.empty()) return nullptr;
    const auto best = std::max_element(ready_.begin(), ready_.end(), [this](fibers::context* a, fibers::context* b) {
      return properties(a).priority < properties(b).priority;
    });
    fibers::context* const next = *best;
    ready_.erase(best);
    OnFiberPicked(next);
    return next;
  }
  bool has_ready_fibers() const noexcept override { return !ready_.empty(); }
  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override { std::this_thread::yield(); }
  void notify() noexcept override {}

 private:
  std::deque<fibers::context*> ready_;
};

TEST_CASE("task boost fiber: an algorithm with properties calls the hooks", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task low = tasks.Create({"low"}), high = tasks.Create({"high"});
  testing::FreshPages pages(1000);
  ThreadFaults faults;
  std::thread([&] {
    const CountedThread counted(tasks, faults);
    fibers::use_scheduling_algorithm<ByPriority>();
    const auto run = [&](TaskCounter::Task& task, size_t first, size_t count) {
      const BasicFiberTask<Priority> running(task);
      pages.Touch(first, count);
      boost::this_fiber::yield();
      pages.Touch(first + count, count);
    };
    fibers::fiber first([&] { run(low, 0, 100); }), second([&] { run(high, 200, 300); });
    first.join();
    second.join();
  }).join();
  const uint64_t others = faults.most - 800;
  CHECK(testing::AreFaultsOf(low.totals().counts[0].value, 200, others));
  CHECK(testing::AreFaultsOf(high.totals().counts[0].value, 600, others));
  CheckSums(tasks, faults);
}

}  // namespace
}  // namespace perfkit
