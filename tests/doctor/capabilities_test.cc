// Capabilities, against what a test can find out by itself: limits, ids, raw system calls.
#include "perfkit/capabilities.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "src/sys/fd.h"
#include "src/sys/files.h"
#include "src/sys/rights.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;
using Id = CapabilityId;

// perf_event_open by hand: whether this process may open `attr` there.
bool MayOpen(perf_event_attr attr, pid_t pid, int cpu) {
  const long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd >= 0;
}

perf_event_attr Attr(uint32_t type, uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type;
  attr.config = config;
  return attr;
}

TEST_CASE("there is a row for each capability, and each says how it was tried", "[capabilities]") {
  const Capabilities all = ProbeCapabilities();
  REQUIRE(all.rows.size() == static_cast<size_t>(Id::kRseq) + 1);
  for (const Capability& row : all.rows) {
    INFO(row.name);
    CHECK(&all.of(row.id) == &row);
    CHECK_FALSE(row.name.empty());
    CHECK_FALSE(row.probe.empty());
    const bool missing = row.state == CapabilityState::kMissing;
    CHECK(row.status.ok() == !missing);
    CHECK(row.found.empty() == missing);
    CHECK(row.cause.empty() == !missing);
    CHECK(row.remedy.empty() == !missing);
  }
}

TEST_CASE("what can be opened is what the kernel lets this process open", "[capabilities]") {
  const Capabilities all = ProbeCapabilities();
  perf_event_attr attr = Attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
  CHECK(all.has(Id::kKernelCounting) == MayOpen(attr, 0, -1));
  CHECK(all.has(Id::kCpuWide) == MayOpen(attr, -1, 0));
  attr.exclude_kernel = 1;
  CHECK(all.has(Id::kPerf) == MayOpen(attr, 0, -1));
  attr.read_format = 16;  // PERF_FORMAT_LOST: newer than some headers
  CHECK(all.has(Id::kFormatLost) == MayOpen(attr, 0, -1));
  attr = Attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
  attr.exclude_kernel = 1;
  if (!MayOpen(attr, 0, -1)) {
    CHECK_FALSE(all.has(Id::kPmu));
    CHECK_FALSE(all.has(Id::kUserReads));
    CHECK_FALSE(all.has(Id::kPreciseSampling));
    CHECK_FALSE(all.has(Id::kBranchStacks));
  }
}

TEST_CASE("the remedy for tracefs lets a group read its files", "[capabilities]") {
  const Capability row = ProbeCapabilities().of(Id::kTracepoints);
  CHECK(row.remedy.find("chmod") == std::string::npos);
  if (row.remedy.find("mount") == std::string::npos) SKIP_TEST("tracefs is not what is missing here");
  CHECK(row.remedy.find("mount -o remount,mode=750,gid=GROUP /sys/kernel/tracing") != std::string::npos);
}

TEST_CASE("descriptors are what the limit leaves", "[capabilities]") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit before = limit;
  limit.rlim_cur = 48;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const Capabilities all = ProbeCapabilities();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  const Capability& row = all.of(Id::kDescriptors);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(row.cause.find("of 48 left") != std::string::npos);
  CHECK(absl::IsResourceExhausted(row.status));
}

TEST_CASE("descriptors that are open are not left", "[capabilities]") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit before = limit;
  std::vector<sys::OwnedFd> open;
  for (int i = 0; i < 100; ++i) {
    open.emplace_back(dup(STDOUT_FILENO));
    if (!open.back()) SKIP_TEST("this process may not open 100 descriptors");
  }
  const auto all_open = sys::ListFolder("/proc/self/fd");
  REQUIRE(all_open.ok());
  // Another 20 are enough for the probes.
  const rlim_t next = static_cast<rlim_t>(std::max(open.back().get() + 1, static_cast<int>(all_open->size())));
  limit.rlim_cur = next + 20;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) SKIP_TEST("this process may not open 120 descriptors");
  const Capabilities all = ProbeCapabilities();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  const Capability& row = all.of(Id::kDescriptors);
  INFO(row.found << row.cause);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(absl::IsResourceExhausted(row.status));
}

TEST_CASE("an ordinary user learns which knob it is", "[capabilities]") {
  if (sys::ReadRights().paranoid != 2) SKIP_TEST("kernel.perf_event_paranoid is not 2, its default");
  CHECK(testing::AsOrdinaryUser([] {
    const Capabilities all = ProbeCapabilities();
    const Capability& cpus = all.of(Id::kCpuWide);
    const std::string text = FormatCapabilities(all);
    return all.has(Id::kPerf) && !all.has(Id::kKernelCounting) && cpus.state == CapabilityState::kMissing &&
           cpus.cause.find("perf_event_paranoid is 2") != std::string::npos &&
           cpus.cause.find("uid " + std::to_string(geteuid())) != std::string::npos &&
           cpus.remedy.find("CAP_PERFMON") != std::string::npos && absl::IsPermissionDenied(cpus.status) &&
           text.find(cpus.cause.substr(0, 20)) != std::string::npos;
  }));
}

TEST_CASE("the remedy for the kernel's part is not to leave it out", "[capabilities]") {
  if (sys::ReadRights().paranoid != 2) SKIP_TEST("kernel.perf_event_paranoid is not 2, its default");
  CHECK(testing::AsOrdinaryUser([] {
    const Capabilities all = ProbeCapabilities();
    const Capability& row = all.of(Id::kKernelCounting);
    printf("%s: %s\n", row.cause.c_str(), row.remedy.c_str());
    return !all.has(Id::kPerf) ||
           (row.state == CapabilityState::kMissing && row.remedy.find(":u") == std::string::npos &&
            row.remedy.find("perf_event_paranoid=1") != std::string::npos);
  }));
}

TEST_CASE("whole CPUs are tried on all tasks, not on this thread", "[capabilities]") {
  FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    if (pid != -1) return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
    errno = EACCES;
    return -1;
  };
  const Capability row = ProbeCapabilities().of(Id::kCpuWide);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(absl::IsPermissionDenied(row.status));
}

TEST_CASE("without perf at all the report still stands", "[capabilities]") {
  FakeKernel fake;
  fake.FailAll(Call::kPerfEventOpen, ENOSYS);
  const Capabilities all = ProbeCapabilities();
  CHECK_FALSE(all.has(Id::kPerf));
  CHECK_FALSE(all.has(Id::kSwitchRecords));
  CHECK_FALSE(all.has(Id::kRingMemory));
  CHECK(all.has(Id::kDescriptors));
  for (const Id id : {Id::kPerf, Id::kSigtrap, Id::kInheritThread, Id::kFormatLost}) {
    INFO(all.of(id).name << ": " << all.of(id).cause);
    CHECK(all.of(id).cause.find("no perf_event_open") != std::string::npos);
  }
  CHECK(all.of(Id::kPerf).remedy.find("getrusage") != std::string::npos);
  CHECK(fake.Leaks() == "");
}

TEST_CASE("without perf at all the only remedy is to have it", "[capabilities]") {
  FakeKernel fake;
  fake.FailAll(Call::kPerfEventOpen, ENOSYS);
  for (const Capability& row : ProbeCapabilities().rows) {
    INFO(row.name << ": " << row.cause << "; " << row.remedy);
    // Other users' tasks are not tried if there are none in sight; the others need no perf event.
    if (row.id == Id::kOtherUsers || row.id == Id::kDescriptors || row.id == Id::kRseq) continue;
    CHECK(row.state == CapabilityState::kMissing);
    if (row.id == Id::kPerf) {
      CHECK(row.remedy.find("seccomp profile") != std::string::npos);
      CHECK(row.remedy.find("perf_event_paranoid") == std::string::npos);
    } else {
      CHECK(row.remedy == "See performance events.");
    }
  }
}

TEST_CASE("in a user namespace, rights are advised outside of it", "[capabilities]") {
  constexpr int kMayNot = 77;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER) != 0) _exit(kMayNot);
    for (const Capability& row : ProbeCapabilities().rows) {
      if (row.remedy.find("CAP_") == std::string::npos) continue;
      if (row.remedy.find("outside of this user namespace") == std::string::npos) {
        printf("%s: %s\n", std::string(row.name).c_str(), row.remedy.c_str());
        std::fflush(nullptr);
        _exit(1);
      }
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNot) SKIP_TEST("user namespaces are not permitted here");
  CHECK(status == 0);
}

TEST_CASE("a filter on perf_event_open is not taken for a missing PMU or an old kernel", "[capabilities]") {
  FakeKernel fake;
  fake.FailAll(Call::kPerfEventOpen, EPERM);
  const Capabilities all = ProbeCapabilities();
  for (const Id id : {Id::kPerf, Id::kPmu, Id::kKernelCounting, Id::kCpuWide, Id::kSigtrap, Id::kFormatLost}) {
    const Capability& row = all.of(id);
    INFO(row.name << ": " << row.remedy);
    REQUIRE(row.state == CapabilityState::kMissing);
    CHECK(row.cause.find("seccomp") != std::string::npos);
    CHECK(row.remedy.find("seccomp profile") != std::string::npos);
    CHECK(row.remedy.find("hypervisor") == std::string::npos);
    CHECK(row.remedy.find("Linux 5.13") == std::string::npos);
  }
}

TEST_CASE("a process without descriptors is not advised to enable a PMU", "[capabilities]") {
  FakeKernel fake;
  fake.FailAll(Call::kPerfEventOpen, EMFILE);
  const Capability row = ProbeCapabilities().of(Id::kPmu);
  INFO(row.cause << "; " << row.remedy);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(absl::IsResourceExhausted(row.status));
  CHECK(row.remedy.find("ulimit -n") != std::string::npos);
  CHECK(row.remedy.find("hypervisor") == std::string::npos);
}

TEST_CASE("an event that opens and stays 0 is no PMU", "[capabilities]") {
  FakeKernel fake;
  testing::MakeHardwareSilent(fake);
  const Capabilities all = ProbeCapabilities();
  CHECK_FALSE(all.has(Id::kPmu));
  CHECK(all.of(Id::kPmu).cause.find("left it at 0") != std::string::npos);
  CHECK_FALSE(all.has(Id::kPreciseSampling));
}

TEST_CASE("an old kernel is told by the version that would do", "[capabilities]") {
  FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    const bool is_new = attr->inherit_thread != 0 || attr->sigtrap != 0 || (attr->read_format & sys::kFormatLost) != 0;
    if (is_new) {
      errno = EINVAL;
      return -1;
    }
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  };
  const Capabilities all = ProbeCapabilities();
  CHECK(all.of(Id::kSigtrap).cause.find("5.13") != std::string::npos);
  CHECK(all.of(Id::kInheritThread).cause.find("5.13") != std::string::npos);
  CHECK(all.of(Id::kFormatLost).cause.find("6.0") != std::string::npos);
}

TEST_CASE("probing leaves nothing open, whatever fails", "[capabilities][sweep]") {
  FakeKernel fake;
  const Capabilities all = ProbeCapabilities();
  CHECK(fake.Leaks() == "");
  const uint64_t calls = fake.calls();
  // Each call once would take minutes: a prime stride over all of them reaches every probe.
  for (uint64_t n = 1; n < calls; n += 37) {
    fake.FailNth(n, n % 2 == 0 ? EMFILE : EPERM);
    CHECK(ProbeCapabilities().rows.size() == all.rows.size());
    REQUIRE(fake.Leaks() == "");
  }
}

TEST_CASE("the report is a page that fits a terminal", "[capabilities]") {
  const Capabilities all = ProbeCapabilities();
  const std::string text = FormatCapabilities(all);
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    REQUIRE(end != std::string::npos);
    CHECK(end - start <= 100);
    CHECK((end == start || text[end - 1] != ' '));
    start = end + 1;
  }
  for (const Capability& row : all.rows) CHECK(text.find(row.name) != std::string::npos);
}

}  // namespace
}  // namespace perfkit
