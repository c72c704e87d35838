// Events that have a part for each kind of core, on a pretended machine with two kinds: how parts are opened, grouped,
// merged and labelled. tests/pmu/hybrid_test.cc has a real kernel's view.
#include <errno.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "src/count/table.h"
#include "src/open/task_cpu.h"
#include "src/sys/perf_abi.h"
#include "tests/count/sets.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FakeKernel;

// Kind 0 is PMU 7, kind 1 is PMU 8. Both count one event a nanosecond of the pretended time.
constexpr uint64_t kKindShift = 32, kFirstPmu = 7;
constexpr int kNowhere = -1;
// A CPU that no machine has.
constexpr int kNoSuchCpu = 99'999;

struct FakeEvent {
  int kind = kNowhere;  // kNowhere: of the kernel, counts wherever the thread is
  int cpu = -1, leader = -1;
  uint64_t format = 0, value = 0, enabled = 0, running = 0;
};

struct FakeMachine {
  std::map<int, FakeEvent> events;          // by descriptor
  int kind = 0;                             // where the thread is
  uint64_t share = 1;                       // a counter has each event for one share-th of the time
  uint64_t read_ns = 100;                   // for a read, which grows and shrinks
  bool offline = false;                     // CPUs stand still
  int refuse = 0;                           // the n-th event to be opened does not fit its group; 0: all do
  std::pair<uint64_t, int> refused{0, -1};  // that event and its group: later requests get the same answer
};
FakeMachine g_machine;

void Pass(uint64_t ns) {
  for (auto& [fd, event] : g_machine.events) {
    if (g_machine.offline && event.cpu >= 0) continue;
    const bool here = event.cpu >= 0 || event.kind == kNowhere || event.kind == g_machine.kind;
    event.enabled += ns;
    event.running += here ? ns / g_machine.share : 0;
    event.value += here ? ns / g_machine.share : 0;
  }
}

int FakeOpen(const sys::PerfEventAttr* attr, pid_t, int cpu, int group, unsigned long) {
  const std::pair<uint64_t, int> asked{attr->config, group};
  if (g_machine.refuse != 0 && --g_machine.refuse == 0) g_machine.refused = asked;
  if (group >= 0 && asked == g_machine.refused) return errno = EINVAL, -1;
  Pass(100'000);
  FakeEvent event{.cpu = cpu, .leader = group, .format = attr->read_format};
  if (attr->type == sys::kTypeHardware) event.kind = static_cast<int>((attr->config >> kKindShift) - kFirstPmu);
  const int fd = sys::kLinux.open("/dev/null", 0);
  g_machine.events[fd] = event;
  return fd;
}

ssize_t FakeRead(int fd, void* buffer, size_t size) {
  const auto found = g_machine.events.find(fd);
  if (found == g_machine.events.end()) return sys::kLinux.read(fd, buffer, size);
  Pass(g_machine.read_ns = g_machine.read_ns * 7 % 1009);
  std::vector<uint64_t> words;
  if ((found->second.format & sys::kFormatGroup) != 0) words.push_back(0);
  for (const uint64_t time : {found->second.enabled, found->second.running}) words.push_back(time);
  std::vector<uint64_t> values{found->second.value};
  for (const auto& [other, event] : g_machine.events) {
    if (event.leader == fd) values.push_back(event.value);
  }
  if ((found->second.format & sys::kFormatGroup) != 0) words[0] = values.size();
  words.insert((found->second.format & sys::kFormatGroup) != 0 ? words.end() : words.begin(), values.begin(),
               values.end());
  std::memcpy(buffer, words.data(), std::min(size, words.size() * sizeof(uint64_t)));
  return static_cast<ssize_t>(std::min(size, words.size() * sizeof(uint64_t)));
}

int FakeClose(int fd) {
  g_machine.events.erase(fd);
  return sys::kLinux.close(fd);
}

void Pretend(FakeKernel& fake) {
  g_machine = {};
  fake.below().perf_event_open = FakeOpen;
  fake.below().read = FakeRead;
  fake.below().close = FakeClose;
  fake.below().ioctl = [](int, unsigned long, unsigned long) { return 0; };
}

// A generic event: a part for each of two kinds of core, on these CPUs.
EventConfig Generic(uint64_t config, std::vector<int> first = {0}, std::vector<int> second = {kNoSuchCpu}) {
  EventConfig event;
  event.name = "generic";
  for (const std::vector<int>& cpus : {first, second}) {
    EventConfig::Part part;
    part.type = sys::kTypeHardware;
    part.config = config | (kFirstPmu + event.parts.size()) << kKindShift;
    part.only_cpus = cpus;
    event.parts.push_back(part);
  }
  return event;
}

EventConfig OfKind(size_t kind, uint64_t config = 0) {
  EventConfig event = Generic(config);
  event.name = kind == 0 ? "little" : "big";
  event.parts = {event.parts[kind]};
  return event;
}

EventConfig AlignmentFaults() {
  EventConfig event;
  event.name = "alignment-faults";
  event.parts.emplace_back();
  event.parts[0].type = sys::kTypeSoftware;
  event.parts[0].config = event::kAlignmentFaults.config;
  return event;
}

using EventGroups = std::vector<std::vector<EventConfig>>;

absl::StatusOr<CounterSet> OpenByRead(const EventGroups& groups, Target target = Target::ThisThread()) {
  return CounterSet::Open(groups, target, Only(ReadPath::kGroupRead));
}

// How many groups there are, and how many events.
struct Opened {
  size_t leaders = 0, all = 0;
};
Opened CountOpened() {
  Opened opened;
  for (const auto& [fd, event] : g_machine.events) {
    ++opened.all;
    opened.leaders += event.leader == -1 ? 1 : 0;
  }
  return opened;
}

std::vector<int> AllCpus() {
  const absl::StatusOr<std::vector<int>> cpus = open::PresentCpus();
  REQUIRE(cpus.ok());
  return *cpus;
}

TEST_CASE("parts add up wherever the thread is, and are never taken for multiplexed", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  const auto set = OpenByRead({{Generic(1, AllCpus())}});
  REQUIRE(set.ok());
  CHECK(CountOpened().leaders == 2);
  CHECK_FALSE(set->fixed_flags(0).has(Validity::kSomeCpus));
  Snapshot begin, end;
  set->Read(begin);
  for (int i = 0; i < 200; ++i) {
    Pass(5000);
    if (i % 3 != 0) g_machine.kind ^= 1;
    Pass(3000);
    set->Read(end);
    const Count count = set->Difference(begin, end, 0);
    INFO(i << ": " << count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns);
    CHECK(count.value >= 8000);
    CHECK(count.value < 8000 + 3 * 1009);
    CHECK(count.value == count.time_running_ns);
    CHECK(count.coverage() == 1);
    CHECK_FALSE(count.validity.has(Validity::kMultiplexed));
    begin = end;
  }
}

TEST_CASE("parts that share counters are scaled over both kinds of core", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  g_machine.share = 4;
  const auto set = OpenByRead({{Generic(1, AllCpus())}});
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  Pass(4'000'000);
  g_machine.kind = 1;
  Pass(4'000'000);
  set->Read(end);
  const Count count = set->Difference(begin, end, 0);
  CHECK(count.coverage() == Approx(0.25).epsilon(0.01));
  CHECK(static_cast<double>(*count.scaled()) == Approx(8e6).epsilon(0.01));
}

TEST_CASE("events share one group for each kind of core", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  for (const bool written : {false, true}) {
    const EventGroups groups = written ? EventGroups{{Generic(1), Generic(2), Generic(3)}}
                                       : EventGroups{{Generic(1)}, {Generic(2)}, {Generic(3)}};
    const auto set = OpenByRead(groups);
    REQUIRE(set.ok());
    CHECK(CountOpened().leaders == 2);
    CHECK(CountOpened().all == 6);
  }
  CHECK(fake.Leaks() == "");
}

TEST_CASE("an event that fits on one kind of core only is in no group with one part", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  g_machine.refuse = 4;  // the second event's second part
  const auto alone = OpenByRead({{Generic(1)}, {Generic(2)}});
  REQUIRE(alone.ok());
  CHECK(CountOpened().leaders == 4);
  CHECK(CountOpened().all == 4);
  Snapshot begin, end;
  alone->Read(begin);
  Pass(1000);
  alone->Read(end);
  CHECK(alone->Difference(begin, end, 1).value >= 1000);
  CHECK(alone->Difference(begin, end, 1).value < 1000 + 5 * 1009);
  g_machine.refuse = 4;
  const auto together = OpenByRead({{Generic(1), Generic(2)}});
  CHECK(absl::IsInvalidArgument(together.status()));
}

TEST_CASE("what the kernel counts itself stays out of groups that stand still at times", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  for (const bool first : {false, true}) {
    const auto set = OpenByRead(first ? EventGroups{{AlignmentFaults()}, {OfKind(0)}}
                                      : EventGroups{{OfKind(0)}, {AlignmentFaults()}, {OfKind(0, 1)}});
    REQUIRE(set.ok());
    CHECK(CountOpened().leaders == 2);
    g_machine.kind = 1;
    Snapshot begin, end;
    set->Read(begin);
    Pass(1000);
    set->Read(end);
    const Count faults = set->Difference(begin, end, first ? 0 : 1);
    CHECK(faults.value >= 1000);
    CHECK(faults.coverage() == 1);
    CHECK_FALSE(set->Difference(begin, end, first ? 1 : 0).validity.counted());
    g_machine.kind = 0;
  }
}

TEST_CASE("in a group that the user wrote it is counted with each kind of core", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  const auto set = OpenByRead({{Generic(1), AlignmentFaults()}});
  REQUIRE(set.ok());
  CHECK(CountOpened().leaders == 2);
  CHECK(CountOpened().all == 4);
  CHECK(absl::IsInvalidArgument(OpenByRead({{OfKind(0), OfKind(1)}}).status()));
  CHECK(absl::IsInvalidArgument(OpenByRead({{OfKind(0), Generic(1)}}).status()));
  CHECK(absl::IsInvalidArgument(OpenByRead({{AlignmentFaults(), Generic(1)}}).status()));
}

TEST_CASE("an event of one kind of core says so, and is not scaled", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  const auto set = OpenByRead({{OfKind(1)}});
  REQUIRE(set.ok());
  CHECK(set->fixed_flags(0).has(Validity::kSomeCpus));
  Snapshot begin, end;
  set->Read(begin);
  Pass(3'000'000);
  g_machine.kind = 1;
  Pass(1'000'000);
  set->Read(end);
  const Count count = set->Difference(begin, end, 0);
  CHECK(static_cast<double>(count.value) == Approx(1e6).epsilon(0.01));
  CHECK(count.coverage() == Approx(0.25).epsilon(0.01));
  CHECK(count.validity.has(Validity::kMultiplexed));
  CHECK_FALSE(count.scaled().has_value());
  CHECK(count::FormatWorth(count.coverage(), count.validity) == "25 % coverage, not scaled; on one kind of core only");
}

TEST_CASE("a whole CPU has the part of its own core", "[hybrid]") {
  FakeKernel fake;
  Pretend(fake);
  const auto one = OpenByRead({{Generic(1)}}, Target::Cpu(0));
  INFO(one.status().ToString());
  REQUIRE(one.ok());
  CHECK(CountOpened().all == 1);
  CHECK(absl::IsNotFound(OpenByRead({{OfKind(1)}}, Target::Cpu(0)).status()));
}

TEST_CASE("whole CPUs have the parts of their own cores, each with its own time", "[hybrid]") {
  if (AllCpus().size() < 2) SKIP_TEST("this takes two CPUs");
  FakeKernel fake;
  Pretend(fake);
  g_machine.share = 2;
  const auto all = OpenByRead({{Generic(1, {0}, {1})}}, Target::System());
  REQUIRE(all.ok());
  Snapshot begin, end;
  all->Read(begin);
  Pass(10'000'000);
  all->Read(end);
  const Count count = all->Difference(begin, end, 0);
  CHECK(count.coverage() == Approx(0.5).epsilon(0.01));
  CHECK(static_cast<double>(*count.scaled()) == Approx(2e7).epsilon(0.01));
  CHECK_FALSE(count.validity.has(Validity::kSomeCpus));
}

TEST_CASE("a CPU that went offline has no more numbers, and is not 0", "[hotplug]") {
  FakeKernel fake;
  Pretend(fake);
  for (const EventGroups& groups : {EventGroups{{OfKind(0)}}, EventGroups{{AlignmentFaults()}}}) {
    g_machine.offline = false;
    auto set = OpenByRead(groups, Target::Cpu(0));
    REQUIRE(set.ok());
    std::array<Snapshot, 4> at;
    set->Read(at[0]);
    Pass(1000);
    set->Read(at[1]);
    CHECK(set->Difference(at[0], at[1], 0).value >= 1000);
    g_machine.offline = true;
    set->Read(at[2]);
    CHECK_FALSE(set->Difference(at[1], at[2], 0).validity.counted());
    // Switched off by us it stands still, too, and that is 0.
    g_machine.offline = false;
    REQUIRE(set->Disable().ok());
    g_machine.offline = true;
    set->Read(at[2]);
    set->Read(at[3]);
    CHECK(set->Difference(at[2], at[3], 0).value == 0);
    CHECK(set->Difference(at[1], at[3], 0).validity.counted());
    g_machine.offline = false;
    REQUIRE(set->Enable().ok());
    set->Read(at[3]);
    CHECK(set->Difference(at[1], at[3], 0).validity.counted());
  }
}

}  // namespace
}  // namespace perfkit
