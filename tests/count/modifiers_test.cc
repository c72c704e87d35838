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

}  // namespace
}  // namespace perfkit
