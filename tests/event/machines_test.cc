// Events on other machines: what each golden sysfs tree makes of a name.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/event.h"
#include "src/base/cpu_list.h"
#include "src/event/pmu.h"
#include "tests/support/event_roots.h"

namespace perfkit {
namespace {

using testing::GoldenRoots;
using testing::RefusalOf;

EventConfig Parse(std::string_view text, const std::string& machine) {
  absl::StatusOr<EventConfig> event = ParseEvent(text, GoldenRoots(machine));
  INFO(machine << ": " << std::string(text) << ": " << event.status().ToString());
  REQUIRE(event.ok());
  return *std::move(event);
}

// "type:config" or "type:config:config1" of each part, in hexadecimal, with its PMU.
std::string Parts(std::string_view text, const std::string& machine) {
  std::string all;
  for (const EventConfig::Part& part : Parse(text, machine).parts) {
    char line[256];
    std::snprintf(line, sizeof(line), "%s %x:%llx", part.pmu.c_str(), part.type,
                  static_cast<unsigned long long>(part.config));
    all += (all.empty() ? "" : "; ") + std::string(line);
    if (part.config1 != 0) {
      std::snprintf(line, sizeof(line), ":%llx", static_cast<unsigned long long>(part.config1));
      all += line;
    }
  }
  return all;
}

constexpr char kIntel[] = "intel_alderlake";
constexpr char kAmd[] = "amd_zen3";
constexpr char kArm[] = "arm_rk3399";
constexpr char kVm[] = "kvm_no_pmu";

TEST_CASE("on hybrid machines a generic event has one part for each core PMU", "[hybrid]") {
  const EventConfig cycles = Parse("cycles:u", kIntel);
  REQUIRE(cycles.parts.size() == 2);
  CHECK(cycles.parts[0].pmu == "cpu_atom");
  CHECK(cycles.parts[0].config == uint64_t{10} << 32);
  CHECK(cycles.parts[0].only_cpus == base::ParseCpuList("16-23"));
  CHECK(cycles.parts[1].pmu == "cpu_core");
  CHECK(cycles.parts[1].config == uint64_t{4} << 32);
  CHECK(cycles.parts[1].only_cpus == base::ParseCpuList("0-15"));
  CHECK(cycles.exclude_kernel);
  CHECK_FALSE(cycles.cpu_wide_only);
  CHECK(Parts("LLC-load-misses", kIntel) == "cpu_atom 3:a00010002; cpu_core 3:400010002");
  CHECK(Parts("instructions", kArm) == "armv8_cortex_a53 0:700000001; armv8_cortex_a72 0:800000001");
  CHECK(Parts("r1c2", kIntel) == "cpu_atom a:1c2; cpu_core 4:1c2");
}

// "type:config" of what each part's own PMU calls the event; "-" where it does not.
std::string OwnParts(std::string_view text, const std::string& machine) {
  std::string all;
  for (const EventConfig::Part& part : Parse(text, machine).parts) {
    char own[64] = "-";
    if (part.own_type != 0) {
      std::snprintf(own, sizeof(own), "%x:%llx", part.own_type, static_cast<unsigned long long>(part.own_config));
    }
    all += (all.empty() ? "" : "; ") + std::string(own);
  }
  return all;
}

TEST_CASE("arm64's PMUs have names of their own for generic events", "[hybrid]") {
  CHECK(OwnParts("cycles", kArm) == "7:11; 8:11");
  CHECK(OwnParts("instructions:u", kArm) == "7:8; 8:8");
  CHECK(OwnParts("cache-misses", kArm) == "7:3; 8:3");
  CHECK(OwnParts("branch-misses", kArm) == "7:10; 8:10");
  CHECK(OwnParts("armv8_cortex_a72/instructions/", kArm) == "8:8");
  CHECK(OwnParts("LLC-load-misses", kArm) == "-; -");
  CHECK(OwnParts("page-faults", kArm) == "-");
  for (const char* text : {"cycles", "instructions", "cpu_core/cycles/"}) {
    CHECK(OwnParts(text, kIntel).find(':') == std::string::npos);
  }
}

TEST_CASE("software events are one part on every machine", "[hybrid]") {
  for (const char* machine : {kIntel, kAmd, kArm, kVm}) {
    CHECK(Parts("page-faults", machine) == " 1:2");
    CHECK(Parse("page-faults", machine).parts[0].only_cpus.empty());
    CHECK(Parts("sched:sched_switch", machine) == " 2:174");
  }
}

TEST_CASE("one kind of core is no hybrid machine", "[hybrid]") {
  CHECK(event::HybridCorePmus(GoldenRoots(kAmd)).empty());
  CHECK(event::HybridCorePmus(GoldenRoots(kVm)).empty());
  CHECK(event::HybridCorePmus({.sysfs = "/nonexistent", .tracefs = "", .proc = ""}).empty());
  CHECK(Parts("cycles", kAmd) == " 0:0");
  CHECK(Parts("r1c2", kAmd) == " 4:1c2");
  CHECK(Parts("cpu/cycles/", kAmd) == "cpu 0:0");
}

TEST_CASE("a core PMU's name picks one kind of core", "[hybrid]") {
  CHECK(Parts("cpu_core/cycles/", kIntel) == "cpu_core 0:400000000");
  CHECK(Parts("cpu_atom/L1-dcache-loads/u", kIntel) == "cpu_atom 3:a00000000");
  CHECK(Parts("cpu_core/event=0xd1,umask=0x20/", kIntel) == "cpu_core 4:20d1");
  CHECK(Parts("cpu_core/r1a8/", kIntel) == "cpu_core 4:1a8");
  CHECK(Parse("cpu_core/cycles/", kIntel).parts[0].only_cpus.size() == 16);
}

TEST_CASE("named events are what the PMU's file says", "[pmu]") {
  CHECK(Parts("cpu/cpu-cycles/", kAmd) == "cpu 4:76");
  CHECK(Parts("cpu/cache-misses/", kAmd) == "cpu 4:964");
  CHECK(Parts("cpu_core/topdown-retiring/", kIntel) == "cpu_core 4:8000");
  CHECK(Parts("cpu_core/mem-loads/", kIntel) == "cpu_core 4:1cd:3");
  CHECK(Parts("cpu_core/mem-loads,ldlat=30/", kIntel) == "cpu_core 4:1cd:1e");
  CHECK(Parts("armv8_cortex_a72/l2d_cache_refill/", kArm) == "armv8_cortex_a72 8:17");
  CHECK(Parts("msr/tsc/", kVm) == "msr 9:0");
  CHECK(Parts("msr/IRPERF/", kAmd) == "msr c:6");
}

TEST_CASE("a bare name is found on every PMU of one kind", "[pmu]") {
  CHECK(Parts("mem-loads", kIntel) == "cpu_atom a:5d0:3; cpu_core 4:1cd:3");
  CHECK(Parts("mem-loads-aux", kIntel) == "cpu_core 4:8203");
  CHECK(Parts("cpu_cycles:u", kArm) == "armv8_cortex_a53 7:11; armv8_cortex_a72 8:11");
  CHECK(Parts("tsc", kVm) == "msr 9:0");
  CHECK(RefusalOf("c6-residency", GoldenRoots(kIntel)) ==
        "event 'c6-residency': PMUs of different kinds have an event 'c6-residency'; write 'cstate_core/c6-residency/' "
        "or 'cstate_pkg/c6-residency/'");
}

TEST_CASE("scales and units come with named events", "[pmu]") {
  const EventConfig energy = Parse("power/energy-pkg/", kIntel);
  CHECK(energy.unit == "Joules");
  CHECK(energy.scale == 2.3283064365386962890625e-10);
  CHECK(energy.cpu_wide_only);
  CHECK(energy.parts[0].only_cpus == std::vector<int>{0});
  CHECK(Parse("energy-pkg", kAmd).unit == "Joules");
  CHECK(Parse("msr/cpu_thermal_margin/", kIntel).unit == "C");
  const EventConfig plain = Parse("power/event=2/", kIntel);
  CHECK((plain.unit.empty() && plain.scale == 1.0 && plain.cpu_wide_only));
}

TEST_CASE("an uncore unit's name stands for all its instances", "[pmu]") {
  const std::string both = "uncore_imc_free_running_0 10:20ff; uncore_imc_free_running_1 11:20ff";
  CHECK(Parts("uncore_imc_free_running/data_read/", kIntel) == both);
  CHECK(Parts("imc_free_running/data_read/", kIntel) == both);
  CHECK(Parts("data_read", kIntel) == both);
  CHECK(Parts("imc_free_running_1/data_read/", kIntel) == "uncore_imc_free_running_1 11:20ff");
  CHECK(Parse("data_read", kIntel).unit == "MiB");
  CHECK(Parts("clock/clockticks/", kIntel) == "uncore_clock f:ff");
}

TEST_CASE("formats put bits where the PMU wants them", "[pmu]") {
  CHECK(Parts("amd_df/event=0x107,umask=0x38/", kAmd) == "amd_df a:100003807");
  CHECK(Parts("amd_df/event=0x3fff/", kAmd) == "amd_df a:1800000f000000ff");
  CHECK(Parts("amd_l3/event=0x04,umask=0xff,enallcores,threadmask=3/", kAmd) == "amd_l3 b:30080000000ff04");
  CHECK(Parts("ibs_op/cnt_ctl=1/", kAmd) == "ibs_op 9:80000");
  CHECK(Parts("armv8_cortex_a53/event=0x11,long=1,rdpmc/", kArm) == "armv8_cortex_a53 7:11:3");
  CHECK(Parts("cpu/config=0x1c2/", kAmd) == "cpu 4:1c2");
  CHECK(Parts("cpu/cmask=2,cpu-cycles/", kAmd) == "cpu 4:2000076");
  CHECK(Parts("cpu/cpu-cycles,event=0x77/", kAmd) == "cpu 4:77");
  CHECK(Parts("cpu//", kAmd) == "cpu 4:0");
}

TEST_CASE("every named event of every machine parses, by both its names", "[pmu]") {
  size_t parsed = 0;
  for (const char* machine : {kIntel, kAmd, kArm, kVm}) {
    const EventRoots roots = GoldenRoots(machine);
    for (const std::string& name : event::PmuNames(roots)) {
      const absl::StatusOr<event::Pmu> pmu = event::LoadPmu(roots, name);
      REQUIRE(pmu.ok());
      for (const std::string& format : event::FormatNames(*pmu)) CHECK(event::LoadFormat(*pmu, format).ok());
      for (const std::string& named : event::EventNames(*pmu)) {
        const EventConfig event = Parse(name + "/" + named + "/", machine);
        CHECK(event.parts[0].type == pmu->type);
        ++parsed;
      }
    }
  }
  CHECK(parsed > 100);
}

}  // namespace
}  // namespace perfkit
