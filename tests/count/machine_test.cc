// Reasons and machines in a few words, from this machine and from copies of others' trees.
#include <catch2/catch.hpp>
#include <string>

#include "perfkit/counter.h"
#include "perfkit/format.h"

namespace perfkit {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

EventConfig Event(const char* name) {
  absl::StatusOr<EventConfig> event = ParseEvent(name);
  REQUIRE(event.ok());
  return *event;
}

bool HasPmu() { return FormatMachine().find("no PMU") == std::string::npos; }

TEST_CASE("a hardware event without a PMU says so in two words") {
  absl::StatusOr<CounterSet> set = CounterSet::Open({"cycles"}, Target::ThisThread(), {.require_all = false});
  REQUIRE(set.ok());
  const std::string reason = FormatReason(set->event(0), set->reason(0));
  if (HasPmu()) {
    CHECK(reason != "no PMU");
  } else {
    CHECK(reason == "no PMU");
  }
}

TEST_CASE("no other failure is blamed on the PMU") {
  const absl::Status unavailable(absl::StatusCode::kUnavailable, "page-faults: not here");
  CHECK(FormatReason(Event("page-faults"), unavailable) != "no PMU");
  const absl::Status forbidden(absl::StatusCode::kPermissionDenied, "cycles: not you");
  CHECK(FormatReason(Event("cycles"), forbidden) != "no PMU");
  CHECK(FormatReason({}, unavailable) != "no PMU");
  CHECK(FormatReason(Event("cycles"), absl::OkStatus()).empty());
}

TEST_CASE("the line about the machine names kernel, PMU and rights") {
  const std::string line = FormatMachine();
  CHECK_THAT(line, StartsWith("Linux ") && Contains("PMU") && Contains("uid "));
  CHECK_THAT(line, !Contains("\n"));
}

TEST_CASE("a machine that shows nothing is described by what is known") {
  const std::string line = FormatMachine({.sysfs = "/nowhere", .tracefs = "/nowhere", .proc = "/nowhere"});
  CHECK_THAT(line, StartsWith("Linux, no PMU, uid "));
  CHECK_THAT(line, !Contains("paranoid"));
}

TEST_CASE("core PMUs of other machines are named") {
  const std::string golden = PERFKIT_TEST_DATA "/golden/sysfs/";
  const auto machine = [&](const char* name) { return FormatMachine({.sysfs = golden + name}); };
  CHECK_THAT(machine("intel_alderlake"), Contains(", PMU cpu_atom+cpu_core"));
  CHECK_THAT(machine("arm_rk3399"), Contains(", PMU armv8_cortex_a53+armv8_cortex_a72"));
  CHECK_THAT(machine("amd_zen3"), Contains(", PMU cpu,"));
  CHECK_THAT(machine("kvm_no_pmu"), Contains(", no PMU"));
}

}  // namespace
}  // namespace perfkit
