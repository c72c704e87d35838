// Rights from a procfs of our own, and from the real one against what the kernel then permits.
#include "src/sys/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "src/sys/fd.h"
#include "src/sys/kernel.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

// The capabilities of FakeCapget.
uint64_t g_effective = 0;

int FakeCapget(cap_user_header_t header, cap_user_data_t data) {
  CHECK(header->version == _LINUX_CAPABILITY_VERSION_3);
  CHECK(header->pid == 0);
  for (const unsigned half : {0u, 1u}) {
    data[half] = {.effective = static_cast<uint32_t>(g_effective >> (32 * half)), .permitted = ~0u, .inheritable = ~0u};
  }
  return 0;
}

// The rights with this paranoid level, these effective capabilities and this user namespace.
Rights RightsWith(const std::string& paranoid, uint64_t effective, const char* space = "user:[4026531837]") {
  const testing::TempFolder proc;
  proc.Write("/sys/kernel/perf_event_paranoid", paranoid);
  proc.Write("/thread-self/ns/other", "");
  REQUIRE(::symlink(space, (proc.path() + "/thread-self/ns/user").c_str()) == 0);
  testing::FakeKernel fake;
  g_effective = effective;
  fake.below().capget = FakeCapget;
  return ReadRights(proc.path());
}

constexpr uint64_t kAllCaps = 0x1ff'ffff'ffff, kPerfmon = 1ull << 38, kSysAdmin = 1ull << 21;

TEST_CASE("the paranoid level is what the file says", "[rights]") {
  CHECK(RightsWith("2\n", 0).paranoid == 2);
  CHECK(RightsWith("-1\n", 0).paranoid == -1);
  CHECK(RightsWith("4", 0).paranoid == 4);
  CHECK_FALSE(RightsWith("", 0).paranoid);
  CHECK_FALSE(RightsWith("two\n", 0).paranoid);
  CHECK_FALSE(RightsWith("99999999999999999999\n", 0).paranoid);
  CHECK_FALSE(ReadRights("/nonexistent").paranoid);
}

TEST_CASE("CAP_PERFMON or CAP_SYS_ADMIN, in effect, frees from the level", "[rights]") {
  CHECK_FALSE(RightsWith("2", 0).perfmon);
  CHECK(RightsWith("2", kPerfmon).perfmon);
  CHECK(RightsWith("2", kSysAdmin).perfmon);
  CHECK(RightsWith("2", kAllCaps).perfmon);
  CHECK_FALSE(RightsWith("2", kAllCaps & ~kPerfmon & ~kSysAdmin).perfmon);
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kCapget, EPERM);
  CHECK_FALSE(ReadRights().perfmon);
}

TEST_CASE("CAP_SYS_ADMIN is told from CAP_PERFMON", "[rights]") {
  CHECK(RightsWith("2", kSysAdmin).sys_admin);
  CHECK(RightsWith("2", kAllCaps).sys_admin);
  CHECK_FALSE(RightsWith("2", kPerfmon).sys_admin);
  CHECK_FALSE(RightsWith("2", 0).sys_admin);
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

// The kernel's own answers do not need procfs.
bool RightsAreThoseWithoutProc() {
  const Rights with = ReadRights(), without = ReadRights("/nonexistent");
  PerfEventAttr attr{};
  attr.type = kTypeSoftware;
  attr.config = kSwDummy;
  attr.exclude_kernel = attr.exclude_hv = 1;
  attr.size = AttrSize(attr);
  // A process that perf is closed to cannot ask which namespace it is in.
  if (!OwnedFd(kernel().perf_event_open(&attr, 0, -1, -1, kOpenFdCloexec)) && with.perfmon_elsewhere) return true;
  return with.perfmon == without.perfmon && with.perfmon_elsewhere == without.perfmon_elsewhere &&
         with.sys_admin == without.sys_admin && with.euid == without.euid;
}

TEST_CASE("capabilities are known without procfs", "[rights]") {
  CHECK(RightsAreThoseWithoutProc());
  CHECK(testing::AsOrdinaryUser(RightsAreThoseWithoutProc));
}

// In a user namespace of its own a thread has all capabilities, and the kernel does not take them for rights of perf.
TEST_CASE("capabilities of another user namespace do not free from the level", "[rights]") {
  for (const bool is_initial : {true, false}) {
    INFO("initial " << is_initial);
    const Rights rights = RightsWith("2", kAllCaps, is_initial ? "user:[4026531837]" : "user:[4026532000]");
    CHECK(rights.perfmon == is_initial);
    CHECK(rights.sys_admin == is_initial);
    CHECK(rights.in_user_namespace == !is_initial);
    CHECK(DescribeRights(rights).ends_with(is_initial ? ", with CAP_PERFMON" : "its own does not count)"));
  }
  constexpr int kMayNot = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) _exit(kMayNot);
    _exit(KernelAgrees() && RightsAreThoseWithoutProc() && !ReadRights().perfmon ? 0 : 1);
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

TEST_CASE("in a user namespace, a remedy that takes rights says where they count", "[rights]") {
  const Rights inside{.paranoid = 2, .euid = 0, .in_user_namespace = true}, outside{.paranoid = 2, .euid = 0};
  for (const std::string_view remedy : {"grant CAP_SYS_ADMIN", "As root: mount it"}) {
    CHECK(WhereRightsCount(remedy, inside).ends_with("outside of this user namespace"));
    CHECK(WhereRightsCount(remedy, outside).empty());
  }
  CHECK(WhereRightsCount("use another event", inside).empty());
}

TEST_CASE("rights in words", "[rights]") {
  CHECK(DescribeRights({.paranoid = 2, .euid = 7, .perfmon = false}) ==
        "kernel.perf_event_paranoid is 2, uid 7, without CAP_PERFMON");
  CHECK(DescribeRights({.paranoid = {}, .euid = 0, .perfmon = true}) ==
        "kernel.perf_event_paranoid cannot be read, uid 0, with CAP_PERFMON");
}

}  // namespace
}  // namespace perfkit::sys
