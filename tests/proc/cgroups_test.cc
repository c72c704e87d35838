// The control groups of a machine, by made-up mounts: folders stand for those of the kernel.
#include "src/proc/cgroups.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/temp_folder.h"

namespace perfkit::proc {
namespace {

// A /proc, and a hierarchy of groups: "/a", "/a/b" and "/c".
struct MadeUpGroups {
  MadeUpGroups() {
    for (const char* const file : {"/groups/a/b/cgroup.procs", "/groups/c/cgroup.procs"}) folder.Write(file, "");
  }
  void Mount(const std::string& root, const std::string& type, const std::string& options) {
    text += "30 20 0:26 " + root + " " + folder.path() + "/groups rw shared:9 - " + type + " none rw" + options + "\n";
    folder.Write("/self/mountinfo", text);
  }
  std::map<std::string, uint64_t> List(size_t most = 100) const {
    std::map<std::string, uint64_t> numbers;
    for (const Cgroup& group : ListCgroups(most, folder.path())) numbers[group.path] = group.number;
    return numbers;
  }
  uint64_t InodeOf(const std::string& group) const {
    struct stat about {};
    return stat((folder.path() + "/groups" + group).c_str(), &about) == 0 ? about.st_ino : 0;
  }

  testing::TempFolder folder;
  std::string text = "25 1 0:1 / /proc rw - proc proc rw\n";
};

TEST_CASE("groups have the numbers of their folders", "[cgroups]") {
  MadeUpGroups groups;
  CHECK(groups.List().empty());
  groups.Mount("/", "cgroup2", "");
  const std::map<std::string, uint64_t> all = {{"/", groups.InodeOf("")},
                                               {"/a", groups.InodeOf("/a")},
                                               {"/a/b", groups.InodeOf("/a/b")},
                                               {"/c", groups.InodeOf("/c")}};
  CHECK(groups.List() == all);
  CHECK(groups.List(2).size() == 2);
  CHECK(groups.List(0).empty());
}

TEST_CASE("groups of a mounted part have paths from the root", "[cgroups]") {
  MadeUpGroups groups;
  groups.Mount("/docker/1", "cgroup2", "");
  CHECK(groups.List()["/docker/1"] == groups.InodeOf(""));
  CHECK(groups.List()["/docker/1/a/b"] == groups.InodeOf("/a/b"));
}

TEST_CASE("groups are listed from the mount that shows most of them", "[cgroups]") {
  MadeUpGroups groups;
  groups.Mount("/docker\\0401", "cgroup2", "");
  CHECK(groups.List().contains("/docker 1/a/b"));
  groups.Mount("/", "cgroup2", "");
  CHECK(groups.List().contains("/a/b"));
}

TEST_CASE("the hierarchy of v1 that has perf's controller comes first", "[cgroups]") {
  MadeUpGroups groups;
  groups.Mount("/", "cgroup", ",cpuset");
  CHECK(groups.List().empty());
  groups.Mount("/second", "cgroup2", "");
  CHECK(groups.List().contains("/second/c"));
  groups.Mount("/third", "cgroup", ",cpu,perf_event");
  CHECK(groups.List().contains("/third/c"));
}

}  // namespace
}  // namespace perfkit::proc
