// Every event twice in a set, by its name and by an alias, in every path: two numbers, and the same.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/count/sets.h"
#include "tests/support/as_user.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FakeKernel;
using testing::FreshPages;

// Something of everything that software events count.
void WorkOfAllKinds(FreshPages& memory) {
  memory.Forget();
  memory.Touch(0, memory.pages());
  testing::Spin(100'000);
  testing::SwitchAway(2);
}

// A snapshot over memory that says so where nothing was written.
void ReadOver(const CounterSet& set, Snapshot& out) {
  std::memset(static_cast<void*>(&out), 0xa5, sizeof(out));
  set.Read(out);
}

// "" or what differs of events `a` and `b` of the set. One reading of each number serves both.
std::string Differ(const CounterSet& set, size_t a, size_t b) {
  FreshPages memory(32);
  Snapshot begin, end;
  WorkOfAllKinds(memory);
  ReadOver(set, begin);
  WorkOfAllKinds(memory);
  ReadOver(set, end);
  const Count first = set.Difference(begin, end, a), second = set.Difference(begin, end, b);
  if (first.validity != second.validity) return "validity";
  if (first.value != second.value) return "value";
  if (first.time_enabled_ns != second.time_enabled_ns || first.time_running_ns != second.time_running_ns)
    return "times";
  if (set.path(a) != set.path(b)) return "path";
  return set.reason(a).code() == set.reason(b).code() ? "" : "reason";
}

constexpr std::pair<const char*, const char*> kTwice[] = {
    {"task-clock", "task-clock"},
    {"cpu-clock", "cpu-clock"},
    {"page-faults", "faults"},
    {"minor-faults", "minor-faults"},
    {"major-faults", "major-faults"},
    {"context-switches", "cs"},
    {"cpu-migrations", "migrations"},
    {"dummy", "dummy"},
    {"alignment-faults", "alignment-faults"},
    {"cpu-migrations", "cpu-migrations"},
};

// All pairs, beside others and in any order, in each path that they have.
bool AllPairsAgree() {
  bool fine = true;
  for (const auto& [name, alias] : kTwice) {
    for (const std::vector<EventSpec>& events :
         {std::vector<EventSpec>{name, alias}, {"page-faults", name, alias}, {name, "task-clock", alias, "dummy"}}) {
      for (int path = -1; path <= static_cast<int>(ReadPath::kUsage); ++path) {
        CounterOptions options;
        options.require_all = false;
        if (path >= 0) options.only_path = static_cast<ReadPath>(path);
        const auto set = CounterSet::Open(events, Target::ThisThread(), options);
        if (!set.ok()) return false;
        const size_t first = events[0].text == name ? 0 : 1;
        const size_t second = events.size() == 2 ? 1 : 2;
        const std::string differ = Differ(*set, first, second);
        CAPTURE(name, events.size(), path, differ);
        CHECK(differ == "");
        fine = fine && differ.empty();
      }
    }
  }
  return fine;
}

TEST_CASE("an event that is twice in a set has one number, in every path", "[duplicates][law]") {
  CHECK(AllPairsAgree());
}

TEST_CASE("an ordinary user's event that is twice in a set has one number too", "[duplicates][law]") {
  CHECK(testing::AsOrdinaryUser(AllPairsAgree));
}

TEST_CASE("migrations in other words are the same migrations", "[duplicates][law]") {
  CHECK(testing::AsOrdinaryUser([] {
    const auto set = CounterSet::Open({"cpu-migrations", "migrations:k", "cpu-migrations:uk", "migrations"});
    return set.ok() && Differ(*set, 0, 1).empty() && Differ(*set, 0, 2).empty() && Differ(*set, 0, 3).empty();
  }));
}

// As many descriptors as one event of its own takes.
TEST_CASE("a copy opens nothing", "[duplicates]") {
  const auto opened_by = [](std::span<const EventSpec> events, Target target) {
    FakeKernel fake;
    const auto set = CounterSet::Open(events, target);
    REQUIRE(set.ok());
    return fake.calls(testing::Call::kPerfEventOpen);
  };
  const std::array once = {EventSpec("page-faults"), EventSpec("dummy")};
  const std::array twice = {EventSpec("page-faults"), EventSpec("faults"), EventSpec("dummy"), EventSpec("dummy")};
  for (const Target target : {Target::ThisThread(), Target::Thread(gettid()), Target::AllThreads()}) {
    CHECK(opened_by(once, target) == opened_by(twice, target));
  }
}

TEST_CASE("a hardware event has as many counters as it is asked for", "[duplicates]") {
  FakeKernel fake;
  testing::MakeHardwareCount(fake);
  const auto groups = ParseEventList("{instructions,cycles,instructions},{instructions,branches}");
  REQUIRE(groups.ok());
  const auto set = CounterSet::Open(*groups, Target::ThisThread(), Only(ReadPath::kGroupRead));
  INFO(set.status());
  REQUIRE(set.ok());
  std::set<uint64_t> seen;  // nanoseconds since their opening, of this fake: each event's are its own
  Snapshot now;
  set->Read(now);
  for (const size_t i : {0, 1, 2, 3, 4}) seen.insert(now.values[i]);
  CHECK(seen.size() == 5);
}

}  // namespace
}  // namespace perfkit
