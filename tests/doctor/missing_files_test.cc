// Probes in processes that lack a part of what they read: /proc, /sys, the limit and the list of descriptors.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "perfkit/capabilities.h"
#include "perfkit/format.h"
#include "src/doctor/findings.h"
#include "src/sys/perf_error.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit::doctor {
namespace {

using testing::Call;
using testing::FakeKernel;
using testing::TempFolder;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST_CASE("without procfs, the remedy for uprobes and tracepoints is to mount it", "[capabilities]") {
  const TempFolder proc;
  Context context{.rights = sys::ReadRights(), .proc = proc.path(), .workload = {}};
  for (const auto probe : {ProbeUprobes, ProbeTracepoints}) {
    const Finding finding = probe(context);
    INFO(finding.status);
    CHECK(finding.state == CapabilityState::kMissing);
    CHECK(sys::CauseOf(finding.status).starts_with("cannot open " + proc.path() + "/self/"));
    CHECK(finding.remedy == "as root: mount -t proc proc " + proc.path() + ".");
  }
}

TEST_CASE("without sysfs, a kernel is not said to count no uprobes", "[capabilities]") {
  const TempFolder sysfs;
  Context context{.rights = sys::ReadRights(), .sysfs = sysfs.path(), .workload = {}};
  const Finding none = ProbeUprobes(context);
  INFO(none.status);
  CHECK(none.state == CapabilityState::kMissing);
  CHECK(Contains(sys::CauseOf(none.status), sysfs.path() + "/bus/event_source/devices/uprobe/type"));
  CHECK(none.remedy == "as root: mount -t sysfs sysfs " + sysfs.path() + ".");
  sysfs.Write("/bus/event_source/devices/software/type", "1\n");
  const Finding old = ProbeUprobes(context);
  INFO(old.status);
  CHECK(Contains(sys::CauseOf(old.status), "this kernel counts no uprobes"));
  CHECK(old.remedy.empty());  // That of the row.
}

TEST_CASE("without sysfs, tracefs has no folder to be mounted at", "[capabilities]") {
  const TempFolder proc, sysfs;
  proc.Write("/self/mounts", "none / tmpfs rw 0 0\n");
  Context context{.rights = sys::ReadRights(), .proc = proc.path(), .sysfs = sysfs.path(), .workload = {}};
  const Finding finding = ProbeTracepoints(context);
  CHECK(finding.state == CapabilityState::kMissing);
  CHECK(finding.remedy.starts_with("as root: mount -t sysfs sysfs " + sysfs.path() + "; mount -t tracefs tracefs"));
}

TEST_CASE("without sysfs, the cause for whole CPUs is the file that is missing", "[capabilities]") {
  FakeKernel fake;
  fake.below().open = [](const char* path, int flags) {
    if (!std::string_view(path).starts_with("/sys/")) return sys::kLinux.open(path, flags);
    errno = ENOENT;
    return -1;
  };
  const Capability row = ProbeCapabilities().of(CapabilityId::kCpuWide);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(row.cause == "cannot open /sys/devices/system/cpu/online: No such file or directory");
  CHECK(row.remedy == "as root: mount -t sysfs sysfs /sys.");
}

TEST_CASE("descriptors are not said to be left if it is unknown how many are open", "[capabilities]") {
  const TempFolder proc;
  Context context{.rights = sys::ReadRights(), .proc = proc.path(), .workload = {}};
  const Finding finding = ProbeDescriptors(context);
  const std::string& text = finding.state == CapabilityState::kPresent ? finding.found : finding.cause;
  INFO(text);
  CHECK(Contains(text, "how many are open is unknown: cannot list " + proc.path() + "/self/fd"));
  CHECK_FALSE(Contains(text, "left"));
}

// Lowers the limit below a descriptor that is open, and counts by hand what is left.
bool DescriptorsLeftAreFree() {
  constexpr rlim_t kLimit = 256;
  if (fcntl(STDOUT_FILENO, F_DUPFD, static_cast<int>(kLimit)) < 0) return true;
  const rlimit limit{.rlim_cur = kLimit, .rlim_max = kLimit};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  Context context{.rights = sys::ReadRights(), .workload = {}};
  const Finding finding = ProbeDescriptors(context);
  uint64_t left = 0;
  while (dup(STDOUT_FILENO) >= 0) ++left;
  const std::string expected = FormatNumber(left) + " of 256 left";
  printf("%s%s, %s\n", finding.found.c_str(), finding.cause.c_str(), expected.c_str());
  return finding.found == expected || finding.cause == expected;
}

TEST_CASE("descriptors are left if they can be opened", "[capabilities][law]") {
  CHECK(testing::AsOrdinaryUser(DescriptorsLeftAreFree));
}

TEST_CASE("if no descriptor is left to list them, none is", "[capabilities]") {
  CHECK(testing::AsOrdinaryUser([] {
    Context context{.rights = sys::ReadRights(), .workload = {}};
    const rlimit limit{.rlim_cur = 3, .rlim_max = 3};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
    while (dup(STDOUT_FILENO) >= 0) continue;
    return ProbeDescriptors(context).cause == "0 of 3 left";
  }));
}

TEST_CASE("a limit that may not be read is not advised to be raised", "[capabilities]") {
  FakeKernel fake;
  fake.FailAll(Call::kGetrlimit, EPERM);
  const Capability row = ProbeCapabilities().of(CapabilityId::kDescriptors);
  CHECK(row.state == CapabilityState::kMissing);
  CHECK(Contains(row.cause, "Operation not permitted"));
  CHECK(Contains(row.remedy, "seccomp profile"));
  CHECK_FALSE(Contains(row.remedy, "ulimit"));
}

}  // namespace
}  // namespace perfkit::doctor
