// Threads and CPUs of targets on the live machine.
#include "src/open/task_cpu.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "src/base/text.h"
#include "src/sys/files.h"
#include "src/sys/perf_error.h"
#include "tests/support/fake_kernel.h"
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
  const std::string online(base::Trim(sys::ReadFile("/sys/devices/system/cpu/online").value()));
  CHECK(cpu.status().message() == "CPU 60000 is not online, or the event does not count there; online: " + online);
  CHECK(absl::IsNotFound(TaskCpusOf(Target::System(), {60'000}).status()));
}

TEST_CASE("without a descriptor to list them, threads and CPUs are answered with the limit", "[place]") {
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kOpen, EMFILE);
  const absl::Status cpus = TaskCpusOf(Target::System()).status();
  CHECK(absl::IsResourceExhausted(cpus));
  CHECK(std::string(cpus.message()).ends_with(". Remedy: raise the limit on descriptors (ulimit -n), or close some."));

  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit before = limit;
  limit.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const absl::Status threads = TaskCpusOf(Target::AllThreads()).status();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(
      threads.message() ==
      "cannot list /proc/self/task: Too many open files. Remedy: raise the limit on descriptors (ulimit -n), or close "
      "some.");
}

TEST_CASE("without sysfs, the file of CPUs is named, and how to mount it", "[place]") {
  testing::FakeKernel fake;
  fake.below().open = [](const char* path, int flags) {
    if (!std::string_view(path).starts_with("/sys/")) return sys::kLinux.open(path, flags);
    errno = ENOENT;
    return -1;
  };
  const absl::Status cpus = TaskCpusOf(Target::System()).status();
  CHECK(absl::IsNotFound(cpus));
  CHECK(cpus.message() ==
        "the whole system: cannot open /sys/devices/system/cpu/online: No such file or directory. Remedy: as root: "
        "mount -t sysfs sysfs /sys.");
  CHECK(sys::CauseOf(cpus) == "cannot open /sys/devices/system/cpu/online: No such file or directory");
}

}  // namespace
}  // namespace perfkit::open
