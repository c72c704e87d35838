// The catalog: complete, in order, parseable, and equal to what perf lists on this machine.
#include "src/event/catalog.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "tests/support/event_roots.h"
#include "tests/support/skip.h"

namespace perfkit::event {
namespace {

using testing::GoldenRoots;

struct Listed {
  std::string name;
  EventCategory category;
  std::string unit, group;
  bool kernel_side, cpu_wide_only;
};

std::vector<Listed> ListAll(const EventRoots& roots) {
  std::vector<Listed> all;
  ForEachKnownEvent(roots, [&](const KnownEvent& event) {
    all.push_back({std::string(event.name), event.category, std::string(event.unit), std::string(event.group),
                   event.kernel_side, event.cpu_wide_only});
  });
  return all;
}

size_t CountOf(const std::vector<Listed>& all, EventCategory category) {
  return std::ranges::count(all, category, &Listed::category);
}

TEST_CASE("the catalog has the table, every PMU's events and every tracepoint", "[catalog]") {
  const std::vector<Listed> intel = ListAll(GoldenRoots("intel_alderlake"));
  CHECK(CountOf(intel, EventCategory::kHardware) == 10);
  CHECK(CountOf(intel, EventCategory::kSoftware) == 12);
  CHECK(CountOf(intel, EventCategory::kThread) == 4);
  CHECK(CountOf(intel, EventCategory::kCache) == 42);
  CHECK(CountOf(intel, EventCategory::kPmu) == 61);
  CHECK(CountOf(intel, EventCategory::kTracepoint) == 11);
  CHECK(CountOf(ListAll(GoldenRoots("kvm_no_pmu")), EventCategory::kPmu) == 1);
}

TEST_CASE("what the catalog lists is what parsing gives", "[catalog]") {
  for (const char* machine : {"intel_alderlake", "amd_zen3", "arm_rk3399", "kvm_no_pmu"}) {
    const EventRoots roots = GoldenRoots(machine);
    std::set<std::string> names;
    for (const Listed& listed : ListAll(roots)) {
      INFO(machine << ": " << listed.name);
      CHECK(names.insert(listed.name).second);
      const absl::StatusOr<EventConfig> event = ParseEvent(listed.name, roots);
      REQUIRE(event.ok());
      CHECK(event->unit == listed.unit);
      CHECK(event->kernel_side == listed.kernel_side);
      CHECK(event->cpu_wide_only == listed.cpu_wide_only);
    }
  }
}

TEST_CASE("PMUs are listed with their terms", "[catalog]") {
  std::map<std::string, KnownPmu> pmus;
  ForEachKnownPmu(GoldenRoots("amd_zen3"), [&](const KnownPmu& pmu) { pmus[pmu.name] = pmu; });
  CHECK(pmus.size() == 12);
  CHECK((pmus["cpu"].core && pmus["cpu"].type == 4 && !pmus["cpu"].cpu_wide_only));
  CHECK(pmus["amd_l3"].cpu_wide_only);
  CHECK(pmus["ibs_op"].terms == std::vector<std::string>{"cnt_ctl"});
  CHECK(pmus["power"].events == std::vector<std::string>{"energy-pkg"});
}

TEST_CASE("a machine with nothing to show still has the table", "[catalog]") {
  const EventRoots nothing = {.sysfs = "/nonexistent", .tracefs = "/nonexistent", .proc = "/nonexistent"};
  CHECK(ListAll(nothing).size() == 68);
}

// The names of `perf list --raw-dump <what>`: separated by blanks, aliases included.
std::set<std::string> PerfLists(const std::string& what) {
  std::set<std::string> names;
  FILE* const pipe = ::popen(("perf list --raw-dump " + what + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return names;
  std::string output(1 << 20, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  ::pclose(pipe);
  std::ranges::replace(output, '\n', ' ');
  base::ForEachPiece(output, ' ', [&](std::string_view name) {
    if (!name.empty()) names.emplace(name);
  });
  return names;
}

// (Not `perf list` as a whole: that mounts tracefs, and this test leaves the machine as it was.)
TEST_CASE("what perf lists, perfkit parses, and the other way round", "[catalog][oracle]") {
  const std::set<std::string> software = PerfLists("sw");
  if (software.empty()) SKIP_TEST("perf is not installed");
  const std::set<std::string> tool = {"duration_time", "user_time", "system_time"};
  std::set<std::string> theirs = PerfLists("hw");
  theirs.merge(PerfLists("cache"));
  theirs.merge(PerfLists("pmu"));
  theirs.insert(software.begin(), software.end());
  size_t parsed = 0;
  for (const std::string& name : theirs) {
    // Besides names, it prints forms ("cpu/t1=v1[,t2=v2,t3 ...]/modifier") and metrics' groups.
    if (tool.count(name) != 0 || name.find_first_of("[<=") != std::string::npos || name.starts_with("rN")) continue;
    INFO(name);
    CHECK(ParseEvent(name).ok());
    ++parsed;
  }
  CHECK(parsed >= 12);
  // By their numbers: newer perfs list "faults" for "page-faults".
  using Parts = std::vector<EventConfig::Part>;
  std::vector<Parts> counted;
  for (const std::string& name : software) {
    if (absl::StatusOr<EventConfig> event = ParseEvent(name); event.ok()) counted.push_back(std::move(event->parts));
  }
  for (const Listed& listed : ListAll({})) {
    if (listed.category != EventCategory::kSoftware) continue;
    INFO(listed.name);
    const absl::StatusOr<EventConfig> event = ParseEvent(listed.name);
    REQUIRE(event.ok());
    CHECK(std::ranges::count(counted, event->parts) >= 1);
  }
}

}  // namespace
}  // namespace perfkit::event
