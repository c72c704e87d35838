// Threads that can't open what the first one opened: their counts are of another kind, and never added up with its.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "perfkit/task_counter.h"
#include "perfkit/thread_slots.h"
#include "src/sys/perf_abi.h"
#include "tests/count/frame/zones.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

constexpr size_t kTouchedByUser = 40, kTouchedByKernel = 80;

thread_local int t_error = 0;           // Of perf_event_open on this thread; 0 means that it works.
thread_local bool t_error_all = false;  // Also of events of user space only.

int OpenUnlessRefused(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (t_error != 0 && (t_error_all || attr->exclude_kernel == 0)) return errno = t_error, -1;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

// The kernel itself touches the second part, when it copies to it.
void TouchBoth() {
  testing::FreshPages pages(kTouchedByUser + kTouchedByKernel);
  pages.Touch(0, kTouchedByUser);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  [[maybe_unused]] const ssize_t got = read(zeros, pages.data() + kTouchedByUser * 4096, kTouchedByKernel * 4096);
  close(zeros);
}

// A number is of all faults, or of those of user space, and says which.
void CheckKind(const Count& count) {
  if (!count.validity.counted()) return;
  const bool user_only = count.validity.has(Validity::kUserOnly);
  INFO(count.value << (user_only ? " of user space" : ""));
  CHECK(count.value >= kTouchedByUser + (user_only ? 0 : kTouchedByKernel));
  if (!testing::kSanitized)
    CHECK((!user_only || count.value < kTouchedByUser + kTouchedByKernel));  // The runtime takes faults, too.
}

TEST_CASE("a thread with other rights, or without descriptors, has no number that says it is the first one's kind") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenUnlessRefused;
  for (const int error : {EACCES, EMFILE}) {
    INFO("errno " << error);
    FrameCounter frames({.events = {"page-faults"}});
    TaskCounter tasks({.events = {"page-faults"}});
    ThreadSlots slots({"page-faults"});
    TaskCounter::Task task = tasks.Create({"task"});
    frames.Mark();
    slots.Publish();
    SlotTotals before, after;
    std::thread([&] {
      t_error = error;
      t_error_all = error == EMFILE;
      slots.Publish();
      slots.Total(before);
      TouchBoth();
      slots.Publish();
      slots.Total(after);
      {
        const TaskScope scope(task);
        TouchBoth();
      }
      PERFKIT_ZONE(frames, "zone");
      TouchBoth();
    }).join();
    frames.Mark();
    const std::vector<ZoneStats> zones = frames.zones();
    const ZoneStats* const zone = Find(zones, "zone", "workers");
    REQUIRE(zone != nullptr);
    CheckKind(zone->total[0]);
    CheckKind(task.totals().counts[0]);
    Count slot = slots.count(after, 0);
    if (slot.validity.counted()) slot.value -= slots.count(before, 0).value;
    CheckKind(slot);
  }
}

TEST_CASE("clocks with and without stolen time, and switches with and without gaps, are not added up", "[law]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenUnlessRefused;
  FrameCounter frames({.events = {"task-clock", "cpu-migrations"}});
  const ReadPath clock = frames.path(0), migrations = frames.path(1);
  frames.Mark();
  std::thread([&] {
    t_error = EMFILE;
    t_error_all = true;
    PERFKIT_ZONE(frames, "zone");
  }).join();
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  const ZoneStats* const zone = Find(zones, "zone", "workers");
  REQUIRE(zone != nullptr);
  if (clock != ReadPath::kUsage) {
    CHECK_FALSE(zone->total[0].validity.counted());
    CHECK(frames.FormatZones().find("not counted on some threads: task-clock: ") != std::string::npos);
  }
  if (migrations != ReadPath::kUsage) CHECK_FALSE(zone->total[1].validity.counted());
}

TEST_CASE("a report says why an event has no number on some threads", "[law]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenUnlessRefused;
  FrameCounter frames({.events = {"dummy", "alignment-faults", "no-such-event"}});
  frames.Mark();
  for (const int error : {EMFILE, ENOMEM}) {  // The first one is kept.
    std::thread([&] {
      t_error = error;
      t_error_all = true;
      PERFKIT_ZONE(frames, "zone");
    }).join();
  }
  frames.Mark();
  const std::string report = frames.FormatZones();
  INFO(report);
  if (!frames.reason(1).empty()) SKIP_TEST("alignment-faults can't be counted here");
  const size_t at = report.find("not counted on some threads: dummy, alignment-faults: ");
  REQUIRE(at != report.npos);
  const std::string line = report.substr(at, report.find('\n', at) - at);
  CHECK(line.find("no descriptor left") != line.npos);
  CHECK(report.find("not counted on some threads", at + 1) == report.npos);
}

// As on a machine without a PMU.
int OpenSoftwareOnly(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (attr->type == 0) return errno = ENOENT, -1;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

TEST_CASE("beside a hardware event that can't be opened, software events are never off their counters") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenSoftwareOnly;
  CounterOptions options;
  options.require_all = false;
  options.only_path = ReadPath::kGroupRead;
  const auto set = CounterSet::Open({"page-faults", "instructions", "context-switches"}, Target::ThisThread(), options);
  INFO(set.status());
  REQUIRE(set.ok());
  CHECK_FALSE(set->reason(1).ok());
  CHECK(set->multiplexable() == 0);
}

TEST_CASE("after privileges are dropped the first thread's own events are not mixed either") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenUnlessRefused;
  FrameCounter frames({.events = {"page-faults"}});
  frames.Mark();
  frames.SetEnabled(false);
  t_error = EACCES;
  t_error_all = false;
  frames.SetEnabled(true);
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "zone");
    TouchBoth();
  }
  frames.Mark();
  t_error = 0;
  const std::vector<ZoneStats> zones = frames.zones();
  const ZoneStats* const zone = Find(zones, "zone");
  REQUIRE(zone != nullptr);
  CheckKind(zone->total[0]);
}

}  // namespace
}  // namespace perfkit
