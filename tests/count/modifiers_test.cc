// Modifiers that an event cannot keep: refused in words, and never a number that is 0 or more than was asked for.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/count/sets.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

std::string Refusal(const char* event, Target target) {
  const auto set = CounterSet::Open({event}, target);
  if (set.ok()) return "opened";
  return absl::IsInvalidArgument(set.status()) ? std::string(set.status().message()) : set.status().ToString();
}

TEST_CASE("modifiers that would make a number false are refused, for every target", "[modifiers]") {
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    for (const char* clock : {"task-clock:u", "task-clock:k", "cpu-clock:u", "cpu-clock:h", "task-clock:G"}) {
      CAPTURE(clock);
      CHECK(Refusal(clock, target).find("Remedy: leave the modifier out") != std::string::npos);
    }
    for (const char* never : {"page-faults:h", "dummy:h", "minor-faults:G", "context-switches:u"}) {
      CAPTURE(never);
      CHECK(Refusal(never, target).find("Remedy: leave the modifier out") != std::string::npos);
    }
  }
}

TEST_CASE("modifiers that an event keeps are none to refuse", "[modifiers]") {
  for (const char* event : {"page-faults:u", "task-clock:H", "minor-faults:uH", "task-clock"}) {
    CAPTURE(event);
    CHECK(Refusal(event, Target::ThisThread()) == "opened");
  }
}

TEST_CASE("getrusage, which counts the kernel, too, is no path to user space only", "[modifiers]") {
  const auto open = [](const char* event) {
    CounterOptions options = Only(ReadPath::kUsage);
    options.user_only = true;
    return CounterSet::Open({event}, Target::ThisThread(), options).status();
  };
  CHECK(absl::IsUnavailable(open("page-faults")));
  CHECK(absl::IsUnavailable(open("minor-faults")));
  CHECK(open("page-faults:uk").ok());
  CHECK(open("context-switches").ok());
  CHECK(open("task-clock").ok());
}

TEST_CASE("an event that keeps its own modifiers is not said to be of user space only", "[modifiers][root]") {
  if (geteuid() != 0) SKIP_TEST("only root may observe the kernel everywhere");
  CounterOptions options = Only(ReadPath::kGroupRead);
  options.user_only = true;
  const std::vector<EventSpec> events = {"page-faults:uk", "page-faults:k", "page-faults"};
  CounterSet set = MustOpen(events, options);
  Snapshot before, after;
  set.Read(before);
  set.Read(after);
  const auto user_only = [&](size_t i) {
    return (set.Difference(before, after, i).validity.flags & Validity::kUserOnly) != 0;
  };
  CHECK_FALSE(user_only(0));
  CHECK_FALSE(user_only(1));
  CHECK(user_only(2));
}

// Spins for 50 ms of CPU time, with sleeps, each of which adds to the event.
TEST_CASE("events that count several at once are counted as the kernel does", "[tracepoint_weight][root][law]") {
  const int result = testing::WithTracefs([] {
    constexpr char kEvent[] = "sched:sched_stat_runtime";
    auto by_kernel = CounterSet::Open({kEvent}, Target::ThisThread(), Only(ReadPath::kGroupRead));
    auto by_default = CounterSet::Open({kEvent});
    if (!by_kernel.ok() || !by_default.ok()) return false;
    Snapshot begun[2], ended[2];
    by_kernel->Read(begun[0]);
    by_default->Read(begun[1]);
    for (int i = 0; i < 10; ++i) {
      testing::Spin(5'000'000);
      testing::Sleep(100'000);
    }
    by_default->Read(ended[1]);
    by_kernel->Read(ended[0]);
    const Count kernel = by_kernel->Difference(begun[0], ended[0], 0);
    const Count found = by_default->Difference(begun[1], ended[1], 0);
    return found.value > 0 && found.value <= kernel.value;
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted");
  CHECK(result == 0);
}

}  // namespace
}  // namespace perfkit
