// Control groups: the number in each sample, and the path of that number.
#include "src/proc/cgroups.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "src/sys/files.h"
#include "tests/sample/support.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

// The paths that records give to numbers, and the numbers in samples.
struct ToldCgroups {
  std::map<uint64_t, std::string> synthesized, by_kernel;
  std::map<uint64_t, uint64_t> samples;

  void Drain(Sampler& sampler) {
    sampler.Drain([&](const SamplerRecord& record) {
      Dispatch(record, sampler.layout(),
               Overloaded{[&](const CgroupRecord& group) {
                            (record.synthesized ? synthesized : by_kernel)[group.cgroup] = group.path;
                          },
                          [&](const Sample& sample) { ++samples[sample.cgroup().value_or(0)]; }, [](auto&&) {}});
    });
  }
};

SamplerOptions WithCgroups() {
  SamplerOptions options = testing::FaultOptions();
  options.fields = kSampleCgroup;
  options.side_band = true;
  return options;
}

TEST_CASE("the cgroup of each sample has a path", "[cgroups]") {
  testing::FreshPages memory(20);
  auto sampler = Sampler::Open(WithCgroups());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 20);
  REQUIRE(sampler->Stop().ok());
  ToldCgroups told;
  told.Drain(*sampler);
  REQUIRE(told.samples.size() == 1);
  CHECK(told.samples.begin()->second >= 20);
  CHECK(told.samples.begin()->first != 0);
  const bool is_mounted = !proc::ListCgroups(1).empty();
  CHECK(told.synthesized.contains(told.samples.begin()->first) == is_mounted);
  SamplerOptions without = WithCgroups();
  without.side_band = false;
  auto other = Sampler::Open(without);
  REQUIRE(other.ok());
  REQUIRE(other->Start().ok());
  ToldCgroups nothing;
  nothing.Drain(*other);
  CHECK(nothing.synthesized.empty());
}

uint64_t InodeNumber(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

bool Enter(const std::string& group) {
  FILE* const procs = fopen((group + "/cgroup.procs").c_str(), "w");
  if (procs == nullptr) return false;
  const bool written = fprintf(procs, "%d", getpid()) > 0;
  return fclose(procs) == 0 && written;
}

// What of the test below did not hold: exit codes of a child.
enum Outcome {
  kAllTold,
  kNotMounted = 2,
  kNotEntered,
  kNotSampled,
  kNotMade,
  kFirstUntold,
  kSecondUntold,
  kNoSamples,
  kNotPerfs
};

// Samples the calling process in a new group of a hierarchy, and creates another group meanwhile.
Outcome SeesGroups(const std::string& folder, const std::string& before, const std::string& after) {
  const std::string group = folder + before, later = folder + after;
  if (mkdir(group.c_str(), 0755) != 0 || !Enter(group)) return kNotEntered;
  auto sampler = Sampler::Open(WithCgroups());
  if (!sampler.ok() || !sampler->Start().ok()) return kNotSampled;
  testing::FreshPages memory(20);
  memory.Touch(0, 20);
  bool fine = mkdir(later.c_str(), 0755) == 0;
  const uint64_t first = InodeNumber(group), second = InodeNumber(later);
  fine = fine && sampler->Stop().ok() && rmdir(later.c_str()) == 0 && Enter(folder) && rmdir(group.c_str()) == 0;
  ToldCgroups told;
  told.Drain(*sampler);
  if (!fine) return kNotMade;
  if (told.synthesized[first] != before) return kFirstUntold;
  if (!told.samples.contains(first)) return kNotPerfs;
  if (told.by_kernel[second] != after || told.synthesized.contains(second)) return kSecondUntold;
  return told.samples[first] >= 20 ? kAllTold : kNoSamples;
}

// Returns true if perf's groups are those of cgroup v1.
bool PerfUsesFirstVersion() {
  const absl::StatusOr<std::string> groups = sys::ReadFile("/proc/self/cgroup");
  return groups.ok() && groups->find("perf_event") != groups->npos;
}

TEST_CASE("groups that exist and groups that are created have their paths", "[cgroups][law]") {
  if (geteuid() != 0) SKIP_TEST("only root creates cgroups");
  const testing::TempFolder folder;
  const std::string name = "/perfkit-" + std::to_string(getpid());
  const bool first = PerfUsesFirstVersion();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool mounted =
        unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("cgroup", folder.path().c_str(), first ? "cgroup" : "cgroup2", 0, first ? "perf_event" : nullptr) == 0;
    _exit(!mounted ? kNotMounted : SeesGroups(folder.path(), name, name + "-later"));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotMounted) SKIP_TEST("cgroups cannot be mounted here");
  if (WEXITSTATUS(status) == kNotPerfs) SKIP_TEST("perf does not use the mounted hierarchy of cgroups");
  CHECK(WEXITSTATUS(status) == kAllTold);
}

}  // namespace
}  // namespace perfkit
