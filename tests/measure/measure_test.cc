// Measure on work of known cost, without a PMU, without hooks: pages, system calls, calls, instructions.
#include "perfkit/measure.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <regex>
#include <stdexcept>

#include "perfkit/frame_counter.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using namespace event;

// The one value that every repetition of an exact event must have.
int64_t Exactly(const Measurement& m, const EventType& event) {
  const Cost* const cost = m.Find(event);
  REQUIRE(cost != nullptr);
  INFO(cost->ToString());
  REQUIRE(cost->measured());
  const bool faults = event == kPageFaults || event == kMinorFaults;
  for (const int64_t value : cost->values) {
    CAPTURE(value);
    CHECK((faults ? testing::AreFaultsOf(value, cost->value()) : value == cost->value()));
  }
  return cost->value();
}

#define SKIP_UNMEASURABLE(m, event) \
  if (!(m).Find(event)->measured()) SKIP_TEST((m).Find(event)->unmeasurable)

TEST_CASE("touching 1 MiB takes 256 page faults", "[measure]") {
  testing::FreshPages memory(256);
  const uint64_t switches = testing::SwitchesByUsage();
  const auto m = Measure({kPageFaults, kMinorFaults}, [&] {
    memory.Forget();
    memory.Touch(0, 256);
  });
  const bool undisturbed = testing::SwitchesByUsage() == switches && !testing::kSanitized;
  CHECK(Exactly(m, kPageFaults) == 256);
  CHECK(Exactly(m, kMinorFaults) == 256);
  CHECK(m.Find(kPageFaults)->event_class == EventClass::kExact);
  // All the same. A fault of a sanitizer's own, or a switch, makes it ask more often.
  CHECK((m.Find(kPageFaults)->values.size() == 5 || !undisturbed));
  CHECK(m.Find(kPageFaults)->values.size() >= 5);
  CHECK(m.Find(kPageFaults)->empty == 0);
}

TEST_CASE("nothing costs nothing", "[measure]") {
  const auto m = Measure({kPageFaults, kInstructions, kSyscalls, kAllocations}, [] {});
  for (const Cost& cost : m.costs) {
    if (cost.measured()) CHECK(Exactly(m, cost.event) == 0);
  }
}

#if defined(__x86_64__)

void Loop500() { asm volatile("mov $500, %%ecx\n 1: dec %%ecx\n jnz 1b" ::: "ecx", "cc"); }

TEST_CASE("an assembly loop of n instructions is n instructions", "[measure]") {
  const auto m = Measure({kInstructions}, [] { Loop500(); }, {.only = MeasureBackend::kStepper});
  SKIP_UNMEASURABLE(m, kInstructions);
  // 1,001, and a call and return where the compiler does not inline it.
  const int64_t extra = Exactly(m, kInstructions) - 1001;
  CHECK((extra == 0 || extra == 2 || (extra > 0 && extra <= 12)));
  CHECK(m.costs[0].read_path == "stepper");
  CHECK(m.costs[0].event_class == EventClass::kExact);
  const auto inlined = Measure({kInstructions}, [] { asm volatile(".rept 77\n nop\n .endr"); });
  if (inlined.costs[0].read_path == "stepper") CHECK(Exactly(inlined, kInstructions) == 77);
}

// Sixteen instructions beyond a function's own, whatever it returns.
template <class R>
[[gnu::noinline]] R SixteenNops() {
  asm volatile(".rept 16\n nop\n .endr");
  if constexpr (!std::is_void_v<R>) {
    R value;
    asm volatile("" : "=r"(value));
    return value;
  }
}

template <class Fn>
void CheckSixteen(Fn&& fn) {
  const auto m = Measure({kInstructions}, fn, {.only = MeasureBackend::kStepper});
  SKIP_UNMEASURABLE(m, kInstructions);
  if (!testing::kSanitized) CHECK(Exactly(m, kInstructions) == 16);
}

TEST_CASE("the call of a function is not in its cost", "[measure]") {
  CheckSixteen(SixteenNops<void>);
  CheckSixteen(&SixteenNops<void>);
  CheckSixteen(SixteenNops<int>);
  CheckSixteen(&SixteenNops<const char*>);
  void (*const pointer)() = SixteenNops<void>;
  CheckSixteen(pointer);
  CheckSixteen([] { asm volatile(".rept 16\n nop\n .endr"); });
  const auto compared =
      Compare({kInstructions}, SixteenNops<void>, &SixteenNops<uint64_t>, {.only = MeasureBackend::kStepper});
  SKIP_UNMEASURABLE(compared.subject, kInstructions);
  if (!testing::kSanitized) CHECK(Exactly(compared.reference, kInstructions) == 16);
}

#endif

TEST_CASE("seven system calls are seven", "[measure]") {
  const auto seven = [] {
    for (int i = 0; i < 7; ++i) syscall(SYS_getppid);
  };
  for (const MeasureBackend backend : {MeasureBackend::kCounter, MeasureBackend::kStepper}) {
    const auto m = Measure({kSyscalls}, seven, {.only = backend});
    if (!m.costs[0].measured()) {
      CHECK(m.costs[0].unmeasurable.find(backend == MeasureBackend::kCounter ? "perf: " : "stepper: ") == 0);
      continue;
    }
    CHECK(Exactly(m, kSyscalls) == 7);
  }
}

TEST_CASE("a hundred mallocs are a hundred, without hooks", "[measure]") {
  void* (*volatile allocate)(size_t) = malloc;
  const auto hundred = [&] {
    for (int i = 0; i < 100; ++i) free(allocate(24));
  };
  for (const MeasureBackend backend : {MeasureBackend::kCounter, MeasureBackend::kStepper}) {
    const auto m = Measure({kAllocations}, hundred, {.only = backend});
    if (m.costs[0].measured()) CHECK(Exactly(m, kAllocations) == 100);
  }
  const auto hooks = Measure({kAllocations}, hundred, {.only = MeasureBackend::kHooks});
  CHECK(hooks.costs[0].unmeasurable.find("testing_alloc") != std::string::npos);
}

[[gnu::noinline]] int Callee(int n) {
  asm volatile("");
  return n + 1;
}

TEST_CASE("calls of a function are counted", "[measure]") {
  int (*volatile callee)(int) = Callee;
  const auto event = Calls(Callee, "calls of Callee");
  for (const MeasureBackend backend : {MeasureBackend::kCounter, MeasureBackend::kStepper}) {
    const auto m = Measure({event},
                           [&] {
                             for (int i = 0; i < 12; ++i) callee(i);
                           },
                           {.only = backend});
    if (m.costs[0].measured()) CHECK(Exactly(m, event) == 12);
  }
}

TEST_CASE("an event that cannot be counted has a reason, and no number", "[measure]") {
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kPerfEventOpen, ENOENT);
  const auto m = Measure({kCycles, kSyscalls}, [] {}, {.only = MeasureBackend::kCounter});
  CHECK_FALSE(m.costs[0].measured());
  CHECK(m.costs[0].values.empty());
  CHECK(m.costs[0].ToString().find("cycles unmeasurable: perf: ") == 0);
  const auto other = Measure({kCycles}, [] {}, {.only = MeasureBackend::kStepper});
  CHECK(other.costs[0].unmeasurable == "the backend that was asked for does not count this event");
}

TEST_CASE("without perf, faults come from getrusage, and are named so", "[measure]") {
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kPerfEventOpen, EPERM);
  testing::FreshPages memory(16);
  const auto m = Measure({kPageFaults}, [&] {
    memory.Forget();
    memory.Touch(0, 16);
  });
  CHECK(Exactly(m, kPageFaults) == 16);
  CHECK(m.costs[0].read_path.find("usage") != std::string::npos);
}

TEST_CASE("noisy events and clocks have an interval around the median", "[measure][law]") {
  const auto m = Measure({kTaskClock, kContextSwitches}, [] { return testing::Spin(2000); });
  const Cost& clock = *m.Find(kTaskClock);
  REQUIRE(clock.measured());
  CHECK(clock.event_class == EventClass::kTime);
  CHECK(clock.interval().low <= static_cast<double>(clock.value()));
  CHECK(clock.interval().high >= static_cast<double>(clock.value()));
  CHECK(clock.value() > 500);
  CHECK(m.Find(kContextSwitches)->event_class == EventClass::kNoisy);
}

TEST_CASE("repetitions with a context switch are dropped; a region that waits is kept, and said to wait",
          "[measure][law]") {
  int turn = 0;
  const auto sometimes = Measure({kTaskClock}, [&] {
    if (++turn % 5 == 0) testing::SwitchAway();
  });
  CHECK(sometimes.costs[0].dropped > 0);
  CHECK_FALSE(sometimes.costs[0].switched);
  const auto always = Measure({kPageFaults}, [] { testing::SwitchAway(); });
  CHECK(always.costs[0].switched);
  CHECK(always.costs[0].ToString().find("switched in too many repetitions") != std::string::npos);
}

TEST_CASE("an exception goes on to the caller, and the next measurement is whole", "[measure]") {
  int calls = 0;
  const auto thrower = [&] {
    if (++calls == 3) throw std::runtime_error("third");
  };
  CHECK_THROWS_WITH(Measure({kPageFaults, kInstructions}, thrower), "third");
  const auto always = []() -> int { throw std::logic_error("at once"); };
  CHECK_THROWS_WITH(Measure({kInstructions}, always), "at once");
  CHECK_THROWS_WITH(Compare(
                        {kInstructions}, [] {}, always),
                    "at once");
  CHECK_THROWS_WITH(Compare({kInstructions}, always, [] {}), "at once");
  CHECK_THROWS_WITH(Scaling({kInstructions}, [&](uint64_t) { return always(); }, {1, 2}), "at once");
  CHECK(Exactly(Measure({kPageFaults}, [] {}), kPageFaults) == 0);
}

TEST_CASE("an exception is thrown through a region that is stepped", "[measure]") {
  int calls = 0;
  const auto thrower = [&] {
    if (++calls == 3) throw std::runtime_error("stepped");
  };
  const MeasureOptions stepped{.only = MeasureBackend::kStepper};
  const auto m = Measure(
      {kInstructions}, [] {}, stepped);
  SKIP_UNMEASURABLE(m, kInstructions);
  CHECK_THROWS_WITH(Measure({kInstructions, kSyscalls}, thrower, stepped), "stepped");
  CHECK(Exactly(Measure(
                    {kInstructions}, [] {}, stepped),
                kInstructions) == 0);
}

TEST_CASE("zones are off while the region is measured, and tell what each costs after", "[measure]") {
  FrameCounter frames({.events = {"page-faults"}});
  testing::FreshPages memory(16);
  bool on_while_measured = true;
  const auto region = [&] {
    on_while_measured &= frames.enabled();
    memory.Forget();
    PERFKIT_ZONE(frames, "outer");
    memory.Touch(0, 4);
    {
      PERFKIT_ZONE(frames, "inner");
      memory.Touch(4, 12);
    }
  };
  // The zones are of one run, which may take a fault of its own: the first write to an old page after a fork.
  const std::string exactly = "  the region: page-faults 16\n    outer: page-faults 16\n      inner: page-faults 12";
  const auto numbers = [](std::string text) {
    for (const std::string kernel = " (with the kernel)"; text.find(kernel) != std::string::npos;) {
      text.erase(text.find(kernel), kernel.size());
    }
    return text;
  };
  auto m = Measure({kPageFaults}, region, {.zones = &frames});
  for (int i = 0; i < 10 && !testing::kSanitized && numbers(m.by_zone) != exactly; ++i) {
    m = Measure({kPageFaults}, region, {.zones = &frames});
  }
  CHECK_FALSE(on_while_measured);
  CHECK(frames.enabled());
  CHECK(Exactly(m, kPageFaults) == 16);
  INFO(m.ToString());
  if (!testing::kSanitized) CHECK(numbers(m.by_zone) == exactly);
  const bool user_only = frames.FormatZones().find("(user space only)") != std::string::npos;
  CHECK((m.by_zone != numbers(m.by_zone)) == !user_only);  // Measure itself counts user space only.
  CHECK(m.ToString().find("\nby zone, in a run of its own:\n  the region: page-faults ") != std::string::npos);
  CHECK(Measure({kPageFaults}, region).by_zone.empty());

  FrameCounter clock({.events = {"task-clock"}});
  const auto timed = [&] { PERFKIT_ZONE(clock, "timed"); };
  const std::string text = Measure({kPageFaults}, timed, {.zones = &clock}).by_zone;
  INFO(text);
  CHECK(std::regex_search(text, std::regex("  timed: task-clock [0-9,]+ ns")));
}

TEST_CASE("a region that marks frames has no cost by zone", "[measure]") {
  FrameCounter frames({.events = {"page-faults"}});
  const auto turn = [&] {
    { PERFKIT_ZONE(frames, "part"); }
    frames.Mark();
  };
  for (int i = 0; i < 2; ++i) {
    const std::string text = Measure({kPageFaults}, turn, {.zones = &frames}).by_zone;
    CHECK(text == "  n/a: the region itself marks frames of this FrameCounter");
    for (int mark = 0; mark < 3; ++mark) frames.Mark();
  }
}

TEST_CASE("two regions are compared, and one is scaled", "[measure]") {
  testing::FreshPages memory(64);
  const auto touch = [&](uint64_t pages) {
    memory.Forget();
    memory.Touch(0, pages);
  };
  const auto compared = Compare(
      {kPageFaults}, [&] { touch(16); }, [&] { touch(32); });
  REQUIRE(compared.Ratio(kPageFaults).has_value());
  CHECK(Exactly(compared.subject, kPageFaults) == 16);
  CHECK(Exactly(compared.reference, kPageFaults) == 32);
  CHECK(compared.Ratio(kPageFaults)->low <= 0.5);
  CHECK(compared.Ratio(kPageFaults)->high >= 0.5);
  CHECK_FALSE(compared.Ratio(kCycles).has_value());
  CHECK(compared.ToString().find("ratio of page-faults: 0.") != std::string::npos);
  if (!testing::kSanitized) {
    CHECK(compared.Ratio(kPageFaults)->low == 0.5);
    CHECK(compared.Ratio(kPageFaults)->high == 0.5);
    CHECK(compared.ToString().find("ratio of page-faults: 0.5 to 0.5") != std::string::npos);
  }

  const auto scaled = Scaling({kPageFaults}, touch, {4, 16, 64});
  REQUIRE(scaled.at.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(Exactly(scaled.at[i], kPageFaults) == static_cast<int64_t>(scaled.sizes[i]));
}

TEST_CASE("an assertion of a short region by counters takes a few milliseconds", "[measure][measurement]") {
  CHECK(testing::HoldsOnceInThree([] {
    const uint64_t start_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    const auto m = Measure({kPageFaults}, [] { return testing::Spin(300); });
    CHECK(m.costs[0].measured());
    return testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - start_ns <= 5'000'000;
  }));
}

}  // namespace
}  // namespace perfkit
