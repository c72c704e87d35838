// Counting under faults: sets on each kind of target, scopes, frames and zones. A number is right, or said to be
// missing.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "perfkit/scope.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr uint64_t kPages = 40;

// `faults` are those of touching kPages pages, and a few that getrusage counts besides, or they are said to be missing.
void CheckFaults(const Count& faults, const testing::OtherFaults& others) {
  if (!faults.validity.counted()) return;
  INFO(faults.value);
  CHECK(testing::AreFaultsOf(faults.value, kPages, others.Beside(kPages)));
}

absl::Status CountPages(CounterSet& set, size_t event) {
  testing::FreshPages memory(kPages);
  Snapshot begin, end;
  set.Read(end);
  const testing::OtherFaults others;
  set.Read(begin);
  memory.Touch(0, kPages);
  set.Read(end);
  const Count faults = set.Difference(begin, end, event);
  CheckFaults(faults, others);
  return faults.validity.counted() ? absl::OkStatus() : absl::UnavailableError("not counted, and says so");
}

TEST_CASE("a set by its own choice of paths", "[faults]") {
  RunFaults("`CounterSet::Open`, Read", [](Faults& faults) {
    faults.Begin();
    auto set = CounterSet::Open({"task-clock", "page-faults", "context-switches", "cpu-migrations"});
    return set.ok() ? CountPages(*set, 1) : set.status();
  });
}

TEST_CASE("a set that the kernel reads as a group", "[faults]") {
  RunFaults("`CounterSet::Open`, Read, group reads", [](Faults& faults) {
    faults.Begin();
    CounterOptions options;
    options.only_path = ReadPath::kGroupRead;
    auto set = CounterSet::Open({"task-clock", "page-faults"}, Target::ThisThread(), options);
    return set.ok() ? CountPages(*set, 1) : set.status();
  });
}

TEST_CASE("reads of a set that is open", "[faults]") {
  RunFaults("`CounterSet::Read`, group reads", [](Faults& faults) {
    CounterOptions options;
    options.only_path = ReadPath::kGroupRead;
    auto set = CounterSet::Open({"task-clock", "page-faults"}, Target::ThisThread(), options);
    if (!set.ok()) return set.status();
    faults.Begin();
    return CountPages(*set, 1);
  });
}

TEST_CASE("sets of other targets", "[faults]") {
  const auto on = [](Target target) {
    return [target](Faults& faults) {
      faults.Begin();
      auto set = CounterSet::Open({"page-faults"}, target);
      return set.ok() ? CountPages(*set, 0) : set.status();
    };
  };
  RunFaults("`CounterSet::Open`, all threads", on(Target::AllThreads()));
  RunFaults("`CounterSet::Open`, a process", on(Target::Process(getpid())));
}

TEST_CASE("a scope of a set that is open", "[faults]") {
  RunFaults("`CounterScope`", [](Faults& faults) {
    CounterOptions options;
    options.only_path = ReadPath::kGroupRead;
    auto set = CounterSet::Open({"page-faults"}, Target::ThisThread(), options);
    if (!set.ok()) return set.status();
    ScopeTotals total;
    testing::FreshPages memory(kPages);
    faults.Begin();
    const testing::OtherFaults others;
    {
      const CounterScope scope(*set, total);
      memory.Touch(0, kPages);
    }
    const Count counted = total.count(*set, 0);
    CheckFaults(counted, others);
    return counted.validity.counted() ? absl::OkStatus() : absl::UnavailableError("a scope without number says so");
  });
}

TEST_CASE("a set is stopped and started", "[faults]") {
  RunFaults("`CounterSet::Disable`, Enable", [](Faults& faults) {
    CounterOptions options;
    options.only_path = ReadPath::kGroupRead;
    auto set = CounterSet::Open({"page-faults"}, Target::ThisThread(), options);
    if (!set.ok()) return set.status();
    testing::FreshPages memory(2 * kPages);
    Snapshot begin, end;
    faults.Begin();
    const testing::OtherFaults others;
    set->Read(begin);
    const absl::Status disabled = set->Disable();
    memory.Touch(kPages, kPages);
    const absl::Status enabled = set->Enable();
    memory.Touch(0, kPages);
    set->Read(end);
    if (!disabled.ok()) return disabled;
    if (!enabled.ok()) return enabled;
    const Count counted = set->Difference(begin, end, 0);
    CheckFaults(counted, others);
    return counted.validity.counted() ? absl::OkStatus() : absl::UnavailableError("not counted, and says so");
  });
}

// A frame with a zone, on the main thread and on a worker. Numbers are those of the pages, or are missing.
absl::Status CountFrame(FrameCounter& frames) {
  testing::FreshPages memory(kPages), other(kPages);
  uint64_t beside = 0;
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "touch");
    const testing::OtherFaults others;
    memory.Touch(0, kPages);
    beside = others.Beside(kPages);
  }
  std::thread([&] {
    PERFKIT_ZONE(frames, "work");
    other.Touch(0, kPages);
  }).join();
  frames.Mark();
  absl::Status status;
  for (const ZoneStats& zone : frames.zones()) {
    const bool touch = zone.name == "touch";
    if (!touch && zone.name != "work") continue;
    const Count faults = zone.total[0];
    INFO(zone.name << " " << faults.value << " calls " << zone.calls);
    if (!faults.validity.counted()) {
      status.Update(absl::UnavailableError("a zone without number says so"));
    } else if (zone.calls == 1) {
      CHECK(faults.value >= kPages);
      if (touch) CHECK(testing::AreFaultsOf(faults.value, kPages, beside + 20));
    }
  }
  return status;
}

TEST_CASE("frames and zones of two threads", "[faults]") {
  RunFaults("`FrameCounter`: open, zones, a worker", [](Faults& faults) {
    faults.Begin();
    FrameCounter frames({.events = {"page-faults"}, .hitch_budget = std::chrono::nanoseconds(1)});
    return CountFrame(frames);
  });
}

TEST_CASE("zones of a frame counter that is open", "[faults]") {
  RunFaults("`FrameCounter`: zones, group reads", [](Faults& faults) {
    FrameCounter frames({.events = {"page-faults"}, .only_path = ReadPath::kGroupRead});
    faults.Begin();
    return CountFrame(frames);
  });
}

}  // namespace
}  // namespace perfkit
