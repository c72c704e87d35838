// Children counted from their exec on: held against getrusage of the same child.
#include "perfkit/child.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "perfkit/counter.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

bool IsThere(pid_t pid) { return kill(pid, 0) == 0; }

TEST_CASE("a child returns its code", "[child]") {
  auto child = Child::Spawn({"sh", "-c", "exit 42"});
  REQUIRE(child.ok());
  REQUIRE(child->Start().ok());
  const auto ended = child->Wait();
  REQUIRE(ended.ok());
  CHECK(ended->code == 42);
  CHECK(ended->signal == 0);
  CHECK(ended->shell_code() == 42);
  CHECK_FALSE(ended->ok());
  CHECK(child->Wait()->code == 42);
}

TEST_CASE("a child that a signal ended says which", "[child]") {
  auto child = Child::Spawn({"sh", "-c", "kill -TERM $$"});
  REQUIRE(child.ok());
  REQUIRE(child->Start().ok());
  const auto ended = child->Wait();
  REQUIRE(ended.ok());
  CHECK(ended->signal == SIGTERM);
  CHECK(ended->shell_code() == 128 + SIGTERM);
}

TEST_CASE("a program that cannot run is named, with the remedy", "[child]") {
  setenv("PATH", "/usr/bin:/bin", 1);  // a folder that may not be searched would turn ENOENT into EACCES
  auto missing = Child::Spawn({"no-such-program-here"});
  REQUIRE(missing.ok());
  const absl::Status not_found = missing->Start();
  CHECK(absl::IsNotFound(not_found));
  CHECK(not_found.ToString().find("no-such-program-here") != std::string::npos);
  CHECK(not_found.ToString().find("PATH") != std::string::npos);
  CHECK_FALSE(IsThere(missing->pid()));
  CHECK(absl::IsFailedPrecondition(missing->Wait().status()));

  auto no_program = Child::Spawn({"/etc/passwd"});
  REQUIRE(no_program.ok());
  const absl::Status denied = no_program->Start();
  CHECK(absl::IsPermissionDenied(denied));
  CHECK(denied.ToString().find("/etc/passwd") != std::string::npos);
}

TEST_CASE("misuse is refused", "[child]") {
  CHECK(absl::IsInvalidArgument(Child::Spawn(std::vector<std::string>{}).status()));
  CHECK(absl::IsInvalidArgument(Child::Spawn({std::string("true\0x", 6)}).status()));
  auto child = Child::Spawn({"true"});
  REQUIRE(child.ok());
  CHECK(absl::IsFailedPrecondition(child->Wait().status()));
  CHECK(child->Start().ok());
  CHECK(absl::IsFailedPrecondition(child->Start()));
  CHECK(child->Wait().ok());
}

TEST_CASE("a child that was never started is killed and reaped", "[child]") {
  pid_t pid;
  {
    auto child = Child::Spawn({"true"});
    REQUIRE(child.ok());
    pid = child->pid();
    CHECK(IsThere(pid));
    Child moved = *std::move(child);
    CHECK(moved.pid() == pid);
    CHECK(IsThere(pid));
  }
  CHECK_FALSE(IsThere(pid));
}

TEST_CASE("counting begins at exec, not at fork", "[child][law]") {
  auto child = Child::Spawn({"true"});
  REQUIRE(child.ok());
  auto set = CounterSet::Open({"page-faults:u", "task-clock"}, child->target());
  INFO(set.status());
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  testing::Sleep(30'000'000);
  Snapshot held;
  set->Read(held);
  CHECK(set->Difference(begin, held, 0).value == 0);
  CHECK(set->Difference(begin, held, 1).value == 0);
  REQUIRE(child->Start().ok());
  REQUIRE(child->Wait()->ok());
  set->Read(end);
  const Count faults = set->Difference(begin, end, 0);
  CHECK(faults.validity.counted());
  CHECK(faults.value > 10);
  CHECK(set->Difference(begin, end, 1).value > 10'000);
}

// What all reaped children took.
rusage ChildUsage() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage;
}

double CpuNs(const rusage& usage) {
  return 1e9 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e3 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// What a hypervisor has taken from all CPUs: it is in the task-clock, but not in the times of getrusage. The eighth
// number of /proc/stat, in ticks.
double StolenNs() {
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;
  double ticks = 0;
  for (int i = 0; i < 8; ++i) stat >> ticks;
  return ticks * 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

TEST_CASE("a child's counts agree with getrusage, its own children included", "[child][law]") {
  const rusage before = ChildUsage();
  const double stolen_before = StolenNs();
  auto child = Child::Spawn({"sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sh -c 'exit 0'; true"});
  REQUIRE(child.ok());
  auto set = CounterSet::Open({"page-faults", "task-clock"}, child->target());
  INFO(set.status());
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  REQUIRE(child->Start().ok());
  const auto ended = child->Wait();
  REQUIRE(ended->ok());
  set->Read(end);
  const rusage after = ChildUsage();
  const double stolen = StolenNs() - stolen_before;
  const Count faults = set->Difference(begin, end, 0);
  REQUIRE(faults.validity.counted());
  const auto by_rusage = static_cast<double>(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt);
  // getrusage has the faults between fork and exec besides (more of them where a sanitizer has memory of its own), and
  // those that the kernel takes in exec itself.
  CHECK(static_cast<double>(faults.value) <= by_rusage);
  CHECK(static_cast<double>(faults.value) >= by_rusage * (testing::kSanitized ? 0.1 : 0.5));
  const auto clock = static_cast<double>(set->Difference(begin, end, 1).value);
  const double cpu = CpuNs(after) - CpuNs(before);
  CHECK(std::abs(static_cast<double>(ended->cpu_ns) - cpu) < 5e3);  // Sums of whole microseconds.
  CHECK(clock > 0.5 * cpu);
  CHECK(clock < 1.5 * cpu + stolen + 20e6);
}

}  // namespace
}  // namespace perfkit
