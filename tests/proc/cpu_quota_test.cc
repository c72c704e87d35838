// CPU quotas of control groups: the files of cgroup v1 and v2, and those of this process.
#include "src/proc/cpu_quota.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace perfkit::proc {
namespace {

using Folders = std::vector<std::string>;

TEST_CASE("groups are those of v2, or of v1's cpu controller, the innermost first", "[proc][cpu_quota]") {
  constexpr char kMounts[] =
      "25 1 0:1 / /proc rw - proc proc rw\n"
      "34 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n"
      "35 34 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "36 34 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "37 34 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(ParseCpuGroups("4:cpu,cpuacct:/\n3:cpuset:/a\n", kMounts) == Folders{"/sys/fs/cgroup/cpu,cpuacct"});
  CHECK(ParseCpuGroups("4:cpu,cpuacct:/a/b\n", kMounts) ==
        Folders{"/sys/fs/cgroup/cpu,cpuacct/a/b", "/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/cpu,cpuacct"});
  CHECK(ParseCpuGroups("3:cpuset:/a\n0::/user.slice/u\n", kMounts) ==
        Folders{"/sys/fs/cgroup/unified/user.slice/u", "/sys/fs/cgroup/unified/user.slice", "/sys/fs/cgroup/unified"});
  CHECK(ParseCpuGroups("3:cpuset:/a\n", kMounts).empty());
  CHECK(ParseCpuGroups("0::/a\n", "").empty());
  CHECK(ParseCpuGroups("", kMounts).empty());
}

TEST_CASE("a container sees its own groups only", "[proc][cpu_quota]") {
  constexpr char kMounts[] = "35 34 0:27 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
  CHECK(ParseCpuGroups("0::/docker/ab/c\n", kMounts) == Folders{"/sys/fs/cgroup/c", "/sys/fs/cgroup"});
  CHECK(ParseCpuGroups("0::/docker/ab\n", kMounts) == Folders{"/sys/fs/cgroup"});
  CHECK(ParseCpuGroups("0::/docker/abc\n", kMounts).empty());
  CHECK(ParseCpuGroups("0::/../x\n", "35 34 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n").empty());
}

TEST_CASE("groups are found by any mount that shows them", "[proc][cpu_quota]") {
  constexpr char kMounts[] =
      "35 34 0:27 /docker/ab /srv/one rw - cgroup2 cgroup rw\n"
      "36 34 0:27 /docker /srv/all rw shared:1 master:2 - cgroup2 cgroup rw\n";
  CHECK(ParseCpuGroups("0::/docker/ab\n", kMounts) == Folders{"/srv/all/ab", "/srv/all"});
  CHECK(ParseCpuGroups("0::/docker/c\n", kMounts) == Folders{"/srv/all/c", "/srv/all"});
  CHECK(ParseCpuGroups("0::/user\n", kMounts).empty());
}

// mountinfo escapes blanks and backslashes, /proc/PID/cgroup does not.
TEST_CASE("groups with blanks in their names are found", "[proc][cpu_quota]") {
  constexpr char kMounts[] = "35 34 0:27 /my\\040game\\134x /sys/fs/c\\011g rw - cgroup2 cgroup rw\n";
  CHECK(ParseCpuGroups("0::/my game\\x/a b\n", kMounts) == Folders{"/sys/fs/c\tg/a b", "/sys/fs/c\tg"});
}

TEST_CASE("the throttled time is in nanoseconds", "[proc][cpu_quota]") {
  CHECK(ParseThrottledNs("usage_usec 5\nnr_periods 7\nnr_throttled 2\nthrottled_usec 12\n") == 12'000);
  CHECK(ParseThrottledNs("nr_periods 7\nnr_throttled 2\nthrottled_time 12\n") == 12);
  CHECK(ParseThrottledNs("usage_usec 5\n") == std::nullopt);
  CHECK(ParseThrottledNs("throttled_usec \n") == std::nullopt);
  CHECK(ReadThrottledNs("/no/such/group") == std::nullopt);
}

TEST_CASE("groups with a quota have a throttled time", "[proc][cpu_quota]") {
  for (const std::string& group : CpuQuotaGroups()) {
    INFO(group);
    CHECK(ReadThrottledNs(group).has_value());
  }
}

}  // namespace
}  // namespace perfkit::proc
