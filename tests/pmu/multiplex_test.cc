// More events than counters: what is known is said, and scaled; what can never run is refused.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "perfkit/sampler.h"
#include "tests/pmu/pmu.h"

namespace perfkit {
namespace {

using testing::kLoopInstructions;
using testing::Loop;

// The emulated machine has six counters, and one for cycles.
constexpr size_t kCounters = 6, kTooMany = 10;

std::vector<EventSpec> Many(std::string_view event, size_t count) { return std::vector<EventSpec>(count, event); }

// Scaling takes what an event saw for what it would have seen. The clock that it scales by also runs in the kernel,
// where these events count nothing: the faster the machine, the less that is.
TEST_CASE("more events than counters share them, and their numbers scale to the truth", "[scaling]") {
  NEED_EXACT_PMU();
  // An instruction a cycle of 1 ns: a second.
  const uint64_t kRounds = 1'000'000'000 / testing::CyclesPerInstruction() / kLoopInstructions;
  for (const bool inline_reads : {false, true}) {
    CAPTURE(inline_reads);
    const CounterSet set =
        MustOpen(Many("instructions:u", kTooMany), inline_reads ? CounterOptions{} : Only(ReadPath::kGroupRead));
    Snapshot begin, end;
    set.Read(begin);
    Loop(kRounds);
    set.Read(end);
    double coverage = 0;
    int fallbacks = 0;
    for (size_t i = 0; i < kTooMany; ++i) {
      const Count count = set.Difference(begin, end, i);
      INFO("event " << i << ": " << count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns
                    << " ns");
      REQUIRE(count.validity.counted());
      CHECK(count.validity.has(Validity::kMultiplexed));
      CHECK(count.coverage() < 0.9);
      CHECK(count.coverage() > 0.3);
      REQUIRE(count.scaled().has_value());
      CHECK(static_cast<double>(*count.scaled()) ==
            Approx(static_cast<double>(kRounds * kLoopInstructions)).epsilon(0.02));
      coverage += count.coverage();
      fallbacks += count.validity.has(Validity::kFallback) ? 1 : 0;
    }
    printf("%zu events on %.2f counters\n", kTooMany, coverage);
    // Some are not on a counter at the moment of a read, and have to be asked for.
    if (inline_reads && testing::WhyNoUserReads().empty()) CHECK(fallbacks > 0);
  }
}

TEST_CASE("a group that can never fit is refused when it is opened", "[exact]") {
  NEED_EXACT_PMU();
  std::string list = "{";
  for (size_t i = 0; i < kTooMany; ++i) list += std::string(i == 0 ? "" : ",") + "instructions";
  const auto groups = ParseEventList(list + "}:u");
  REQUIRE(groups.ok());
  const auto set = CounterSet::Open(*groups);
  REQUIRE_FALSE(set.ok());
  INFO(set.status().ToString());
  CHECK(absl::IsInvalidArgument(set.status()));
  CHECK(set.status().message().find("instructions") != std::string_view::npos);
}

TEST_CASE("pinned events that have lost their counters are not counted", "[exact]") {
  NEED_EXACT_PMU();
  std::vector<CounterSet> sets;
  for (size_t i = 0; i < kTooMany; ++i) {
    absl::StatusOr<CounterSet> set = CounterSet::Open({"instructions:uD"});
    INFO(set.status().ToString());
    REQUIRE(set.ok());
    sets.push_back(*std::move(set));
  }
  std::vector<Snapshot> begin(kTooMany), end(kTooMany);
  for (size_t i = 0; i < kTooMany; ++i) sets[i].Read(begin[i]);
  Loop(1'000'000);
  for (size_t i = 0; i < kTooMany; ++i) sets[i].Read(end[i]);
  size_t counted = 0;
  for (size_t i = 0; i < kTooMany; ++i) {
    const Count count = sets[i].Difference(begin[i], end[i], 0);
    if (!count.validity.counted()) {
      CHECK(count.value == 0);
      continue;
    }
    ++counted;
    CHECK(count.coverage() == 1);
    CHECK(count.value >= 1'000'000 * kLoopInstructions);
  }
  CHECK(counted >= 4);
  CHECK(counted < kTooMany);
}

// Numbers of cycles are so high that value times time needs more than 64 bits: 2^64 are over after 4.3 s of one cycle a
// nanosecond. (How good an estimate that is, the first test tells: on a machine this slow, a tick takes a share of it.)
TEST_CASE("cycles of eight seconds scale in more than 64 bits", "[sampling]") {
  NEED_EXACT_PMU();
  const uint64_t kRounds = 8'000'000'000 / testing::CyclesPerInstruction() / kLoopInstructions;
  const CounterSet set = MustOpen(Many("cycles:u", kTooMany), Only(ReadPath::kGroupRead));
  Snapshot begin, end;
  set.Read(begin);
  Loop(kRounds);
  set.Read(end);
  for (size_t i = 0; i < kTooMany; ++i) {
    const Count count = set.Difference(begin, end, i);
    INFO("event " << i << ": " << count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns
                  << " ns");
    REQUIRE(count.scaled().has_value());
    CHECK(count.coverage() < 0.9);
    CHECK(static_cast<double>(count.value) * static_cast<double>(count.time_enabled_ns) > 0x1p64);
    CHECK(static_cast<double>(*count.scaled()) ==
          Approx(static_cast<double>(count.value) / count.coverage()).epsilon(1e-9));
    CHECK(static_cast<double>(*count.scaled()) == Approx(8e9).epsilon(0.1));
  }
}

// An event of a thread, pinned, against events of the whole CPU, which come first.
TEST_CASE("a pinned event that loses its counter has no number from then on, until it is switched on again",
          "[exact]") {
  NEED_EXACT_PMU();
  if (geteuid() != 0) SKIP_TEST("needs root to count a whole CPU");
  CounterSet set = MustOpen(std::array{EventSpec("instructions:uD")}, Only(ReadPath::kGroupRead));
  constexpr uint64_t kRounds = 100'000;
  Snapshot begin, lost, freed, again, end;
  set.Read(begin);
  {
    std::vector<CounterSet> competitors;
    for (size_t i = 0; i < kCounters; ++i) {
      absl::StatusOr<CounterSet> competitor =
          CounterSet::Open({"instructions:uD"}, Target::Cpu(0), Only(ReadPath::kGroupRead));
      INFO(competitor.status().ToString());
      REQUIRE(competitor.ok());
      competitors.push_back(*std::move(competitor));
    }
    Loop(kRounds);
    set.Read(lost);
  }
  Loop(kRounds);
  set.Read(freed);
  CHECK_FALSE(set.Difference(begin, lost, 0).validity.counted());
  CHECK_FALSE(set.Difference(begin, freed, 0).validity.counted());
  CHECK(set.Difference(begin, freed, 0).value == 0);
  REQUIRE(set.Enable().ok());
  set.Read(again);
  Loop(kRounds);
  set.Read(end);
  const Count count = set.Difference(again, end, 0);
  CHECK(count.validity.counted());
  CHECK(count.value >= kRounds * kLoopInstructions);
  CHECK(count.value < kRounds * kLoopInstructions + 1000);
}

// The kernel looks at groups when an event joins, but not at events that are switched off, as a sampler's are.
TEST_CASE("an event with more followers than there are counters is refused when a sampler opens", "[exact]") {
  NEED_EXACT_PMU();
  SamplerOptions options;
  options.events = {{.event = "instructions:u", .rate = Period{100'000}}};
  options.events[0].followers = std::vector<EventSpec>(kCounters - 1, "instructions:u");
  CHECK(Sampler::Open(options).ok());
  for (size_t more = 0; more < 3; ++more) {
    options.events[0].followers.push_back("instructions:u");
    CAPTURE(options.events[0].followers.size());
    const auto sampler = Sampler::Open(options);
    CHECK(absl::IsInvalidArgument(sampler.status()));
    CHECK(sampler.status().message().find("instructions") != std::string_view::npos);
  }
}

}  // namespace
}  // namespace perfkit
