// Sets of metrics on other machines: which events and formulas each gets, and the reason where it gets none.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/metric_set.h"
#include "tests/support/event_roots.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

using testing::GoldenRoots;
using testing::TempFolder;

MetricSet SetOf(std::string_view name, const EventRoots& roots) {
  const absl::StatusOr<MetricSet> set = FindMetricSet(name, roots);
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  return *set;
}

std::string ReasonOf(std::string_view name, const EventRoots& roots) {
  const absl::StatusOr<MetricSet> set = FindMetricSet(name, roots);
  if (set.ok()) return "found";
  CHECK(absl::IsUnavailable(set.status()));
  return std::string(set.status().message());
}

// Returns the values of a set's metrics, by name, for counts by event.
std::map<std::string, double> Values(const MetricSet& set, const std::map<std::string, uint64_t>& by_event) {
  std::vector<NamedCount> counts;
  for (const auto& [name, value] : by_event) counts.push_back({name, {value, 0, 0, {}}});
  std::map<std::string, double> values;
  for (const Metric& metric : set.metrics) {
    const MetricValue value = metric.Evaluate(counts);
    INFO(metric.text() << ": " << value.reason);
    REQUIRE(value.has_value());
    values[metric.name()] = value.value;
  }
  return values;
}

// A copy of a golden tree, to be changed, with a /proc/cpuinfo.
class ChangedMachine {
 public:
  explicit ChangedMachine(const std::string& machine) {
    std::filesystem::copy(GoldenRoots(machine).sysfs, folder_.path(), std::filesystem::copy_options::recursive);
  }
  void Write(const std::string& name, const std::string& text) const { folder_.Write(name, text); }
  void WriteCpuInfo(const char* vendor, int family, int model) const {
    Write("/cpuinfo", absl::StrFormat("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: "
                                      "x\n\nprocessor\t: 1\nmodel\t\t: 0\n",
                                      vendor, family, model));
  }
  void Remove(const std::string& name) const { std::filesystem::remove(folder_.path() + name); }
  EventRoots roots() const { return {.sysfs = folder_.path(), .tracefs = folder_.path(), .proc = folder_.path()}; }

 private:
  TempFolder folder_;
};

TEST_CASE("metric sets: each event of a metric is among the set's, on each machine", "[metric]") {
  for (const char* machine : {"intel_alderlake", "intel_icelake", "amd_zen3", "arm_rk3399", "arm_neoverse_n2"}) {
    for (const std::string_view name : MetricSetNames()) {
      const absl::StatusOr<MetricSet> set = FindMetricSet(name, GoldenRoots(machine));
      INFO(machine << " " << std::string(name) << ": " << set.status().ToString());
      if (!set.ok()) {
        CHECK(name == "topdown-l1");
        continue;
      }
      const auto groups = ParseEventList(set->events, GoldenRoots(machine));
      REQUIRE(groups.ok());
      std::vector<std::string> events;
      for (const auto& group : *groups) {
        for (const EventConfig& event : group) events.push_back(event.name);
      }
      CHECK(events.size() <= kMaxEvents);
      CHECK(!set->metrics.empty());
      for (const Metric& metric : set->metrics) {
        for (const std::string& event : metric.events()) {
          INFO(event);
          CHECK(std::find(events.begin(), events.end(), event) != events.end());
        }
      }
    }
  }
}

TEST_CASE("metric sets: without a PMU there is none, and the reason says so", "[metric]") {
  for (const std::string_view name : MetricSetNames()) {
    CHECK(ReasonOf(name, testing::VmRoots()) == absl::StrFormat("metrics '%s': this machine has no PMU", name));
  }
  const absl::StatusOr<MetricSet> unknown = FindMetricSet("icp");
  CHECK(absl::IsInvalidArgument(unknown.status()));
  CHECK(std::string(unknown.status().message()) ==
        "no set of metrics is called 'icp'; there are 'ipc', 'branch', 'cache', 'tlb', 'topdown-l1'");
}

TEST_CASE("metric sets: generic sets have known answers", "[metric]") {
  const EventRoots roots = GoldenRoots("intel_icelake");
  auto values = Values(SetOf("ipc", roots), {{"cycles", 200}, {"instructions", 500}, {"task-clock", 100}});
  CHECK(values == std::map<std::string, double>{{"ipc", 2.5}, {"clock-rate", 2}});
  values = Values(SetOf("branch", roots), {{"instructions", 1000}, {"branches", 200}, {"branch-misses", 5}});
  CHECK(values == std::map<std::string, double>{{"branch-miss-rate", 2.5}, {"branch-mpki", 5}});
}

TEST_CASE("metric sets: Intel's slots lead one group", "[metric]") {
  CHECK(SetOf("topdown-l1", GoldenRoots("intel_icelake")).events ==
        "{cpu/slots/,cpu/topdown-retiring/,cpu/topdown-bad-spec/,cpu/topdown-fe-bound/,cpu/topdown-be-bound/}");
  CHECK(SetOf("topdown-l1", GoldenRoots("intel_alderlake")).events.starts_with("{cpu_core/slots/,cpu_core/topdown-"));
  // The four counts and the percentages that tools/perf/Documentation/topdown.txt prints.
  const auto values =
      Values(SetOf("topdown-l1", GoldenRoots("intel_icelake")), {{"cpu/topdown-retiring/", 8'460'978'609},
                                                                 {"cpu/topdown-bad-spec/", 3'445'383'303},
                                                                 {"cpu/topdown-fe-bound/", 15'886'483'355},
                                                                 {"cpu/topdown-be-bound/", 9'163'488'720}});
  CHECK(values.at("retiring") == Approx(22.9).margin(0.05));
  CHECK(values.at("bad-speculation") == Approx(9.3).margin(0.05));
  CHECK(values.at("frontend-bound") == Approx(43.0).margin(0.05));
  CHECK(values.at("backend-bound") == Approx(24.8).margin(0.05));

  const ChangedMachine older("intel_icelake");
  older.Remove("/bus/event_source/devices/cpu/events/slots");
  CHECK(ReasonOf("topdown-l1", older.roots()) ==
        "metrics 'topdown-l1': this CPU has no events for it, or there is no published formula");
  older.Write("/bus/event_source/devices/cpu/events/topdown-total-slots", "event=0x3c,umask=0x0,any=1");
  CHECK(ReasonOf("topdown-l1", older.roots()) ==
        "metrics 'topdown-l1': this CPU counts slots of a core for both of its threads together");
}

TEST_CASE("metric sets: AMD's formula is that of the core", "[metric]") {
  const ChangedMachine machine("amd_zen3");
  struct Row {
    int family, model, width;
  };
  for (const Row& row : {Row{0x19, 0x11, 6}, Row{0x19, 0x61, 6}, Row{0x1a, 0x02, 8}, Row{0x1a, 0x44, 8},
                         Row{0x19, 0x21, 0}, Row{0x19, 0x50, 0}, Row{0x17, 0x31, 0}, Row{0x1a, 0x50, 0}}) {
    machine.WriteCpuInfo("AuthenticAMD", row.family, row.model);
    CAPTURE(row.family, row.model);
    if (row.width == 0) {
      CHECK(ReasonOf("topdown-l1", machine.roots()).find("no published formula") != std::string::npos);
      continue;
    }
    const uint64_t slots = 1000 * static_cast<uint64_t>(row.width);
    const auto values = Values(SetOf("topdown-l1", machine.roots()), {{"cycles", 1000},
                                                                      {"cpu/event=0x1a0,umask=0x01/", slots / 10},
                                                                      {"cpu/event=0x1a0,umask=0x1e/", slots / 5},
                                                                      {"cpu/event=0x1a0,umask=0x60/", slots / 20},
                                                                      {"cpu/event=0xaa,umask=0x07/", slots * 65 / 100},
                                                                      {"cpu/event=0xc1/", slots / 2}});
    CHECK(values.at("frontend-bound") == Approx(10));
    CHECK(values.at("backend-bound") == Approx(20));
    CHECK(values.at("smt-contention") == Approx(5));
    CHECK(values.at("bad-speculation") == Approx(15));
    CHECK(values.at("retiring") == Approx(50));
  }
  machine.WriteCpuInfo("GenuineIntel", 0x19, 0x11);
  CHECK(ReasonOf("topdown-l1", machine.roots()).find("no published formula") != std::string::npos);
}

TEST_CASE("metric sets: the parts of a Neoverse core's slots add up to all of them", "[metric]") {
  const ChangedMachine machine("arm_neoverse_n2");
  const std::string pmu = "armv8_pmuv3_0/";
  constexpr char kMidr[] = "/devices/system/cpu/cpu0/regs/identification/midr_el1";
  struct Row {
    const char* midr;
    double once_more, frontend_cycles, backend_cycles;
  };
  for (const Row& row : {Row{"0x00000000410fd490", 1, 1, 3}, Row{"0x00000000410fd493", 0, 1, 3},
                         Row{"0x00000000411fd4f0", 0, 1, 3}, Row{"0x00000000411fd401", 0, 4, 0}}) {
    machine.Write(kMidr, row.midr);
    INFO(row.midr);
    // 5 slots a cycle; an erroneous N2 counts one stall of the frontend too many in each.
    const uint64_t extra = row.once_more > 0 ? 1000 : 0;
    auto values = Values(SetOf("topdown-l1", machine.roots()), {{"cycles", 1000},
                                                                {pmu + "stall_slot_frontend/", 1000 + extra},
                                                                {pmu + "stall_slot_backend/", 1500},
                                                                {pmu + "stall_slot/", 2500 + extra},
                                                                {pmu + "op_retired/", 2000},
                                                                {pmu + "op_spec/", 2500},
                                                                {pmu + "br_mis_pred/", 10}});
    CHECK(values["retiring"] == Approx(40));
    CHECK(values["frontend-bound"] == Approx(20 - row.frontend_cycles));
    CHECK(values["backend-bound"] == Approx(30 - row.backend_cycles));
    CHECK(values["bad-speculation"] == Approx(10 + row.frontend_cycles + row.backend_cycles));
  }
}

TEST_CASE("metric sets: an Arm core without a formula, or with a PMU that hides events, has a reason", "[metric]") {
  const ChangedMachine machine("arm_neoverse_n2");
  constexpr char kMidr[] = "/devices/system/cpu/cpu0/regs/identification/midr_el1";
  machine.Write(kMidr, "0x00000000413fd0c1\n");  // Neoverse N1
  CHECK(ReasonOf("topdown-l1", machine.roots()) ==
        "metrics 'topdown-l1': there is no published formula for this core (midr_el1 0x413fd0c1)");
  machine.Write(kMidr, "0x00000000410fd490\n");
  machine.Write("/bus/event_source/devices/armv8_pmuv3_0/caps/slots", "0x00000000\n");
  CHECK(ReasonOf("topdown-l1", machine.roots()) == "metrics 'topdown-l1': the PMU does not say how many slots it has");
  machine.Remove("/bus/event_source/devices/armv8_pmuv3_0/events/op_spec");
  CHECK(ReasonOf("topdown-l1", machine.roots()) ==
        "metrics 'topdown-l1': the PMU of this Neoverse N2 does not offer all of its events here");
  machine.Remove(kMidr);
  CHECK(ReasonOf("topdown-l1", machine.roots()) ==
        "metrics 'topdown-l1': sysfs does not say which core this is (midr_el1)");
  CHECK(ReasonOf("topdown-l1", GoldenRoots("arm_rk3399")) ==
        "metrics 'topdown-l1': this machine has several kinds of core");
}

}  // namespace
}  // namespace perfkit
