// Counter sets when the kernel refuses: scarce descriptors, locked memory, no perf. Each call and error in turn:
// tests/faults/.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/count/sets.h"
#include "tests/support/as_user.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;
using testing::FreshPages;

TEST_CASE("where perf is forbidden altogether, getrusage still counts", "[fault][law]") {
  for (const int error : {ENOSYS, EPERM, EACCES}) {
    FakeKernel fake;
    fake.FailAll(Call::kPerfEventOpen, error);
    CounterOptions lenient;
    lenient.require_all = false;
    {
      const auto set = CounterSet::Open(kFour, Target::ThisThread(), lenient);
      REQUIRE(set.ok());
      CHECK(set->path(0) == ReadPath::kUsage);
      CHECK(set->path(1) == ReadPath::kUsage);
      CHECK(set->path(2) == ReadPath::kUsage);
      CHECK_FALSE(set->reason(3).ok());  // no kernel counter of migrations
      FreshPages memory(100);
      Snapshot begin, end;
      set->Read(begin);
      memory.Touch(0, 100);
      testing::SwitchAway();
      set->Read(end);
      CHECK(set->Difference(begin, end, 0).value > 0);
      CHECK(set->Difference(begin, end, 1).value >= 100);
      CHECK(set->Difference(begin, end, 2).value >= 1);
      CHECK(set->Difference(begin, end, 3).validity == Validity{Validity::kNotCounted});
    }
    CHECK(fake.Leaks() == "");
  }
}

TEST_CASE("rights are read after a refusal only", "[fault]") {
  static int read = 0;
  FakeKernel fake;
  fake.below().open = [](const char* path, int flags) {
    read += std::string_view(path).find("perf_event_paranoid") != std::string_view::npos;
    return sys::kLinux.open(path, flags);
  };
  read = 0;
  CHECK(CounterSet::Open({"task-clock", "page-faults"}).ok());
  CHECK(read == 0);
  fake.FailAll(Call::kPerfEventOpen, EACCES);
  const auto refused = CounterSet::Open({"alignment-faults:u"});
  CHECK(std::string(refused.status().message()).find("kernel.perf_event_paranoid") != std::string::npos);
  CHECK(read == 1);
}

TEST_CASE("a tracepoint that this user may not look up stays in the set, without a number", "[fault]") {
  static std::string mounts;  // the fake's functions capture nothing
  const testing::TempFolder folder;
  folder.Write("/mounts", "tracefs /no/tracefs tracefs rw 0 0\n");
  mounts = folder.path() + "/mounts";
  FakeKernel fake;
  fake.below().open = [](const char* path, int flags) {
    const std::string_view name(path);
    if (name == "/proc/self/mounts") return ::open(mounts.c_str(), flags);
    if (!name.starts_with("/no/tracefs/")) return ::open(path, flags);
    errno = EACCES;
    return -1;
  };
  const std::initializer_list<EventSpec> events = {"sched:sched_switch", event::kPageFaults, "sched:sched_waking"};
  CHECK(absl::IsPermissionDenied(CounterSet::Open(events).status()));
  const auto set = CounterSet::Open(events, Target::ThisThread(), {.require_all = false});
  REQUIRE(set.ok());
  CHECK((set->size() == 3 && set->name(0) == "sched:sched_switch" && set->name(2) == "sched:sched_waking"));
  CHECK((absl::IsPermissionDenied(set->reason(0)) && absl::IsPermissionDenied(set->reason(2))));
  CHECK(set->reason(2).message().find("sched_waking") != std::string::npos);
  CHECK(set->reason(1).ok());
  FreshPages memory(100);
  Snapshot begin, end;
  set->Read(begin);
  memory.Touch(0, 100);
  set->Read(end);
  CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
  CHECK(set->Difference(begin, end, 1).value >= 100);
  // A name that is wrong for everyone is still an error.
  CHECK(absl::IsInvalidArgument(
      CounterSet::Open({"no-such-event"}, Target::ThisThread(), {.require_all = false}).status()));
}

TEST_CASE("no locked memory left for rings: counted by the kernel, or by getrusage", "[fault]") {
  FakeKernel fake;
  fake.FailAll(Call::kMmap, EPERM);
  const auto set = CounterSet::Open(kFour);
  INFO(set.status().ToString());
  if (geteuid() == 0) {
    REQUIRE(set.ok());
    for (size_t i = 0; i < 4; ++i) CHECK(set->path(i) == ReadPath::kGroupRead);
  } else {
    // Migrations need a ring or the right to watch the kernel.
    CHECK_FALSE(set.ok());
  }
}

TEST_CASE("switches of an ordinary user without a ring come from getrusage, not from an event that stays 0",
          "[fault][law]") {
  CHECK(testing::AsOrdinaryUser([] {
    FakeKernel fake;
    fake.FailAll(Call::kMmap, EPERM);
    const auto set = CounterSet::Open({event::kContextSwitches});
    if (!set.ok() || (geteuid() != 0 && set->path(0) != ReadPath::kUsage)) return false;
    Snapshot begin, end;
    set->Read(begin);
    testing::SwitchAway(10);
    set->Read(end);
    return set->Difference(begin, end, 0).value >= 10;
  }));
}

TEST_CASE("a process without descriptors is told so, by name and limit", "[fault]") {
  CHECK(testing::AsOrdinaryUser([] {
    const rlimit none{4, 4};
    setrlimit(RLIMIT_NOFILE, &none);
    const CounterOptions group = Only(ReadPath::kGroupRead);
    const auto set = CounterSet::Open({"cpu-clock", "task-clock", "page-faults"}, Target::ThisThread(), group);
    const std::string text(set.status().message());
    return absl::IsResourceExhausted(set.status()) && text.find("RLIMIT_NOFILE") != std::string::npos;
  }));
}

// An ordinary user's migrations come from the records of switches, not from a ring of their own.
TEST_CASE("migrations without a descriptor have that reason, not a path that they do not have", "[fault]") {
  CHECK(testing::AsOrdinaryUser([] {
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    const auto set = CounterSet::Open({event::kCpuMigrations});
    const std::string text(set.status().message());
    return absl::IsResourceExhausted(set.status()) && text.find("RLIMIT_NOFILE") != std::string::npos;
  }));
}

TEST_CASE("real exhaustion of locked memory: numbers stay right when rings run out", "[fault]") {
  CHECK(testing::AsOrdinaryUser([] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_MEMLOCK, &none);
    std::vector<CounterSet> sets;
    bool saw_fallback = false;
    for (int i = 0; i < 400 && !saw_fallback; ++i) {
      CounterOptions options;
      options.self_test = i == 0;
      auto set = CounterSet::Open({event::kPageFaults}, Target::ThisThread(), options);
      if (!set.ok()) return false;
      saw_fallback = set->path(0) != ReadPath::kRing;
      sets.push_back(*std::move(set));
    }
    FreshPages memory(20);
    Snapshot begin, end;
    sets.back().Read(end);  // in the child of a fork the first write to any old page is a fault of its own
    const testing::OtherFaults others;
    sets.back().Read(begin);
    memory.Touch(0, 20);
    sets.back().Read(end);
    return saw_fallback && testing::AreFaultsOf(sets.back().Difference(begin, end, 0).value, 20, others.Beside(20));
  }));
}

TEST_CASE("a ring that does not tell the truth is found out, and not used", "[fault]") {
  FakeKernel fake;
  // A kernel that maps rings whose heads never move.
  fake.below().mmap = [](void* address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd < 0) return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
    return sys::kLinux.mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  const auto set = CounterSet::Open({event::kPageFaults, event::kContextSwitches});
  if (geteuid() != 0) {
    REQUIRE(set.ok());
    CHECK(set->path(0) == ReadPath::kGroupRead);
    CHECK(set->path(1) == ReadPath::kUsage);
    return;
  }
  REQUIRE(set.ok());
  CHECK(set->path(0) == ReadPath::kGroupRead);
  CHECK(set->path(1) == ReadPath::kGroupRead);
}

TEST_CASE("a ring is not blamed for a sleep without a switch", "[fault][law]") {
  FakeKernel fake;
  testing::MakeShortSleepsNone(fake);
  const auto set = CounterSet::Open(kFour);
  REQUIRE(set.ok());
  CHECK(set->path(1) == ReadPath::kRing);
  CHECK(set->path(2) == ReadPath::kRing);
}

TEST_CASE("a group read that comes back short, or not at all, is no number", "[fault]") {
  const CounterOptions group = Only(ReadPath::kGroupRead);
  FakeKernel fake;
  const auto set =
      CounterSet::Open({event::kTaskClock, event::kPageFaults, event::kCpuClock}, Target::ThisThread(), group);
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  SECTION("0 bytes: a pinned group lost its counters") {
    fake.below().read = [](int, void*, size_t) { return ssize_t{0}; };
    set->Read(end);
  }
  SECTION("an error") {
    fake.FailAll(Call::kRead, ECHILD);
    set->Read(end);
  }
  SECTION("another number of members") {
    fake.below().read = [](int fd, void* buffer, size_t size) {
      const ssize_t got = sys::kLinux.read(fd, buffer, size);
      static_cast<uint64_t*>(buffer)[0] = 1;
      return got;
    };
    set->Read(end);
  }
  CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
  CHECK(set->Difference(begin, end, 1).validity == Validity{Validity::kNotCounted});
  CHECK(set->Difference(begin, end, 1).value == 0);
  CHECK(set->Difference(begin, end, 1).scaled() == std::nullopt);
}

// A kernel that opens hardware events whatever the machine, and reads what the test says.
void PretendHardware(FakeKernel& fake) {
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    sys::PerfEventAttr soft = *attr;
    if (soft.type == sys::kTypeHardware) {
      soft.type = sys::kTypeSoftware;
      soft.config = sys::kSwDummy;
    }
    return sys::kLinux.perf_event_open(&soft, pid, cpu, group, flags);
  };
}

TEST_CASE("a multiplexed group says how much of the time it saw, and its clock is whole", "[fault]") {
  const CounterOptions group = Only(ReadPath::kGroupRead);
  FakeKernel fake;
  PretendHardware(fake);
  const auto set =
      CounterSet::Open({event::kTaskClock, event::kInstructions, event::kPageFaults}, Target::ThisThread(), group);
  REQUIRE(set.ok());
  static uint64_t reads;
  reads = 0;
  // nr, enabled, running, two values: 1000 ns asked for, 250 on a counter.
  fake.below().read = [](int, void* buffer, size_t size) {
    const uint64_t n = reads++;
    const uint64_t words[] = {2, 1000 * n, 250 * n, 77 * n, 10 * n};
    REQUIRE(size == sizeof(words));
    std::copy(std::begin(words), std::end(words), static_cast<uint64_t*>(buffer));
    return static_cast<ssize_t>(sizeof(words));
  };
  Snapshot begin, end;
  set->Read(begin);
  set->Read(end);
  const Count faults = set->Difference(begin, end, 2);
  CHECK(faults.validity.has(Validity::kMultiplexed));
  CHECK(faults.coverage() == 0.25);
  CHECK(faults.value == 10);
  CHECK(faults.scaled() == 40);
  const Count clock = set->Difference(begin, end, 0);
  CHECK(clock.value == 1000);
  CHECK(clock.coverage() == 1);
  CHECK_FALSE(clock.validity.has(Validity::kMultiplexed));
}

}  // namespace
}  // namespace perfkit
