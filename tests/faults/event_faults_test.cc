// Events that are held open and the list of events, under faults.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "perfkit/capabilities.h"
#include "perfkit/warmup.h"
#include "tests/support/fault_table.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

// Returns the number of perf events that this process has open.
size_t PerfEventsOpen() {
  size_t events = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of this list
    events += std::filesystem::read_symlink(entry, gone).string().find("[perf_event]") != std::string::npos ? 1 : 0;
  }
  return events;
}

TEST_CASE("events are held open until Cooldown", "[faults]") {
  RunFaults("`Warmup`, Cooldown", [](Faults& faults) -> absl::Status {
    const size_t before = PerfEventsOpen();
    faults.Begin();
    Warmup warm({"task-clock", "page-faults", "cpu-clock"});
    const size_t held = warm.size();
    CHECK(PerfEventsOpen() == before + held);
    warm.Cooldown();
    CHECK(warm.size() == 0);
    CHECK(PerfEventsOpen() == before);
    if (faults.none()) CHECK(held == 3);
    return held == 3 ? absl::OkStatus() : absl::UnavailableError("fewer events, and says so");
  });
}

// What a verdict says is consistent, and a count is one that the workload can have.
void CheckVerdict(const EventInfo& event) {
  INFO(event.name << " " << UsabilityName(event.usability) << " " << event.value << " " << event.usable);
  const bool is_usable = event.usability != Usability::kRefused && event.usability != Usability::kSilent;
  CHECK(event.usable.ok() == is_usable);
  CHECK(event.cause.empty() == is_usable);
  CHECK((event.value > 0) == (event.usability == Usability::kCounts));
  CHECK(event.path.has_value() == (event.usability != Usability::kRefused && event.usability != Usability::kNotTried));
  // 256 pages, or fewer if pages come in larger folios.
  if (event.name == "page-faults" && event.value != 0) CHECK((event.value >= 16 && event.value <= 100'000));
}

void ListUnderFaults(const char* name, const std::vector<EventCategory>& categories) {
  const EventRoots no_trees{.sysfs = "/nonexistent", .tracefs = "/nonexistent", .proc = "/proc"};
  const ListOptions options{.categories = categories, .roots = no_trees};
  std::vector<std::string> all;
  size_t refused_here = 0;
  RunFaults(name, [&](Faults& faults) -> absl::Status {
    std::vector<std::string> names;
    size_t refused = 0;
    faults.Begin();
    ListEvents(
        [&](const EventInfo& event) {
          names.emplace_back(event.name);
          CheckVerdict(event);
          refused += event.usable.ok() ? 0 : 1;
        },
        options);
    CHECK_FALSE(names.empty());
    if (all.empty()) all = names;
    CHECK(names == all);  // each event is listed, whether it can be counted or not
    if (faults.none()) refused_here = refused;
    return refused <= refused_here ? absl::OkStatus() : absl::UnavailableError("an event is refused");
  });
}

TEST_CASE("events of a thread are listed with verdicts", "[faults]") {
  ListUnderFaults("`ListEvents`", {EventCategory::kThread, EventCategory::kTracepoint});
}

TEST_CASE("software events are listed with verdicts", "[.heavy][doctor_faults]") {
  ListUnderFaults("`ListEvents`, software events", {EventCategory::kSoftware});
}

}  // namespace
}  // namespace perfkit
