// Fibers that are switched by hand and run on two threads: what each kind has cost, and how long it waited.
#include <ucontext.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "perfkit/task_counter.h"

namespace {

// A job with a stack of its own, and its account.
struct Fiber {
  perfkit::TaskCounter::Task task;
  ucontext_t context{};
  ucontext_t* scheduler = nullptr;  // Of the thread that runs it now.
  perfkit::TaskCounter* tasks = nullptr;
  std::unique_ptr<char[]> stack;
  size_t megabytes = 0;
  bool done = false;
};

constexpr size_t kStackBytes = 64 << 10;

void Yield(Fiber& fiber) { swapcontext(&fiber.context, fiber.scheduler); }

// The zone stays open while the fiber waits, and ends on the thread that it then runs on.
void Decompress(Fiber& fiber) {
  PERFKIT_TASK_ZONE(*fiber.tasks, "decompress");
  for (int part = 0; part < 3; ++part) {
    std::vector<char>(fiber.megabytes << 20, 1);
    Yield(fiber);
  }
}

void FiberMain(unsigned high, unsigned low) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
  Decompress(fiber);
  fiber.done = true;
  Yield(fiber);
}

void Start(Fiber& fiber, perfkit::TaskCounter& tasks, const char* name, size_t megabytes) {
  fiber.task = tasks.Create({name});
  fiber.tasks = &tasks;
  fiber.megabytes = megabytes;
  fiber.stack = std::make_unique<char[]>(kStackBytes);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  const auto address = reinterpret_cast<uintptr_t>(&fiber);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(FiberMain), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

// The scheduler's switch: the task is resumed before the fiber runs, and suspended after it.
void RunPart(Fiber& fiber) {
  ucontext_t here{};
  fiber.scheduler = &here;
  const perfkit::TaskScope scope(fiber.task);
  swapcontext(&here, &fiber.context);
}

}  // namespace

int main() {
  perfkit::TaskCounter tasks({.events = {"task-clock", "page-faults"}});
  std::vector<Fiber> fibers(8);
  for (size_t i = 0; i < fibers.size(); ++i)
    Start(fibers[i], tasks, i % 2 == 0 ? "texture" : "mesh", i % 2 == 0 ? 4 : 1);
  // Each round runs one part of each fiber on a thread of its own: fibers that migrate.
  for (int round = 0; round < 4; ++round) {
    std::thread([&fibers] {
      for (Fiber& fiber : fibers) {
        if (!fiber.done) RunPart(fiber);
      }
    }).join();
  }
  fibers.clear();  // Tasks that have ended are in the percentiles.
  fputs(tasks.FormatTasks().c_str(), stdout);
}
