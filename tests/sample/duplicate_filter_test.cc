// Tests which of several samples of one occurrence counts, without a kernel's events.
#include "src/sample/duplicate_filter.h"

#include <catch2/catch.hpp>

#include "tests/support/record_builder.h"

namespace perfkit::sample {
namespace {

// A sampler of the event "page-faults", whose old events have id 11 and whose new ones have id 22.
struct TwoGenerations {
  static Plan MakePlan() {
    SamplerOptions options;
    options.events = {{.event = "page-faults", .rate = Period{1}}};
    options.user_only = true;
    absl::StatusOr<Plan> plan = Plan::Make(options, Target::ThisThread());
    REQUIRE(plan.ok());
    return *std::move(plan);
  }
  static RingSet OneEvent(uint64_t id) {
    RingSet set;
    RingEvent& event = set.events.emplace_back();
    event.id = id;
    event.event = 0;
    event.tid = kThread;
    return set;
  }

  TwoGenerations() {
    writers.Rebuild({&before}, {}, 0);
    writers.Retire(before.events[0], 150);
    writers.Rebuild({&after}, {}, 150);
  }

  // A sample of thread `tid` at `time_ns`, which has the id of the old event or of the new one.
  bool Counts(uint64_t id, pid_t tid, uint64_t time_ns, bool foreign = false) {
    testing::SampleValues values;
    values.tid = static_cast<uint32_t>(tid);
    values.time = time_ns;
    const std::string bytes = testing::BuildSample(plan.layout().bits(), values);
    return filter.CountsOnce(testing::AsRecord(bytes), *writers.Find(id), last, time_ns, foreign);
  }

  static constexpr pid_t kThread = 100;

  Plan plan = MakePlan();
  WriterIndex writers{plan};
  DuplicateFilter filter{plan, writers};
  RingSet before = OneEvent(11), after = OneEvent(22);
  std::vector<RingSlot::Last> last;
};

TEST_CASE("while both generations are enabled, the time decides which counts", "[sample][duplicate_filter]") {
  TwoGenerations events;
  events.writers.overlap() = {.from_ns = 100, .at_ns = 120, .to_ns = 140};
  CHECK(events.Counts(11, 100, 90));
  CHECK(events.Counts(11, 100, 110));
  CHECK_FALSE(events.Counts(22, 100, 115));
  CHECK_FALSE(events.Counts(11, 100, 125));
  CHECK(events.Counts(22, 100, 130));
  CHECK(events.Counts(22, 100, 150));
}

TEST_CASE("of two samples at one time exactly one counts, whatever their ids", "[sample][duplicate_filter]") {
  for (const uint64_t first : {11, 22}) {
    for (const uint64_t second : {11, 22}) {
      for (const bool foreign : {false, true}) {
        TwoGenerations events;
        events.writers.overlap() = {.from_ns = 100, .at_ns = 120, .to_ns = 140};
        const int counted = events.Counts(first, 100, 110, foreign) + events.Counts(second, 100, 110, foreign);
        INFO(first << " " << second << " " << foreign);
        CHECK(counted == 1);
        CHECK(events.Counts(11, 101, 110));  // That of another thread.
      }
    }
  }
}

TEST_CASE("a thread's own events count, not those that it has inherited", "[sample][duplicate_filter]") {
  TwoGenerations events;
  CHECK(events.Counts(22, 200, 1000));  // Nothing is expected: all count.
  events.filter.ExpectDuplicates(false);
  events.filter.AddAttached(100, 900, false);
  events.filter.Born(200, 100, 950);
  CHECK(events.Counts(22, 200, 1001));
  events.filter.AddAttached(200, 1010, false);
  CHECK_FALSE(events.Counts(22, 200, 1020));
  events.filter.Born(300, 200, 1030);
  CHECK_FALSE(events.Counts(22, 300, 1040));
  events.filter.Ended(300, 1050);
  events.filter.Born(300, 100, 1060);
  CHECK(events.Counts(22, 300, 1070));
}

TEST_CASE("a foreign sample counts once, whatever thread its stand-in is of", "[sample][duplicate_filter]") {
  TwoGenerations events;
  events.filter.ExpectDuplicates(false);
  events.filter.AddAttached(100, 900, false);
  events.filter.AddAttached(200, 900, false);
  CHECK(events.Counts(22, 200, 1000, /*foreign=*/true));
  CHECK_FALSE(events.Counts(22, 200, 1000, /*foreign=*/true));
  CHECK(events.Counts(22, 300, 1001, /*foreign=*/true));
  events.filter.Born(400, 300, 1002);
  CHECK_FALSE(events.Counts(22, 400, 1003));  // Of a thread that the foreign sample did not make 100's.
}

TEST_CASE("events that are being opened own nothing until they take over", "[sample][duplicate_filter]") {
  TwoGenerations events;
  events.filter.AddAttached(100, 900, true);
  events.filter.BeginOpening();
  CHECK_FALSE(events.filter.IsAttached(100));
  events.filter.AddAttached(200, 1000, false);
  events.filter.EndOpening(true);
  CHECK(events.filter.IsAttached(100));
  CHECK_FALSE(events.filter.IsAttached(200));
  CHECK(events.filter.NeedsTasks());
  events.filter.DropFresh();
  CHECK_FALSE(events.filter.NeedsTasks());
  events.filter.TakeOver();
  CHECK_FALSE(events.filter.IsAttached(100));
  CHECK(events.filter.IsAttached(200));
}

}  // namespace
}  // namespace perfkit::sample
