// Real fibers: stacks that are switched by hand, in the middle of a zone, to other threads.
#include <ucontext.h>

#include <cstring>
#include <memory>

#include "tests/count/task/random_tasks.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

constexpr size_t kFiberPages = 8;  // Touched at once, at most; twice between two switches.

// What a fiber finds on the thread that runs it now.
struct FiberWorker {
  ucontext_t scheduler{};
  testing::FreshPages pages{2 * kFiberPages};
  size_t next = 0;  // The first page that was not touched in this part.
};

struct Fiber : RandomTask {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  FiberWorker* worker = nullptr;  // Written before each switch to the fiber.
  TaskCounter* tasks = nullptr;
  uint32_t seed = 1;
};

constexpr size_t kStackBytes = 32 << 10;

// Touches pages of the thread that it runs on. Not inlined: it changes the thread between two calls.
[[gnu::noinline]] void TouchAsFiber(Fiber& fiber) {
  fiber.seed = fiber.seed * 48271u % 2147483647u;
  const size_t touch = fiber.seed % kFiberPages;
  fiber.worker->pages.Touch(fiber.worker->next, touch);
  fiber.worker->next += touch;
  fiber.touched += touch;
}

[[gnu::noinline]] void YieldFiber(Fiber& fiber) { swapcontext(&fiber.context, &fiber.worker->scheduler); }

// A job: parts with a zone that stays open over a switch.
void FiberMain(unsigned high, unsigned low) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  while (fiber.parts_left != 0) {
    PERFKIT_TASK_ZONE(*fiber.tasks, "part");
    TouchAsFiber(fiber);
    YieldFiber(fiber);
    TouchAsFiber(fiber);
    --fiber.parts_left;
  }
  for (;;) YieldFiber(fiber);  // Done: its stack is not left.
}

void StartFiber(Fiber& fiber, TaskCounter& tasks, uint64_t parts, uint32_t seed) {
  fiber.tasks = &tasks;
  fiber.task = tasks.Create({"fiber"});
  fiber.parts_left = parts;
  fiber.seed = seed;
  fiber.stack = std::make_unique<char[]>(kStackBytes);  // Touched here, so that the fiber does not.
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(&fiber);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(FiberMain), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

// One thread: runs random fibers of the queue until all are done.
void RunFibers(TaskQueue& queue, std::atomic<size_t>& left, TouchedPages& pages, unsigned seed) {
  FiberWorker worker;
  std::minstd_rand random(seed);
  const testing::OtherFaults of_thread;
  uint64_t touched = 0;
  while (left != 0) {
    RandomTask* const taken = queue.Take(random);
    if (taken == nullptr) continue;
    auto& fiber = static_cast<Fiber&>(*taken);
    const uint64_t before = taken->touched;
    worker.pages.Forget();
    worker.next = 0;
    fiber.worker = &worker;
    taken->task.Resume();
    swapcontext(&worker.scheduler, &fiber.context);
    taken->task.Suspend();
    touched += taken->touched - before;
    if (taken->parts_left == 0) {
      --left;
    } else {
      queue.Put(taken);
    }
  }
  pages.in_tasks += touched;
  pages.others += of_thread.Beside(touched);
}

// Runs `count` fibers, `at_once` at a time.
void RunManyFibers(size_t count, size_t at_once, size_t threads) {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not follow stacks that are switched by hand");
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  uint64_t runs = 0;
  for (size_t done = 0; done < count; done += at_once) {
    std::deque<Fiber> fibers(at_once);
    TaskQueue queue;
    for (size_t i = 0; i < at_once; ++i) {
      StartFiber(fibers[i], tasks, 4, static_cast<uint32_t>(done + i + 1));
      queue.Put(&fibers[i]);
    }
    std::atomic<size_t> left{at_once};
    TouchedPages pages;
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] { RunFibers(queue, left, pages, static_cast<unsigned>(done + t + 1)); });
    }
    for (std::thread& worker : workers) worker.join();
    std::deque<RandomTask> ended;
    for (Fiber& fiber : fibers) ended.push_back(std::move(fiber));
    CheckFaults(ended, pages);
    for (const RandomTask& task : ended) runs += task.task.totals().runs;
  }
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 2);
  CHECK(zones[0].ended == count);
  CHECK(zones[0].calls == runs);
  CHECK(zones[0].quantiles[0].count == count);
  CHECK(zones[1].calls == 4 * count);
  const TaskStats stats = tasks.Stats();
  CHECK(stats.cross_thread + stats.mismatched + stats.dropped == 0);
}

TEST_CASE("tasks: fibers that change threads have exactly their own faults", "[task]") { RunManyFibers(600, 300, 4); }

TEST_CASE("tasks: 100,000 fibers that change threads have exactly their own faults", "[task][.heavy]") {
  RunManyFibers(100'000, 2'000, 8);
}

}  // namespace
}  // namespace perfkit
