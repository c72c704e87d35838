// Intel's top-down events on a pretended CPU: one group that slots lead, read by the kernel as a whole.
#include <errno.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/frame_counter.h"
#include "perfkit/metric_set.h"
#include "perfkit/scope.h"
#include "src/count/paths.h"
#include "src/sys/perf_abi.h"
#include "tests/support/event_roots.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

using testing::FakeKernel;

constexpr uint64_t kSlots = 0x400, kFirstMetric = 0x8000, kLastMetric = 0x8300;

// Events of the pretended PMU by descriptor: their config and their leader.
struct PmuEvent {
  uint64_t config = 0;
  int leader = -1;
};
struct PretendedPmu {
  std::map<int, PmuEvent> events;
  std::vector<uint64_t> group;  // What a read of the group of slots returns after the number of members.
};
PretendedPmu g_pmu;

// On machines with several kinds of core raw events have the types of their PMUs, which are dynamic.
bool IsRaw(uint32_t type) { return type == sys::kTypeRaw || type > sys::kTypeBreakpoint; }

// As intel_pmu_hw_config (arch/x86/events/intel/core.c): a metric is accepted only in a group that slots lead.
int OpenOnPmu(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (!IsRaw(attr->type) && attr->type != sys::kTypeHardware) {
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  }
  const bool is_metric = IsRaw(attr->type) && attr->config >= kFirstMetric && attr->config <= kLastMetric;
  const auto leader = g_pmu.events.find(group);
  if (is_metric && (leader == g_pmu.events.end() || leader->second.config != kSlots)) return errno = EINVAL, -1;
  const int fd = sys::kLinux.open("/dev/null", 0);
  g_pmu.events[fd] = {IsRaw(attr->type) ? attr->config : 0, group};
  return fd;
}

ssize_t ReadPmu(int fd, void* buffer, size_t size) {
  const auto event = g_pmu.events.find(fd);
  if (event == g_pmu.events.end()) return sys::kLinux.read(fd, buffer, size);
  std::vector<uint64_t> words = {1};
  for (const auto& [other, sibling] : g_pmu.events) words[0] += sibling.leader == fd ? 1 : 0;
  words.insert(words.end(), g_pmu.group.begin(), g_pmu.group.end());
  words.resize(3 + words[0]);
  std::memcpy(buffer, words.data(), std::min(size, words.size() * sizeof(uint64_t)));
  return static_cast<ssize_t>(std::min(size, words.size() * sizeof(uint64_t)));
}

int ClosePmu(int fd) {
  g_pmu.events.erase(fd);
  return sys::kLinux.close(fd);
}

void PretendPmu(FakeKernel& fake) {
  g_pmu = {};
  fake.below().perf_event_open = OpenOnPmu;
  fake.below().read = ReadPmu;
  fake.below().close = ClosePmu;
  fake.below().ioctl = [](int fd, unsigned long request, unsigned long argument) {
    return g_pmu.events.contains(fd) ? 0 : sys::kLinux.ioctl(fd, request, argument);
  };
}

MetricSet TopdownSet() {
  const absl::StatusOr<MetricSet> set = FindMetricSet("topdown-l1", testing::GoldenRoots("intel_icelake"));
  REQUIRE(set.ok());
  return *set;
}

using EventLists = std::vector<std::vector<EventConfig>>;

EventLists ListOf(std::string_view text) {
  const absl::StatusOr<EventLists> groups = ParseEventList(text, testing::GoldenRoots("intel_icelake"));
  INFO(groups.status().ToString());
  REQUIRE(groups.ok());
  return *groups;
}

// Enabled, running, slots, retiring, bad speculation, frontend bound, backend bound: the counts that
// tools/perf/Documentation/topdown.txt shows, and their sum as slots.
const std::vector<uint64_t> kRecorded = {1'000'373'951, 1'000'373'951,  36'956'333'987, 8'460'978'609,
                                         3'445'383'303, 15'886'483'355, 9'163'488'720};

TEST_CASE("topdown: the set's group opens as one, and its read gives the published percentages", "[topdown]") {
  FakeKernel fake;
  PretendPmu(fake);
  const MetricSet topdown = TopdownSet();
  const absl::StatusOr<CounterSet> set = CounterSet::Open(ListOf(topdown.events));
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  REQUIRE(g_pmu.events.size() == 5);
  for (size_t i = 0; i < set->size(); ++i) CHECK(set->path(i) == ReadPath::kGroupRead);

  Snapshot begin, end;
  g_pmu.group.assign(7, 0);
  set->Read(begin);
  g_pmu.group = kRecorded;
  set->Read(end);
  ScopeTotals total;
  total.Add(*set, begin, end);
  const std::string table = FormatTable(*set, total, 0, topdown.metrics);
  INFO(table);
  for (const char* line : {" 22.89 % of slots  retiring\n", " 9.32 % of slots  bad-speculation\n",
                           " 42.99 % of slots  frontend-bound\n", " 24.80 % of slots  backend-bound\n"}) {
    CHECK(table.find(line) != std::string::npos);
  }
}

TEST_CASE("topdown: half of the time on the PMU is said of each metric", "[topdown]") {
  FakeKernel fake;
  PretendPmu(fake);
  const MetricSet topdown = TopdownSet();
  const absl::StatusOr<CounterSet> set = CounterSet::Open(ListOf(topdown.events));
  REQUIRE(set.ok());
  Snapshot begin, end;
  g_pmu.group.assign(7, 0);
  set->Read(begin);
  g_pmu.group = kRecorded;
  g_pmu.group[0] *= 2;
  set->Read(end);
  ScopeTotals total;
  total.Add(*set, begin, end);
  const std::vector<TableRow> rows = TableRows(*set, total);
  for (const Metric& metric : topdown.metrics) {
    const MetricValue value = metric.Evaluate(NamedCounts(rows));
    CHECK(value.coverage == Approx(0.5));
    CHECK(value.validity.has(Validity::kMultiplexed));
  }
}

TEST_CASE("topdown: a FrameCounter counts the set for each frame", "[topdown]") {
  FakeKernel fake;
  PretendPmu(fake);
  g_pmu.group.assign(7, 0);
  // The parser looks for a PMU on this machine, which may have none: the same events as raw numbers.
  std::vector<Metric> metrics;
  for (const char* text : {"retiring = 100 * r8000 / (r8000 + r8100 + r8200 + r8300) [%]",
                           "frontend-bound = 100 * r8200 / (r8000 + r8100 + r8200 + r8300) [%]"}) {
    metrics.push_back(*Metric::Parse(text));
  }
  FrameCounter frames({.events = {"{r400,r8000,r8100,r8200,r8300}"}});
  REQUIRE(frames.size() == 5);
  for (size_t i = 0; i < frames.size(); ++i) CHECK(frames.reason(i).empty());
  frames.Mark();
  g_pmu.group = kRecorded;
  frames.Mark();
  const std::string report = frames.FormatZones(metrics);
  INFO(report);
  CHECK(report.find("22.89") != std::string::npos);
  CHECK(report.find("42.99") != std::string::npos);
}

TEST_CASE("topdown: without braces, slots begin the group that the metrics join", "[topdown]") {
  FakeKernel fake;
  PretendPmu(fake);
  const absl::StatusOr<CounterSet> set = CounterSet::Open(
      ListOf("cycles,cpu/slots/,cpu/topdown-retiring/,cpu/topdown-bad-spec/,cpu/topdown-fe-bound/,instructions"));
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  size_t leaders = 0;
  for (const auto& [fd, event] : g_pmu.events) leaders += event.leader < 0 ? 1 : 0;
  CHECK(leaders == 2);
}

TEST_CASE("topdown: metrics that slots do not lead are not counted, with a reason", "[topdown]") {
  FakeKernel fake;
  PretendPmu(fake);
  CHECK_FALSE(CounterSet::Open(ListOf("{cycles,cpu/topdown-retiring/}")).ok());
  CounterOptions options;
  options.require_all = false;
  const absl::StatusOr<CounterSet> set =
      CounterSet::Open(ListOf("cycles,cpu/topdown-retiring/"), Target::ThisThread(), options);
  REQUIRE(set.ok());
  CHECK(set->reason(0).ok());
  CHECK_FALSE(set->reason(1).ok());
}

// With its metrics, a read by the kernel sets the register of slots back: no register is read, even before they join.
TEST_CASE("topdown: slots are never read from their register", "[topdown]") {
  const EventRoots roots = testing::GoldenRoots("intel_icelake");
  const auto paths = [&](const char* text) { return count::PathsFor(*ParseEvent(text, roots), Target::ThisThread()); };
  CHECK(paths("cycles").front() == ReadPath::kUserPage);
  for (const char* text : {"cpu/slots/", "cpu/slots/u", "r400"}) {
    INFO(text);
    REQUIRE(paths(text).size() == 1);
    CHECK(paths(text).front() == ReadPath::kGroupRead);
  }
}

}  // namespace
}  // namespace perfkit
