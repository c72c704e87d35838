// The energy of the machine in a set of this thread, on a pretended machine with RAPL (golden sysfs trees): what is
// opened where, what the numbers are, and what says that they are the machine's.
#include <errno.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/format.h"
#include "perfkit/frame_counter.h"
#include "perfkit/scope.h"
#include "tests/count/frame/zones.h"
#include "tests/count/sets.h"
#include "tests/support/event_roots.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FakeKernel;

constexpr uint32_t kPowerType = 13;      // Of PMU `power` in the golden tree.
constexpr uint64_t kJoule = 1ull << 32;  // The scale of the golden tree is 2^-32.

struct Rapl {
  std::map<int, int> cpus;  // By descriptor.
  uint64_t joules = 0;
  uint64_t now_ns = 1;
  bool offline = false;
  int error = 0;         // Of perf_event_open.
  bool threads = false;  // An event was opened for a thread.
};
Rapl g_rapl;

int OpenRapl(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (attr->type != kPowerType) return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  if (g_rapl.error != 0) return errno = g_rapl.error, -1;
  g_rapl.threads = g_rapl.threads || pid != -1 || group != -1;
  // arch/x86/events/rapl.c: PERF_PMU_CAP_NO_EXCLUDE.
  if (attr->exclude_kernel != 0 || attr->exclude_user != 0) return errno = EINVAL, -1;
  const int fd = sys::kLinux.open("/dev/null", 0);
  g_rapl.cpus[fd] = cpu;
  return fd;
}

ssize_t ReadRapl(int fd, void* buffer, size_t size) {
  if (!g_rapl.cpus.contains(fd)) return sys::kLinux.read(fd, buffer, size);
  if (!g_rapl.offline) ++g_rapl.now_ns;
  const uint64_t words[] = {g_rapl.joules * kJoule, g_rapl.now_ns, g_rapl.now_ns};
  if (size < sizeof(words)) return errno = ENOSPC, -1;
  std::memcpy(buffer, words, sizeof(words));
  return sizeof(words);
}

int CloseRapl(int fd) {
  g_rapl.cpus.erase(fd);
  return sys::kLinux.close(fd);
}

void PretendRapl(FakeKernel& fake) {
  g_rapl = {};
  fake.below().perf_event_open = OpenRapl;
  fake.below().read = ReadRapl;
  fake.below().close = CloseRapl;
}

EventConfig EventOf(std::string_view text, const char* machine = "amd_zen3") {
  const auto event = ParseEvent(text, testing::GoldenRoots(machine));
  REQUIRE(event.ok());
  return *event;
}

absl::StatusOr<CounterSet> Open(const std::vector<std::vector<EventConfig>>& groups,
                                const CounterOptions& options = {}) {
  return CounterSet::Open(groups, Target::ThisThread(), options);
}

TEST_CASE("energy stands beside a thread's own events, and is the machine's", "[energy][law]") {
  FakeKernel fake;
  PretendRapl(fake);
  const EventConfig energy = EventOf("power/energy-pkg/");
  for (const bool user_only : {false, true}) {
    const auto set = Open({{energy}, {EventOf("page-faults")}, {EventOf("task-clock")}}, {.user_only = user_only});
    INFO(set.status().ToString());
    REQUIRE(set.ok());
    CHECK(set->path(0) == ReadPath::kGroupRead);
    CHECK(set->path(1) != ReadPath::kUsage);
    CHECK(set->multiplexable() == 0);
    CHECK_FALSE(set->fixed_flags(0).has(Validity::kUserOnly));
    CHECK(g_rapl.cpus.size() == 1);
    CHECK(g_rapl.cpus.begin()->second == 0);
    CHECK_FALSE(g_rapl.threads);
    ScopeTotals total;
    {
      const CounterScope scope(*set, total);
      testing::Spin(100'000);
      g_rapl.joules += 7;
    }
    CHECK(total.count(*set, 0).value == 7 * kJoule);
    CHECK(total.count(*set, 0).coverage() == 1);
    CHECK(total.count(*set, 2).value > 0);
    const std::string table = FormatTable(*set, total, 0);
    CHECK_THAT(table, Catch::Contains("7.00 Joules") && Catch::Contains("(of the machine)"));
    CHECK(table.find("of the machine") == table.rfind("of the machine"));
  }
}

TEST_CASE("energy alone in a set, in a group and on any read path of the others has its number", "[energy][law]") {
  FakeKernel fake;
  PretendRapl(fake);
  const EventConfig energy = EventOf("energy-pkg"), clock = EventOf("task-clock"), faults = EventOf("page-faults");
  const std::vector<std::vector<std::vector<EventConfig>>> sets = {
      {{energy}}, {{energy, faults}}, {{clock}, {energy}}, {{faults}, {clock}, {energy}, {energy}}};
  for (const auto& groups : sets) {
    for (const bool by_kernel : {false, true}) {
      const auto set = Open(groups, by_kernel ? Only(ReadPath::kGroupRead) : CounterOptions{});
      REQUIRE(set.ok());
      Snapshot begin, end;
      set->Read(begin);
      testing::Spin(10'000);
      g_rapl.joules += 3;
      set->Read(end);
      for (size_t i = 0; i < set->size(); ++i) {
        const Count count = set->Difference(begin, end, i);
        CAPTURE(set->name(i), by_kernel);
        CHECK(count.validity.counted());
        if (set->name(i) == "energy-pkg") CHECK(count.value == 3 * kJoule);
        // Not the time of the pretended CPU, which is 1 ns for each read.
        if (set->name(i) == "task-clock") CHECK(count.value > 100);
      }
    }
  }
}

TEST_CASE("energy of a CPU that has gone offline is not counted", "[energy]") {
  FakeKernel fake;
  PretendRapl(fake);
  const auto set = Open({{EventOf("power/energy-pkg/")}, {EventOf("page-faults")}});
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  set->Read(begin);
  g_rapl.offline = true;
  set->Read(end);
  CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
  CHECK(set->Difference(begin, end, 1).validity.counted());
}

TEST_CASE("who may not count the machine has no energy, and the reason", "[energy]") {
  FakeKernel fake;
  PretendRapl(fake);
  g_rapl.error = EACCES;
  const auto set = Open({{EventOf("power/energy-pkg/")}, {EventOf("page-faults")}}, {.require_all = false});
  REQUIRE(set.ok());
  CHECK_FALSE(set->reason(0).ok());
  CHECK_THAT(std::string(set->reason(0).message()), Catch::Contains("'power/energy-pkg/' on the whole system"));
  CHECK(set->reason(1).ok());
  Snapshot begin, end;
  set->Read(begin);
  set->Read(end);
  CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
}

TEST_CASE("other units of the machine, and energy for another thread, are refused as before", "[energy]") {
  FakeKernel fake;
  PretendRapl(fake);
  CHECK(absl::IsInvalidArgument(Open({{EventOf("power/event=2/")}}).status()));
  const std::vector<std::vector<EventConfig>> energy = {{EventOf("power/energy-pkg/")}};
  CHECK(absl::IsInvalidArgument(CounterSet::Open(energy, Target::AllThreads()).status()));
}

// As sys::kLinux.open, with the golden tree's PMU `power` in the place of this machine's.
int OpenWithPower(const char* path, int flags) {
  constexpr std::string_view kPower = "/sys/bus/event_source/devices/power/";
  if (!std::string_view(path).starts_with(kPower)) return sys::kLinux.open(path, flags);
  const std::string golden = testing::GoldenRoots("amd_zen3").sysfs + std::string(path).substr(4);
  return sys::kLinux.open(golden.c_str(), flags);
}

TEST_CASE("energy of frames and zones is in Joules, and said to be the machine's", "[energy]") {
  FakeKernel fake;
  PretendRapl(fake);
  fake.below().open = OpenWithPower;
  FrameCounter frames({.events = {"power/energy-pkg/", "page-faults"}});
  INFO(std::string(frames.reason(0)));
  REQUIRE(frames.reason(0).empty());
  frames.Mark();
  {
    const FrameCounter::Zone zone(frames, {"work"});
    g_rapl.joules += 5;
  }
  g_rapl.joules += 2;
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  const ZoneStats* const work = Find(zones, "work");
  REQUIRE(work != nullptr);
  CHECK(work->total[0].value == 5 * kJoule);
  const std::string report = frames.FormatZones();
  CHECK_THAT(report, Catch::Contains("power/energy-pkg/, Joules (of the machine, once for each thread)") &&
                         Catch::Contains("5.000") && Catch::Contains("7.000"));
}

// Where this machine's own RAPL, if it has one, is closed to this user, or it has none.
TEST_CASE("a frame without RAPL has no energy, and the reason", "[energy]") {
  FrameCounter frames({.events = {"power/energy-pkg/", "page-faults"}});
  if (frames.reason(0).empty()) SKIP_TEST("this machine has RAPL, and this user may read it");
  frames.Mark();
  frames.Mark();
  CHECK_THAT(std::string(frames.reason(0)), Catch::Contains("power"));
  CHECK(frames.reason(1).empty());
}

}  // namespace
}  // namespace perfkit
