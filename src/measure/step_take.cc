// Counts by the stepper: instructions, system calls among them, and visits of functions' entries. The region really
// runs one instruction at a time, thousands of times slower, so it is the last backend, has a budget, and runs once:
// what it counts does not vary.
#include <vector>

#include "src/measure/take.h"
#include "src/step/stepper.h"

namespace perfkit::measure {
namespace {

std::vector<uintptr_t> Watched(const EventType& event) {
  if (IsCalls(event)) return {event.config1};
  if (!IsAllocations(event)) return {};
  std::vector<uintptr_t> watched;
  for (const AllocatorEntry& entry : AllocatorEntries()) {
    if (entry.code != nullptr) watched.push_back(reinterpret_cast<uintptr_t>(entry.code));
  }
  return watched;
}

uint64_t Pick(const EventType& event, const step::StepCount& count) {
  if (event == event::kInstructions) return count.instructions;
  if (IsSyscalls(event)) return count.system_calls;
  uint64_t visits = 0;
  for (const uint64_t n : count.visits) visits += n;
  return visits;
}

}  // namespace

absl::StatusOr<Take> OpenStepTake(const EventType& event, const MeasureOptions& options) {
  const bool steps = event == event::kInstructions || IsAllocations(event) || IsSyscalls(event) || IsCalls(event);
  if (!steps) {
    return absl::Status(absl::StatusCode::kUnavailable, "the stepper counts instructions, calls and system calls only");
  }
  const absl::StatusOr<step::Stepper> stepper = step::Stepper::Open();
  if (!stepper.ok()) return stepper.status();
  const step::StepOptions limits{.budget = options.step_budget, .cpu_limit_ns = options.step_cpu_ns};
  const auto take = [event, limits, stepper = *stepper, watch = Watched(event)](Body body,
                                                                                void* self) -> absl::StatusOr<int64_t> {
    step::StepOptions watching = limits;
    watching.watch = watch;
    const absl::StatusOr<step::StepCount> count = stepper.Run(body, self, watching);
    if (!count.ok()) return count.status();
    return static_cast<int64_t>(Pick(event, *count));
  };
  return Take{.take = take, .read_path = "stepper", .event_class = EventClass::kExact, .user_only = true, .once = true};
}

}  // namespace perfkit::measure
