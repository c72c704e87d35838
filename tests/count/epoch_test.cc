// Epochs: switches of threads in the middle of a read, made up and real ones.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/count.h"
#include "tests/count/sets.h"
#include "tests/support/as_user.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

struct Reader : CounterReader {
  using CounterReader::ReadFast;
};

// A snapshot whose values from `first` on are on a page of their own. If that page is protected, the first store to one
// of them faults.
class GuardedSnapshot {
 public:
  explicit GuardedSnapshot(size_t first)
      : memory_(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        offset_(kPage - offsetof(Snapshot, values) - first * sizeof(uint64_t)) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~GuardedSnapshot() { munmap(memory_, 2 * kPage); }

  Snapshot& get() const { return *reinterpret_cast<Snapshot*>(static_cast<std::byte*>(memory_) + offset_); }
  void Protect(int protection) const { mprotect(static_cast<std::byte*>(memory_) + kPage, kPage, protection); }

 private:
  static constexpr size_t kPage = 4096;

  void* memory_;
  size_t offset_;
};

UserPage g_user_page;
const GuardedSnapshot* g_guarded = nullptr;
detail::ReadPlan* g_renewed = nullptr;

// Does what the kernel does to the user page when the thread is switched out and in; then, if there is g_renewed, what
// the read of a signal handler does to the plan.
void Switch(int) {
  g_user_page.lock += 2;
  if (g_renewed != nullptr) {
    g_renewed->epoch.lock = g_user_page.lock;
    g_renewed->base.version += 2;
  }
  g_guarded->Protect(PROT_READ | PROT_WRITE);
}

// Reads `plan`, with a switch at the first store to a guarded value. Returns what ReadFast returns.
bool ReadAcrossSwitch(detail::ReadPlan& plan, const GuardedSnapshot& guarded, bool is_renewed) {
  struct sigaction before, handler{};
  handler.sa_handler = Switch;
  handler.sa_flags = SA_RESETHAND;  // another fault is a real one
  sigaction(SIGSEGV, &handler, &before);
  g_guarded = &guarded;
  g_renewed = is_renewed ? &plan : nullptr;
  const uint32_t lock = g_user_page.lock;
  guarded.Protect(PROT_NONE);
  const bool read = Reader::ReadFast(plan, guarded.get());
  sigaction(SIGSEGV, &before, nullptr);
  CHECK(g_user_page.lock == lock + 2);
  return read;
}

detail::ReadPlan PlanOfClock() {
  g_user_page.lock = 2;
  detail::ReadPlan plan;
  plan.owner = ThreadSerial();
  plan.page = &g_user_page;
  plan.inline_read = detail::InlineRead::kPlain;
  plan.clock_index = 0;
  plan.base = {.version = 2, .ticks = ReadTicks(), .time_ns = 1'000'000};
  plan.epoch.lock = 2;
  plan.max_age_ticks = ~uint64_t{0};
  plan.ns_per_tick_q32 = uint64_t{1} << 32;
  return plan;
}

TEST_CASE("a clock that was read across a switch is not given out, nor does a later one rest on it", "[epoch]") {
  const bool is_renewed = GENERATE(false, true);
  const GuardedSnapshot guarded(4);  // The clock is stored last.
  detail::ReadPlan plan = PlanOfClock();
  plan.inline_read = GENERATE(detail::InlineRead::kPlain, detail::InlineRead::kGeneral);
  plan.clock_index = 4;
  REQUIRE(Reader::ReadFast(plan, guarded.get()));
  const uint64_t given_out = guarded.get().values[4];
  CHECK(given_out >= 1'000'000);
  CHECK(plan.last_time_ns == given_out);
  CHECK_FALSE(ReadAcrossSwitch(plan, guarded, is_renewed));
  CHECK(plan.last_time_ns == given_out);
}

TEST_CASE("a read without a clock is not given out if there was a switch in the middle", "[epoch]") {
  const bool is_renewed = GENERATE(false, true);
  const GuardedSnapshot guarded(0);
  detail::ReadPlan plan = PlanOfClock();
  plan.inline_read = GENERATE(detail::InlineRead::kPlain, detail::InlineRead::kGeneral);
  plan.clock_index = kMaxEvents;
  plan.epoch_values = 1;
  REQUIRE(Reader::ReadFast(plan, guarded.get()));
  CHECK_FALSE(ReadAcrossSwitch(plan, guarded, is_renewed));
}

TEST_CASE("a clock whose base is too old is not read fast", "[epoch]") {
  detail::ReadPlan plan = PlanOfClock();
  plan.base.ticks -= 1'000'000;
  Snapshot now;
  REQUIRE(Reader::ReadFast(plan, now));
  const uint64_t last_ns = plan.last_time_ns;
  plan.max_age_ticks = 1000;
  CHECK(!Reader::ReadFast(plan, now));
  plan.max_age_ticks = 0;
  CHECK(!Reader::ReadFast(plan, now));
  CHECK(plan.last_time_ns == last_ns);
}

TEST_CASE("a base that is half written gives no clock", "[epoch]") {
  detail::ReadPlan plan = PlanOfClock();
  plan.last_time_ns = 77;
  plan.base.version = 3;  // As a signal handler finds it that interrupts the renewal.
  Snapshot now;
  CHECK(!Reader::ReadFast(plan, now));
  CHECK(plan.last_time_ns == 77);
  plan.base.version = 4;
  CHECK(Reader::ReadFast(plan, now));
  CHECK(plan.last_time_ns == now.values[0]);
}

// How often reads leave the CPU before the kernel looks.
int g_sleeps = 0;

ssize_t SleepAndRead(int fd, void* buffer, size_t size) {
  if (g_sleeps > 0) {
    --g_sleeps;
    testing::SwitchAway();
  }
  return sys::kLinux.read(fd, buffer, size);
}

TEST_CASE("numbers that are read after a switch do not belong to the epoch before it", "[epoch][root][law]") {
  if (geteuid() != 0) SKIP_TEST("switches are counted in the kernel, which takes root");
  testing::FakeKernel fake;
  fake.below().read = SleepAndRead;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kContextSwitches)}, Only(ReadPath::kGroupRead));
  for (const int sleeps : {1, 100}) {
    int unswitched = 0;
    for (int i = 0; i < 20 || (sleeps == 1 && unswitched == 0); ++i) {
      Snapshot begin, between, end;
      g_sleeps = 0;
      set.Read(begin);
      g_sleeps = sleeps;
      set.Read(between);
      g_sleeps = 0;
      set.Read(end);
      for (const auto& [from, to] : {std::pair(&begin, &between), std::pair(&between, &end)}) {
        const Count count = set.Difference(*from, *to, 0);
        if (count.value != 0) CHECK(count.validity.has(Validity::kSwitched));
        unswitched += !count.validity.has(Validity::kSwitched);
      }
      CHECK(set.Difference(begin, between, 0).value >= 1);
    }
    CAPTURE(sleeps, unswitched);
    CHECK((unswitched > 0) == (sleeps == 1));  // the second look, where it is quick, is whole again
  }
}

// Events whose own user page does not move at a switch.
std::vector<EventSpec> WithoutEpochs() {
  alignas(8) static uint64_t watched = 0;
  char text[64];
  std::snprintf(text, sizeof(text), "mem:0x%llx/8:w",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(&watched)));
  return {text, "uprobe:libc.so.6:malloc", "sched:sched_switch", "msr/tsc/", "raw_syscalls:sys_enter"};
}

// Returns true if reads around switches say that there was one; nullopt if the event is not on this machine, or not for
// this user.
std::optional<bool> TellsSwitches(const EventSpec& event) {
  const auto set = CounterSet::Open({event});
  if (!set.ok()) return std::nullopt;
  const auto is_switched = [](const Snapshot& begin, const Snapshot& end) {
    return CounterReader::SharedValidity(begin, end).has(Validity::kSwitched);
  };
  Snapshot begin, end;
  do {
    set->Read(begin);
    set->Read(end);
  } while (is_switched(begin, end));  // Until there was none.
  int told = 0;
  constexpr int kSwitches = 10;
  for (int i = 0; i < kSwitches; ++i) {
    set->Read(begin);
    testing::SwitchAway();
    set->Read(end);
    told += is_switched(begin, end);
  }
  return told == kSwitches;
}

TEST_CASE("a switch is told whatever the event, also where its own page never moves", "[epoch][law]") {
  for (const EventSpec& event : WithoutEpochs()) {
    CAPTURE(event.text);
    CHECK(TellsSwitches(event).value_or(true));
  }
}

TEST_CASE("a switch is told by sets of tracepoints and uprobes", "[epoch][tracefs][law]") {
  const int result = testing::WithTracefs([] {
    size_t tried = 0;
    for (const EventSpec& event : WithoutEpochs()) {
      const std::optional<bool> tells = TellsSwitches(event);
      if (!tells.value_or(true)) return false;
      tried += tells.has_value() ? 1 : 0;
    }
    return tried >= 2;
  });
  if (result == 2) SKIP_TEST("tracefs can't be mounted");
  CHECK(result == 0);
}

bool EachPlaceCountsSwitches() {
  const std::vector<EventSpec> others = {"page-faults", "task-clock", "minor-faults", "cpu-migrations", "major-faults"};
  for (size_t place = 0; place <= others.size(); ++place) {
    std::vector<EventSpec> events(others.begin(), others.begin() + static_cast<ptrdiff_t>(place));
    events.emplace_back("context-switches");
    const auto set = CounterSet::Open(events);
    if (!set.ok()) return false;
    Snapshot begin, end;
    const std::optional<uint64_t> before = SwitchesAt(*set, begin);
    for (int i = 0; i < 7; ++i) testing::SwitchAway();
    const std::optional<uint64_t> after = SwitchesAt(*set, end);
    if (!before || !after) continue;
    if (*after - *before < 7 || set->Difference(begin, end, place).value != *after - *before) return false;
  }
  return true;
}

TEST_CASE("switches are counted at each place of a set", "[epoch][law]") {
  CHECK(EachPlaceCountsSwitches());
  CHECK(testing::AsOrdinaryUser(EachPlaceCountsSwitches));
}

bool TellsItsCpu() {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) return true;
  const auto set = CounterSet::Open({"page-faults", "context-switches"});
  if (!set.ok()) return false;
  Snapshot before, now;
  set->Read(before);
  if (before.cpu == Snapshot::kNoCpu) return true;  // The C library does not tell it (rseq).
  for (int i = 0; i < 10; ++i) {
    cpus.MoveTo(i % 2);
    set->Read(before);
    cpus.MoveTo((i + 1) % 2);
    set->Read(now);
    if (now.cpu != static_cast<uint32_t>(sched_getcpu()) || now.cpu == before.cpu) return false;
    if (!CounterReader::SharedValidity(before, now).has(Validity::kMigrated)) return false;
  }
  return true;
}

TEST_CASE("a read after a move tells the new CPU", "[epoch][law]") {
  CHECK(TellsItsCpu());
  CHECK(testing::AsOrdinaryUser(TellsItsCpu));
}

bool CountsMigrationsBesideTracepoint() {
  CounterOptions options;
  options.user_only = true;  // by switch records, as an ordinary user's are
  const auto set = CounterSet::Open({"sched:sched_switch", "cpu-migrations"}, Target::ThisThread(), options);
  if (!set.ok()) return false;
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) return true;
  cpus.MoveTo(0);
  Snapshot begin, end;
  set->Read(begin);
  for (int i = 1; i <= 9; ++i) cpus.MoveTo(i % 2);
  set->Read(end);
  return set->Difference(begin, end, 1).value == 9;
}

TEST_CASE("migrations beside a tracepoint are counted", "[epoch][tracefs]") {
  const int result = testing::WithTracefs(CountsMigrationsBesideTracepoint);
  if (result == 2) SKIP_TEST("tracefs can't be mounted");
  CHECK(result == 0);
}

// To the other of two CPUs, before the kernel looks.
ssize_t MoveAndRead(int fd, void* buffer, size_t size) {
  cpu_set_t other;
  CPU_ZERO(&other);
  CPU_SET(sched_getcpu() == 0 ? 1 : 0, &other);
  sched_setaffinity(0, sizeof(other), &other);
  return sys::kLinux.read(fd, buffer, size);
}

TEST_CASE("a read that was moved says where its thread is, not where it was", "[epoch]") {
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  if (!CPU_ISSET(0, &before) || !CPU_ISSET(1, &before)) SKIP_TEST("this takes two CPUs");
  testing::FakeKernel fake;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kCpuClock)}, Only(ReadPath::kGroupRead));
  Snapshot now;
  set.Read(now);
  if (now.cpu == Snapshot::kNoCpu) SKIP_TEST("the C library does not tell the CPU (rseq)");
  fake.below().read = MoveAndRead;
  for (int i = 0; i < 20; ++i) {
    set.Read(now);
    CHECK(now.cpu == static_cast<uint32_t>(sched_getcpu()));  // pinned there by the read
  }
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace perfkit
