// The table of libperfkit_itt.so with an event that has a unit and a scale.
#include "src/itt/library/report.h"

#include <errno.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/itt/collector.h"
#include "tests/support/event_roots.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::itt {
namespace {

// A machine with RAPL: PMU `power` of the golden tree, whose scale is 2^-32.
constexpr uint32_t kPowerType = 13;
std::set<int> g_energy_fds;
uint64_t g_joules = 0;

int OpenEnergy(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (attr->type != kPowerType) return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  if (attr->exclude_kernel != 0 || attr->exclude_user != 0) return errno = EINVAL, -1;
  const int fd = sys::kLinux.open("/dev/null", 0);
  g_energy_fds.insert(fd);
  return fd;
}

ssize_t ReadEnergy(int fd, void* buffer, size_t size) {
  if (!g_energy_fds.contains(fd)) return sys::kLinux.read(fd, buffer, size);
  static uint64_t now_ns = 1;
  ++now_ns;
  const uint64_t words[] = {g_joules << 32, now_ns, now_ns};
  if (size < sizeof(words)) return errno = ENOSPC, -1;
  std::memcpy(buffer, words, sizeof(words));
  return sizeof(words);
}

int CloseEnergy(int fd) {
  g_energy_fds.erase(fd);
  return sys::kLinux.close(fd);
}

int OpenGoldenPower(const char* path, int flags) {
  if (!std::string_view(path).starts_with("/sys/bus/event_source/devices/power/")) return sys::kLinux.open(path, flags);
  const std::string golden = testing::GoldenRoots("amd_zen3").sysfs + std::string(path).substr(4);
  return sys::kLinux.open(golden.c_str(), flags);
}

TEST_CASE("itt report: counts are in the units of their events", "[itt][energy]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenEnergy;
  fake.below().read = ReadEnergy;
  fake.below().close = CloseEnergy;
  fake.below().open = OpenGoldenPower;
  FrameCounter frames({.events = {"power/energy-pkg/"}});
  REQUIRE(frames.reason(0).empty());
  std::thread([&] {
    for (int i = 0; i < 2; ++i) {
      PERFKIT_ZONE(frames, "work");
      g_joules += 5;
    }
  }).join();
  const std::string table = FormatTable(frames, count::FrameCounterImpl::Of(frames)->plan(), {}, {}, 0);
  CHECK_THAT(table, Catch::Contains("Joules") && Catch::Contains("10.000") && Catch::Contains(" 5.000"));
}

}  // namespace
}  // namespace perfkit::itt
