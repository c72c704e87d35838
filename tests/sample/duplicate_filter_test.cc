// Tests which of several samples of one occurrence counts, without a kernel's events.
#include "src/sample/duplicate_filter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/record_builder.h"

namespace perfkit::sample {
namespace {

constexpr uint64_t kOld = 11, kNew = 22;

// A sampler of one event, whose old events have id kOld and whose new ones have id kNew.
struct TwoGenerations {
  static Plan MakePlan(const SampledEvent& event) {
    SamplerOptions options;
    options.events = {event};
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

  explicit TwoGenerations(const SampledEvent& event = {.event = "page-faults", .rate = Period{1}})
      : plan(MakePlan(event)) {
    writers.Rebuild({&before}, {}, 0);
    writers.Retire(before.events[0], 150);
    writers.Rebuild({&after}, {}, 150);
  }

  // A sample of thread `tid` at `time_ns`, which has the id of the old event or of the new one. `written_ns`: the time
  // in it, if that is of another clock.
  bool Counts(uint64_t id, pid_t tid, uint64_t time_ns, bool foreign = false, uint64_t written_ns = 0) {
    testing::SampleValues values;
    values.tid = static_cast<uint32_t>(tid);
    values.time = written_ns != 0 ? written_ns : time_ns;
    const std::string bytes = testing::BuildSample(plan.layout().bits(), values);
    return filter.CountsOnce(testing::AsRecord(bytes), *writers.Find(id), last, time_ns, foreign);
  }

  static constexpr pid_t kThread = 100;

  Plan plan;
  WriterIndex writers{plan};
  DuplicateFilter filter{plan, writers};
  RingSet before = OneEvent(kOld), after = OneEvent(kNew);
  std::vector<RingSlot::Last> last;
};

TEST_CASE("while both generations are enabled, the time of a periodic sample decides", "[sample][duplicate_filter]") {
  TwoGenerations events({.event = "page-faults", .rate = Period{2}});
  events.writers.overlap() = {.from_ns = 100, .at_ns = 120, .to_ns = 140};
  CHECK(events.Counts(11, 100, 90));
  CHECK(events.Counts(11, 100, 110));
  CHECK_FALSE(events.Counts(22, 100, 115));
  CHECK_FALSE(events.Counts(11, 100, 125));
  CHECK(events.Counts(22, 100, 130));
  CHECK(events.Counts(22, 100, 150));
}

// The samples of occurrences while a new event is enabled and then the old one disabled. Both may happen while an
// occurrence is served: then it has the sample of one event only.
class Replacement {
 public:
  struct Record {
    uint64_t id = 0, time_ns = 0;
    size_t occurrence = 0;
  };
  enum class Kind : uint8_t {
    kShared,         // The new event is served first, and both samples have its id and time.
    kNewFirst,       // The new event is served first.
    kInterruptible,  // As above, and another occurrence may come before the old event is served.
    kOldFirst,       // The old event is served first.
  };

  Replacement(Kind kind, std::mt19937_64& random) : kind_(kind), random_(random) {
    Alone(kOld, Below(5));
    overlap.from_ns = time_ns_;
    Alone(kOld, Below(3));
    const uint64_t pairs = Below(8);
    for (uint64_t i = 0; i < pairs; ++i) Pair();
    Alone(kNew, Below(3));
    overlap.to_ns = time_ns_;
    Alone(kNew, Below(5));
    overlap.at_ns = overlap.from_ns + Below(overlap.to_ns - overlap.from_ns + 1);
  }

  std::vector<Record> records;
  ReplacementOverlap overlap;
  size_t occurrences = 0;

 private:
  static constexpr uint64_t kApartNs = 2'000'000;  // Between two occurrences, more than one interrupt takes.

  uint64_t Below(uint64_t end) { return random_() % end; }
  void Alone(uint64_t id, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i, time_ns_ += kApartNs) Add(id, occurrences++);
  }
  void Pair() {
    const bool old_first = kind_ == Kind::kOldFirst;
    const size_t occurrence = occurrences++;
    Add(old_first ? kOld : kNew, occurrence);
    if (kind_ == Kind::kShared) return records.push_back(records.back());
    if (kind_ == Kind::kInterruptible && Below(4) == 0) Pair();
    Add(old_first ? kNew : kOld, occurrence);
    time_ns_ += kApartNs;
  }
  void Add(uint64_t id, size_t occurrence) {
    records.push_back({id, time_ns_, occurrence});
    time_ns_ += 1 + Below(20);
  }

  Kind kind_;
  std::mt19937_64& random_;
  uint64_t time_ns_ = 1000;
};

// The law: each occurrence counts once, at whatever time the new event was enabled; never twice, whatever was lost.
TEST_CASE("while both generations are enabled, each occurrence counts once", "[sample][duplicate_filter][law]") {
  using Kind = Replacement::Kind;
  const SampledEvent faults{.event = "page-faults", .rate = Period{1}};
  uint64_t word = 0;
  const SampledEvent breakpoint{.event = absl::StrFormat("mem:%#x/8:w", reinterpret_cast<uintptr_t>(&word)),
                                .rate = Period{1}};
  std::mt19937_64 random(7);
  for (const Kind kind : {Kind::kShared, Kind::kNewFirst, Kind::kInterruptible, Kind::kOldFirst}) {
    TwoGenerations events(kind == Kind::kOldFirst ? breakpoint : faults);
    for (int round = 0; round < 500; ++round) {
      const bool loses = round % 2 != 0 && kind != Kind::kInterruptible;
      const Replacement replacement(kind, random);
      events.writers.overlap() = replacement.overlap;
      events.last.clear();
      std::vector<int> counted(replacement.occurrences);
      size_t lost = 0;
      for (const Replacement::Record& record : replacement.records) {
        if (loses && random() % 8 == 0) {
          ++lost;
        } else {
          counted[record.occurrence] += events.Counts(record.id, TwoGenerations::kThread, record.time_ns) ? 1 : 0;
        }
      }
      CAPTURE(kind, round);
      REQUIRE(std::ranges::count_if(counted, [](int times) { return times > 1; }) == 0);
      REQUIRE(static_cast<size_t>(std::ranges::count(counted, 0)) <= lost);
    }
  }
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
  events.filter.Ended(200, 1080);
  CHECK(events.Counts(22, 200, 1090));  // Of another thread with its number, of whose birth there is no record.
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

TEST_CASE("samples with another sampler's clock are told apart by that", "[sample][duplicate_filter]") {
  TwoGenerations events;
  events.writers.overlap() = {.from_ns = 100, .at_ns = 120, .to_ns = 1000};
  for (const uint64_t written_ns : {7'000'000, 7'000'300, 7'000'600}) {  // Their time is that of the one before.
    CHECK(events.Counts(22, 100, 500, false, written_ns));
    CHECK_FALSE(events.Counts(22, 100, 500, false, written_ns));
  }
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
