// Measures regions by repetition. Each event is opened alone, as a Take of the first backend that works. The regions
// run in turns, in alternating order, so that slow changes of the machine affect all alike; the empty region is
// measured first in the same way. Repetitions with a context switch are dropped, up to a bound; if most are switched,
// all are kept and the Cost says so. What remains is a list of values for each region, minus the cost of the empty one.
#include "perfkit/measure.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/measure/by_zone.h"
#include "src/measure/statistics.h"
#include "src/measure/take.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"
#include "src/sys/switches.h"

namespace perfkit::measure {
namespace {

using detail::Region;

// Maximum repetitions for each requested one; if too few of them are without a switch, all are used.
constexpr uint32_t kPatience = 4;

uint32_t DefaultRepetitions(EventClass event_class) {
  switch (event_class) {
    case EventClass::kExact: return 5;
    case EventClass::kNearExact: return 11;
    case EventClass::kNoisy:
    case EventClass::kTime: return 31;
  }
  return 1;
}

bool AnyThrew(std::span<const Region> regions) {
  return std::any_of(regions.begin(), regions.end(), [](const Region& region) { return *region.threw; });
}

// One repetition of each region. `backwards` in every other round, so that no region is always the first.
struct Round {
  std::vector<int64_t> values;
  bool switched = false;
};

absl::StatusOr<Round> TakeRound(const Take& take, std::span<const Region> regions, bool empty, bool backwards) {
  Round round{std::vector<int64_t>(regions.size())};
  for (size_t i = 0; i < regions.size(); ++i) {
    const size_t r = backwards ? regions.size() - 1 - i : i;
    const pid_t thread = sys::kernel().gettid();
    const std::optional<uint64_t> switches = sys::ThreadSwitches();
    const absl::StatusOr<int64_t> value =
        empty ? take.take(regions[r].empty, regions[r].empty_self) : take.take(regions[r].call, regions[r].self);
    // All backends count one thread only.
    if (sys::kernel().gettid() != thread) {
      return absl::Status(absl::StatusCode::kAborted, "the region began and ended on different threads");
    }
    if (!value.ok()) return value.status();
    if (*regions[r].threw) break;
    // The switches of more than the region: a good repetition may be dropped, but no switched one is kept.
    round.switched |= sys::ThreadSwitches() != switches;
    round.values[r] = *value;
  }
  return round;
}

struct Rounds {
  std::vector<Round> kept;
  uint32_t dropped = 0;
  bool switched = false;
};

// Returns `wanted` rounds without a context switch; if there are too few, returns all rounds.
absl::StatusOr<Rounds> TakeRounds(const Take& take, std::span<const Region> regions, bool empty, uint32_t wanted) {
  std::vector<Round> clean, switched;
  const uint64_t most = uint64_t{wanted} * kPatience;
  for (uint64_t i = 0; clean.size() < wanted && i < most && !AnyThrew(regions); ++i) {
    absl::StatusOr<Round> round = TakeRound(take, regions, empty, i % 2 == 1);
    if (!round.ok()) return round.status();
    // The stepper counts the thread's own instructions: a switch does not affect them.
    (round->switched && !take.once ? switched : clean).push_back(*std::move(round));
  }
  if (clean.size() >= wanted) return Rounds{std::move(clean), static_cast<uint32_t>(switched.size()), false};
  // The machine is too busy for clean rounds only. All rounds together are less biased than a handful of clean ones.
  for (Round& round : clean) switched.push_back(std::move(round));
  return Rounds{std::move(switched), 0, true};
}

// Returns the cost of an empty region in the place of region `r`.
int64_t EmptyCost(const Rounds& rounds, size_t r, EventClass event_class) {
  std::vector<int64_t> values;
  for (const Round& round : rounds.kept) values.push_back(round.values[r]);
  if (values.empty()) return 0;
  const bool steady = event_class == EventClass::kExact || event_class == EventClass::kNearExact;
  return steady ? *std::min_element(values.begin(), values.end()) : Median(values);
}

std::vector<Cost> Blank(const EventType& event, size_t regions) {
  Cost cost;
  cost.event = event;
  cost.event_class = ClassOf(event);
  return std::vector<Cost>(regions, cost);
}

absl::StatusOr<std::vector<Cost>> MeasureWith(MeasureBackend backend, const EventType& event,
                                              std::span<const Region> regions, const MeasureOptions& options) {
  const absl::StatusOr<Take> take = OpenTake(backend, event, options);
  if (!take.ok()) return take.status();
  const uint32_t wanted = options.repetitions != 0 ? options.repetitions : DefaultRepetitions(take->event_class);
  const uint32_t repetitions = take->once ? 1 : wanted;
  // The first round of each warms up what the backend uses, and is discarded.
  // With `once` the empty region only: the stepper takes microseconds for each instruction.
  for (int i = 0; i < (take->once ? 1 : 2); ++i) {
    if (absl::StatusOr<Round> first = TakeRound(*take, regions, i == 0, false); !first.ok()) {
      return first.status();
    }
  }
  const absl::StatusOr<Rounds> empty = TakeRounds(*take, regions, true, repetitions);
  if (!empty.ok()) return empty.status();
  const absl::StatusOr<Rounds> full = TakeRounds(*take, regions, false, repetitions);
  if (!full.ok()) return full.status();
  std::vector<Cost> costs = Blank(event, regions.size());
  for (size_t r = 0; r < regions.size(); ++r) {
    Cost& cost = costs[r];
    cost.event_class = take->event_class;
    cost.read_path = take->read_path;
    cost.user_only = take->user_only;
    cost.empty = EmptyCost(*empty, r, take->event_class);
    cost.dropped = full->dropped;
    cost.switched = full->switched;
    for (const Round& round : full->kept) cost.values.push_back(round.values[r] - cost.empty);
  }
  return costs;
}

std::vector<Cost> MeasureEvent(const EventType& event, std::span<const Region> regions, const MeasureOptions& options) {
  std::string reasons;
  for (const MeasureBackend backend : BackendsFor(event)) {
    if (options.only && *options.only != backend) continue;
    absl::StatusOr<std::vector<Cost>> costs = MeasureWith(backend, event, regions, options);
    if (costs.ok()) return *std::move(costs);
    absl::StrAppendFormat(&reasons, "%s%s: %s", reasons.empty() ? "" : "; ", BackendName(backend),
                          sys::CauseOf(costs.status()));
    if (absl::IsAborted(costs.status())) break;  // The region failed: no backend can measure it.
  }
  if (reasons.empty()) reasons = "the backend that was asked for does not count this event";
  std::vector<Cost> costs = Blank(event, regions.size());
  for (Cost& cost : costs) cost.unmeasurable = reasons;
  return costs;
}

}  // namespace
}  // namespace perfkit::measure

namespace perfkit::detail {

std::vector<Measurement> MeasureRegions(std::span<const EventType> events, std::span<const Region> regions,
                                        const MeasureOptions& options) {
  std::vector<Measurement> measured(regions.size());
  std::optional<measure::ZonesOff> off(options.zones);
  for (const Region& region : regions) {
    region.call(region.self);  // Warms up caches, lazily bound symbols and the allocator.
    if (*region.threw) return measured;
  }
  for (const EventType& event : events) {
    std::vector<Cost> costs = measure::MeasureEvent(event, regions, options);
    for (size_t r = 0; r < regions.size(); ++r) measured[r].costs.push_back(std::move(costs[r]));
    if (measure::AnyThrew(regions)) return measured;
  }
  off.reset();
  for (size_t r = 0; r < regions.size() && options.zones != nullptr; ++r) {
    measured[r].by_zone = measure::CostByZone(*options.zones, regions[r]);
  }
  return measured;
}

}  // namespace perfkit::detail
