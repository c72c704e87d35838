// Threads and CPUs of targets on the live machine.
#include "src/open/task_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/work.h"

namespace perfkit::open {
namespace {

TEST_CASE("a thread is one place, whatever its number", "[place]") {
  CHECK(*TaskCpusOf(Target::ThisThread()) == std::vector<TaskCpu>{{0, -1}});
  CHECK(*TaskCpusOf(Target::Thread(123)) == std::vector<TaskCpu>{{123, -1}});
}

TEST_CASE("all threads are as many places as threads", "[place][law]") {
  pid_t first = 0;
  std::thread([&] { first = gettid(); }).join();  // a sanitizer starts a thread of its own with our first
  testing::AwaitEnd(first);
  const size_t before = TaskCpusOf(Target::AllThreads())->size();
  std::atomic<bool> stop{false};
  std::thread other([&] { stop.wait(false); });
  CHECK(TaskCpusOf(Target::AllThreads())->size() == before + 1);
  CHECK(TaskCpusOf(Target::Process(getpid()))->size() == before + 1);
  stop = true;
  stop.notify_all();
  other.join();
}

TEST_CASE("the system is every CPU that is online", "[place]") {
  const auto task_cpus = TaskCpusOf(Target::System());
  REQUIRE(task_cpus.ok());
  CHECK(static_cast<long>(task_cpus->size()) == sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(std::all_of(task_cpus->begin(), task_cpus->end(), [](const TaskCpu& task_cpu) { return task_cpu.pid == -1; }));
  CHECK(*TaskCpusOf(Target::Cpu(0)) == std::vector<TaskCpu>{{-1, 0}});
  CHECK(*TaskCpusOf(Target::System(), {0}) == std::vector<TaskCpu>{{-1, 0}});
}

TEST_CASE("what is not there is not found, by name", "[place]") {
  CHECK(absl::IsNotFound(TaskCpusOf(Target::Process(1 << 22)).status()));
  const auto cpu = TaskCpusOf(Target::Cpu(60'000));
  CHECK(absl::IsNotFound(cpu.status()));
  CHECK(std::string(cpu.status().message()).find("CPU 60000") != std::string::npos);
  CHECK(absl::IsNotFound(TaskCpusOf(Target::System(), {60'000}).status()));
}

}  // namespace
}  // namespace perfkit::open
