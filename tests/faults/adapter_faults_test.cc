// Measurements, children, formats of tracepoints and the list of events under faults.
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "perfkit/capabilities.h"
#include "perfkit/child.h"
#include "perfkit/measure.h"
#include "perfkit/tracepoint.h"
#include "tests/support/event_roots.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using event::kPageFaults;
using testing::Faults;
using testing::RunFaults;

TEST_CASE("a region is measured", "[faults]") {
  RunFaults("`Measure`", [](Faults& faults) {
    testing::FreshPages memory(20);
    faults.Begin();
    const auto m = Measure({kPageFaults},
                           [&] {
                             memory.Forget();
                             memory.Touch(0, 20);
                           },
                           {.repetitions = 2});
    if (!m.costs[0].measured()) return absl::UnavailableError(m.costs[0].unmeasurable);
    const int64_t faulted = m.Find(kPageFaults)->value();
    const bool usage = m.costs[0].read_path.find("usage") != std::string::npos;
    CHECK(testing::AreFaultsOf(static_cast<uint64_t>(faulted), 20, usage ? 10 : 0));
    return absl::OkStatus();
  });
}

TEST_CASE("a child is started and awaited", "[faults]") {
  RunFaults("`Child`", [](Faults& faults) {
    faults.Begin();
    auto child = Child::Spawn({"true"});
    if (!child.ok()) return child.status();
    if (absl::Status started = child->Start(); !started.ok()) return started;
    const auto ended = child->Wait();
    // 127, as shells have it: the child could not become the program.
    if (ended.ok()) CHECK((ended->code == 0 || (ended->code == 127 && !faults.none())));
    return ended.status();
  });
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;  // those whose wait4 was made to fail
}

TEST_CASE("events are resolved by the files of another machine", "[faults]") {
  RunFaults("`ParseEvent`, `TracepointFormat::Of`", [](Faults& faults) -> absl::Status {
    const EventRoots roots = testing::GoldenRoots("kvm_no_pmu");
    faults.Begin();
    const auto event = ParseEvent("sched:sched_switch", roots);
    if (!event.ok()) return event.status();
    const auto format = TracepointFormat::Of("sched:sched_switch", roots);
    if (!format.ok()) return format.status();
    CHECK(format->Find("next_pid") != nullptr);
    return absl::OkStatus();
  });
}

TEST_CASE("the doctor says what this machine can do", "[.heavy][doctor_faults]") {
  RunFaults("`ProbeCapabilities`", [](Faults& faults) {
    faults.Begin();
    const Capabilities found = ProbeCapabilities();
    CHECK_FALSE(FormatCapabilities(found).empty());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace perfkit
