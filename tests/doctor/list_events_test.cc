// The list of events: held against raw opens, other machines' trees, and kernels that lie.
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "perfkit/capabilities.h"
#include "src/event/event_table.h"
#include "src/sys/rights.h"
#include "tests/support/as_user.h"
#include "tests/support/event_roots.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;

struct Seen {
  std::string name, unit, group, raised_by;
  EventCategory category;
  Usability usability;
  absl::Status usable;
  uint64_t value;
  bool opened;
};

std::vector<Seen> List(const ListOptions& options) {
  std::vector<Seen> all;
  const auto keep = [&](const EventInfo& event) {
    all.push_back({std::string(event.name), std::string(event.unit), std::string(event.group),
                   std::string(event.raised_by), event.category, event.usability, event.usable, event.value,
                   event.path.has_value()});
  };
  ListEvents(keep, options);
  return all;
}

Seen Find(const std::vector<Seen>& all, const std::string& name) {
  for (const Seen& seen : all) {
    if (seen.name == name) return seen;
  }
  return {.name = "not listed: " + name,
          .unit = {},
          .group = {},
          .raised_by = {},
          .category = {},
          .usability = Usability::kNotTried,
          .usable = absl::UnknownError("not listed"),
          .value = 0,
          .opened = false};
}

// A machine with no sysfs and no tracefs: only the generic table and the examples.
ListOptions NoTrees() { return {.roots = {.sysfs = "/nonexistent", .tracefs = "/nonexistent", .proc = "/proc"}}; }

TEST_CASE("every generic event is listed once, with a verdict that is consistent", "[list]") {
  std::map<EventCategory, int> counts;
  for (const Seen& seen : List(NoTrees())) {
    INFO(seen.name << ": " << seen.usable);
    ++counts[seen.category];
    const bool fine = seen.usability != Usability::kRefused && seen.usability != Usability::kSilent;
    CHECK(seen.usable.ok() == fine);
    CHECK((seen.value > 0) == (seen.usability == Usability::kCounts));
    CHECK(seen.opened == (seen.usability != Usability::kRefused && seen.usability != Usability::kNotTried));
    if (!fine) CHECK(seen.usable.ToString().find(seen.name) != std::string::npos);
    if (seen.usability == Usability::kOpens) CHECK(seen.raised_by.empty());
  }
  CHECK(counts[EventCategory::kHardware] == 10);
  CHECK(counts[EventCategory::kSoftware] == 12);
  CHECK(counts[EventCategory::kThread] == 4);
  CHECK(counts[EventCategory::kCache] == 42);
  CHECK(counts[EventCategory::kBreakpoint] == 1);
  CHECK(counts[EventCategory::kUprobe] == 1);
}

TEST_CASE("events are refused exactly where the kernel refuses them", "[list]") {
  for (const Seen& seen : List(NoTrees())) {
    const event::TableEvent* const known = event::FindTableEvent(std::string_view(seen.name));
    if (known == nullptr || known->type.type == PERF_TYPE_SOFTWARE || known->type.type == kMeasuredType) continue;
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = known->type.type;
    attr.config = known->type.config;
    attr.exclude_kernel = attr.exclude_hv = 1;
    const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    INFO(seen.name);
    CHECK((fd >= 0) == (seen.usability != Usability::kRefused));
    if (fd >= 0) close(static_cast<int>(fd));
  }
}

bool SoftwareEventsCount() {
  const std::vector<Seen> all = List(NoTrees());
  bool fine = true;
  for (const char* name : {"cpu-clock", "task-clock", "page-faults", "minor-faults", "context-switches"}) {
    const Seen seen = Find(all, name);
    if (seen.usability != Usability::kCounts) printf("%s: %s\n", name, seen.usable.ToString().c_str());
    fine = fine && seen.usability == Usability::kCounts && !seen.raised_by.empty();
  }
  // Nothing moves these, and that is no fault of theirs.
  for (const char* name : {"dummy", "bpf-output", "alignment-faults", "emulation-faults"}) {
    const Seen seen = Find(all, name);
    if (seen.usability != Usability::kOpens) printf("%s: %s\n", name, seen.usable.ToString().c_str());
    fine = fine && seen.usability == Usability::kOpens;
  }
  return fine;
}

TEST_CASE("software events count the work that must raise them, for every user", "[list]") {
  CHECK(SoftwareEventsCount());
  CHECK(testing::AsOrdinaryUser(SoftwareEventsCount));
}

TEST_CASE("a sleep without a switch is tried again before an event is called silent", "[list][law]") {
  FakeKernel fake;
  testing::MakeShortSleepsNone(fake);
  CHECK(SoftwareEventsCount());
  CHECK(ProbeCapabilities().has(CapabilityId::kSwitchRecords));
}

TEST_CASE("page faults: about the pages that were touched", "[list]") {
  const uint64_t faults = Find(List(NoTrees()), "page-faults").value;
  CHECK(faults >= 16);  // 256, or fewer where pages come in larger folios
  CHECK(faults <= 100'000);
}

TEST_CASE("breakpoints count every write, or are refused where the kernel counts none", "[list]") {
  ListOptions options = NoTrees();
  options.categories = {EventCategory::kBreakpoint};
  // Some machines lose breakpoints while another process is single-stepped. So one try may fail even if the kernel's
  // own counts before and after it are complete.
  bool fine = false;
  for (int tries = 0; tries < 5 && !fine; ++tries) {
    const int64_t before = testing::RawCountOfWrites();
    const std::vector<Seen> all = List(options);
    const int64_t after = testing::RawCountOfWrites();
    REQUIRE(all.size() == 1);
    const Seen& seen = all[0];
    INFO(seen.usable << ", and the kernel counted " << before << " before it, " << after << " after it");
    CHECK(seen.value <= 64);
    // The kernel opens breakpoints on writes, so the only reason for a refusal is that it counts none.
    if (before >= 0 && after >= 0 && seen.usability == Usability::kRefused) CHECK(absl::IsUnavailable(seen.usable));
    fine = before != 64 || after != 64 || seen.value == 64;
  }
  CHECK(fine);
}

TEST_CASE("an event that opens and stays 0 is silent, and one that may stay 0 is not", "[list]") {
  FakeKernel fake;
  testing::MakeHardwareSilent(fake);
  const std::vector<Seen> all = List(NoTrees());
  const Seen instructions = Find(all, "instructions");
  CHECK(instructions.usability == Usability::kSilent);
  CHECK(absl::IsUnavailable(instructions.usable));
  CHECK(instructions.usable.ToString().find("a loop left it at 0") != std::string::npos);
  CHECK(Find(all, "L1-dcache-loads").usability == Usability::kSilent);
  CHECK(Find(all, "stalled-cycles-backend").usability == Usability::kOpens);
  CHECK(Find(all, "node-prefetches").usability == Usability::kOpens);
  // The caches may hold all that the workload reads.
  for (const char* name : {"cache-misses", "LLC-load-misses", "dTLB-load-misses"}) {
    INFO(name);
    CHECK(Find(all, name).usability == Usability::kOpens);
  }
  CHECK(Find(all, "page-faults").usability == Usability::kCounts);
}

TEST_CASE("an event that waits for a counter all the time is not called uncounted", "[list]") {
  FakeKernel fake;
  testing::MakeHardwareSilent(fake);
  // A single event's value and times, or room for a group of any size; everything else is a file.
  fake.below().read = [](int fd, void* buffer, size_t size) {
    static uint64_t enabled_ns = 0;
    const bool is_event = size == 3 * sizeof(uint64_t) || size == (3 + kMaxEvents) * sizeof(uint64_t);
    if (!is_event) return sys::kLinux.read(fd, buffer, size);
    const std::array<uint64_t, 3> words = {0, enabled_ns += 1000, 0};
    std::copy(words.begin(), words.end(), static_cast<uint64_t*>(buffer));
    return static_cast<ssize_t>(sizeof(words));
  };
  ListOptions options = NoTrees();
  options.categories = {EventCategory::kHardware};
  const std::vector<Seen> all = List(options);
  CHECK(all.size() == 10);
  for (const Seen& seen : all) {
    INFO(seen.name << ": " << seen.usable);
    if (seen.usability == Usability::kRefused) SKIP_TEST("this process may not open perf events");
    CHECK(seen.usability == Usability::kSilent);
    CHECK(absl::IsResourceExhausted(seen.usable));
    CHECK(seen.usable.ToString().find("never on a counter") != std::string::npos);
  }
}

TEST_CASE("on a machine with counters they are told to count", "[list]") {
  FakeKernel fake;
  testing::MakeHardwareCount(fake);
  const std::vector<Seen> all = List(NoTrees());
  CHECK(Find(all, "instructions").usability == Usability::kCounts);
  CHECK(Find(all, "instructions").value > 10'000);
  CHECK(Find(all, "L1-dcache-load-misses").usability == Usability::kCounts);
}

TEST_CASE("another machine's PMU events are listed, each with its verdict", "[list]") {
  ListOptions options;
  options.roots = testing::GoldenRoots("intel_alderlake");
  const std::vector<Seen> all = List(options);
  size_t pmu = 0, tracepoints = 0;
  for (const Seen& seen : all) {
    pmu += seen.category == EventCategory::kPmu ? 1 : 0;
    if (seen.category != EventCategory::kTracepoint) continue;
    ++tracepoints;
    INFO(seen.name << seen.usable);
    CHECK((seen.usability == Usability::kNotTried || absl::IsPermissionDenied(seen.usable)));
  }
  CHECK(pmu == 61);
  CHECK(tracepoints == 11);
  const Seen clock = Find(all, "task-clock"), energy = Find(all, "power/energy-pkg/");
  CHECK(clock.unit == "ns");
  CHECK(clock.group.empty());
  CHECK(energy.unit == "Joules");
  CHECK(energy.group == "power");
  CHECK(Find(all, "sched:sched_switch").unit.empty());
  CHECK(Find(all, "sched:sched_switch").group == "sched");
}

// Looks at tracepoints without opening one, so that rights alone decide.
bool TracepointsAreThoseOfRights() {
  ListOptions options;
  options.roots = testing::GoldenRoots("intel_alderlake");
  options.categories = {EventCategory::kTracepoint};
  const bool may_count_kernel = sys::ReadRights().may_count_kernel();
  size_t calls = 0, others = 0;
  bool fine = true;
  for (const Seen& seen : List(options)) {
    const bool is_call = seen.group == "syscalls";
    ++(is_call ? calls : others);
    const bool is_right =
        is_call || may_count_kernel ? seen.usability == Usability::kNotTried : absl::IsPermissionDenied(seen.usable);
    if (!is_right) printf("%s: %s\n", seen.name.c_str(), seen.usable.ToString().c_str());
    fine = fine && is_right;
  }
  return fine && calls == 3 && others == 8;
}

TEST_CASE("tracepoints in kernel code are for those who may watch the kernel", "[list]") {
  CHECK(TracepointsAreThoseOfRights());
  CHECK(testing::AsOrdinaryUser([] {
    // The folder of the sources may be closed to others.
    const bool is_closed = access(testing::GoldenRoots("intel_alderlake").tracefs.c_str(), R_OK | X_OK) != 0;
    return is_closed || TracepointsAreThoseOfRights();
  }));
}

TEST_CASE("tracepoints that cannot be looked up are listed as one, with the reason", "[list]") {
  size_t tracepoints = 0;
  for (const Seen& seen : List(NoTrees())) {
    if (seen.category != EventCategory::kTracepoint) continue;
    ++tracepoints;
    CHECK(seen.usability == Usability::kRefused);
    CHECK_FALSE(seen.usable.ok());
  }
  CHECK(tracepoints == 1);
  const ListOptions others = {.categories = {EventCategory::kSoftware}, .roots = NoTrees().roots};
  for (const Seen& seen : List(others)) CHECK(seen.category == EventCategory::kSoftware);
}

TEST_CASE("probing tracepoints tells how far it is", "[list]") {
  ListOptions options = NoTrees();
  options.roots.tracefs = testing::GoldenRoots("intel_alderlake").tracefs;
  options.probe_tracepoints = true;
  std::vector<size_t> steps;
  options.progress = [&](size_t done, size_t all) {
    CHECK(all == 11);
    steps.push_back(done);
  };
  for (const Seen& seen : List(options)) {
    if (seen.category == EventCategory::kTracepoint) CHECK(seen.usability != Usability::kNotTried);
  }
  CHECK(steps == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

// Runs `body` with tracefs mounted, which this machine may not have: in a mount namespace of a child's own.
// 0: all well; 1: not; 2: this user may not mount.
int WithTracefs(bool (*body)()) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool ready = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       mount("nodev", "/sys/kernel/tracing", "tracefs", 0, nullptr) == 0;
    const bool fine = ready && body();
    fflush(nullptr);
    _exit(!ready ? 2 : fine ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool LookUpAllTracepoints() {
  FakeKernel fake;
  size_t tracepoints = 0, fine = 0;
  ListEvents([&](const EventInfo& event) {
    if (event.category != EventCategory::kTracepoint) return;
    ++tracepoints;
    fine += event.usability == Usability::kNotTried && event.usable.ok() ? 1 : 0;
  });
  const uint64_t opens = fake.calls(Call::kPerfEventOpen);
  printf("%zu tracepoints, %zu usable, %zu opens\n", tracepoints, fine, static_cast<size_t>(opens));
  return tracepoints > 500 && fine > tracepoints * 9 / 10 && opens < 500 && fake.Leaks().empty();
}

TEST_CASE("tracepoints are looked up in thousands without being opened", "[list][tracefs]") {
  const int result = WithTracefs(LookUpAllTracepoints);
  if (result == 2) SKIP_TEST("this user may not mount tracefs");
  CHECK(result == 0);
}

TEST_CASE("with tracefs there, the doctor counts tracepoints", "[capabilities][tracefs]") {
  const int result = WithTracefs([] {
    const Capability row = ProbeCapabilities().of(CapabilityId::kTracepoints);
    printf("%s%s\n", row.found.c_str(), row.cause.c_str());
    const bool is_all = row.found.starts_with("all groups under ");
    return row.state == CapabilityState::kPresent && is_all == sys::ReadRights().may_count_kernel();
  });
  if (result == 2) SKIP_TEST("this user may not mount tracefs");
  CHECK(result == 0);
}

TEST_CASE("listing leaves nothing open, whatever fails", "[list][sweep]") {
  FakeKernel fake;
  const size_t listed = List(NoTrees()).size();
  CHECK(fake.Leaks() == "");
  const uint64_t calls = fake.calls();
  for (uint64_t n = 1; n < calls; n += 97) {
    fake.FailNth(n, n % 2 == 0 ? ENOMEM : ENOSPC);
    CHECK(List(NoTrees()).size() == listed);
    REQUIRE(fake.Leaks() == "");
  }
}

}  // namespace
}  // namespace perfkit
