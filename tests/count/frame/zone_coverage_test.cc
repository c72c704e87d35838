// The heads of the tables of zones state the lowest coverage of their rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "perfkit/frame_counter.h"
#include "src/sys/perf_abi.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

thread_local bool t_shares_its_counter = false;

// Opens page-faults in the place of each hardware event: it counts on any machine.
int OpenFaults(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  sys::PerfEventAttr faults = *attr;
  if (attr->type == 0) {
    faults.type = 1;
    faults.config = 2;
  }
  return sys::kLinux.perf_event_open(&faults, pid, cpu, group, flags);
}

// The words of a read are a value or a number of values, and the times enabled and running.
ssize_t ReadShared(int fd, void* buffer, size_t size) {
  const ssize_t bytes = sys::kLinux.read(fd, buffer, size);
  auto* const words = static_cast<uint64_t*>(buffer);
  if (t_shares_its_counter && bytes >= static_cast<ssize_t>(3 * sizeof(uint64_t))) words[2] = words[1] / 2;
  return bytes;
}

TEST_CASE("frames: the head of a table has the lowest coverage of its rows") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenFaults;
  fake.below().read = ReadShared;
  FrameCounter frames({.events = {"instructions"}, .only_path = ReadPath::kGroupRead});
  INFO(std::string(frames.reason(0)));
  REQUIRE(frames.reason(0).empty());
  frames.Mark();
  std::thread([&] {
    t_shares_its_counter = true;
    PERFKIT_ZONE(frames, "job");
  }).join();
  frames.Mark();
  CHECK_THAT(frames.FormatZones(), Catch::Contains("(50 % coverage, scaled)"));
}

TEST_CASE("frames: the head of a table has the lowest coverage of selfs, too") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenFaults;
  fake.below().read = ReadShared;
  FrameCounter frames({.events = {"instructions"}, .only_path = ReadPath::kGroupRead});
  REQUIRE(frames.reason(0).empty());
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "parent");
    PERFKIT_ZONE(frames, "child");
    t_shares_its_counter = true;
  }
  frames.Mark();
  t_shares_its_counter = false;
  const std::string report = frames.FormatZones();
  double lowest = 1;
  for (const ZoneStats& zone : frames.zones()) {
    for (const Count* const count : {&zone.total[0], &zone.self[0]}) {
      if (count->validity.counted()) lowest = std::min(lowest, count->coverage());
    }
  }
  CHECK(lowest < 1);
  CHECK_THAT(report, Catch::Contains(absl::StrFormat("(%.0f %% coverage, scaled)", 100 * lowest)));
}

}  // namespace
}  // namespace perfkit
