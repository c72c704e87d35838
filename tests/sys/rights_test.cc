// Rights from a procfs of our own, and from the real one against what the kernel then permits.
#include "src/sys/rights.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "src/sys/kernel.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

// A procfs with this paranoid level and this set of effective capabilities.
Rights FromProc(const std::string& paranoid, const std::string& status) {
  const testing::TempFolder proc;
  proc.Write("/sys/kernel/perf_event_paranoid", paranoid);
  proc.Write("/thread-self/status", status);
  return ReadRights(proc.path());
}

std::string Caps(const std::string& effective) {
  return "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t" + effective + "\n";
}

TEST_CASE("the paranoid level is what the file says", "[rights]") {
  CHECK(FromProc("2\n", Caps("0")).paranoid == 2);
  CHECK(FromProc("-1\n", Caps("0")).paranoid == -1);
  CHECK(FromProc("4", Caps("0")).paranoid == 4);
  CHECK_FALSE(FromProc("", Caps("0")).paranoid);
  CHECK_FALSE(FromProc("two\n", Caps("0")).paranoid);
  CHECK_FALSE(FromProc("99999999999999999999\n", Caps("0")).paranoid);
  CHECK_FALSE(ReadRights("/nonexistent").paranoid);
}

TEST_CASE("CAP_PERFMON or CAP_SYS_ADMIN, in effect, frees from the level", "[rights]") {
  CHECK_FALSE(FromProc("2", Caps("0000000000000000")).perfmon);
  CHECK(FromProc("2", Caps("0000004000000000")).perfmon);  // bit 38
  CHECK(FromProc("2", Caps("0000000000200000")).perfmon);  // bit 21
  CHECK(FromProc("2", Caps("000001ffffffffff")).perfmon);
  CHECK_FALSE(FromProc("2", Caps("0000003fffdfffff")).perfmon);  // all but these two
  CHECK_FALSE(FromProc("2", Caps("no number")).perfmon);
  CHECK_FALSE(FromProc("2", "").perfmon);
  CHECK_FALSE(FromProc("2", std::string(1000, '\n') + "CapEff").perfmon);
}

TEST_CASE("CAP_SYS_ADMIN is told from CAP_PERFMON", "[rights]") {
  CHECK(FromProc("2", Caps("0000000000200000")).sys_admin);
  CHECK(FromProc("2", Caps("000001ffffffffff")).sys_admin);
  CHECK_FALSE(FromProc("2", Caps("0000004000000000")).sys_admin);
  CHECK_FALSE(FromProc("2", "").sys_admin);
}

TEST_CASE("what a level permits", "[rights]") {
  CHECK((Rights{.paranoid = -1}).may_watch_cpus());
  CHECK((Rights{.paranoid = 0}).may_watch_cpus());
  CHECK_FALSE((Rights{.paranoid = 1}).may_watch_cpus());
  CHECK((Rights{.paranoid = 1}).may_count_kernel());
  CHECK_FALSE((Rights{.paranoid = 2}).may_count_kernel());
  CHECK_FALSE((Rights{}).may_count_kernel());
  CHECK((Rights{.paranoid = 4, .perfmon = true}).may_watch_cpus());
  CHECK((Rights{.perfmon = true}).may_count_kernel());
}

TEST_CASE("the user is the effective one", "[rights]") {
  testing::FakeKernel fake;
  fake.below().geteuid = []() -> uid_t { return 4711; };
  CHECK(ReadRights().euid == 4711);
}

// The kernel's own answer to "may I?", for this thread with kernel mode and for a CPU.
bool KernelAgrees() {
  const Rights rights = ReadRights();
  PerfEventAttr attr{};
  attr.type = kTypeSoftware;
  attr.config = kSwDummy;
  attr.size = AttrSize(attr);
  const auto may = [&](pid_t pid, int cpu) {
    const int fd = kernel().perf_event_open(&attr, pid, cpu, -1, kOpenFdCloexec);
    if (fd >= 0) kernel().close(fd);
    return fd >= 0;
  };
  return may(0, -1) == rights.may_count_kernel() && may(-1, 0) == rights.may_watch_cpus();
}

TEST_CASE("rights are what the kernel then permits", "[rights]") {
  CHECK(KernelAgrees());
  CHECK(testing::AsOrdinaryUser(KernelAgrees));
}

// In a user namespace of its own a thread has all capabilities, and the kernel does not take them for rights of perf.
TEST_CASE("capabilities of another user namespace do not free from the level", "[rights]") {
  for (const bool is_initial : {true, false}) {
    INFO("initial " << is_initial);
    const testing::TempFolder folder;
    folder.Write("/thread-self/status", Caps("000001ffffffffff"));
    folder.Write("/thread-self/ns/other", "");
    const std::string target = is_initial ? "user:[4026531837]" : "user:[4026532000]";
    REQUIRE(::symlink(target.c_str(), (folder.path() + "/thread-self/ns/user").c_str()) == 0);
    const Rights rights = ReadRights(folder.path());
    CHECK(rights.perfmon == is_initial);
    CHECK(rights.sys_admin == is_initial);
    CHECK(DescribeRights(rights).ends_with(is_initial ? ", with CAP_PERFMON" : "its own does not count)"));
  }
  constexpr int kMayNot = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) _exit(kMayNot);
    _exit(KernelAgrees() && !ReadRights().perfmon ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kMayNot) {
    WARN("user namespaces are not permitted here");
  } else {
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("rights in words", "[rights]") {
  CHECK(DescribeRights({.paranoid = 2, .euid = 7, .perfmon = false}) ==
        "kernel.perf_event_paranoid is 2, uid 7, without CAP_PERFMON");
  CHECK(DescribeRights({.paranoid = {}, .euid = 0, .perfmon = true}) ==
        "kernel.perf_event_paranoid cannot be read, uid 0, with CAP_PERFMON");
}

}  // namespace
}  // namespace perfkit::sys
