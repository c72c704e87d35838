// Full dumps in addition to short ones. The size of a sample's dump is fixed when its event is opened, so each event is
// opened twice: as requested, and at a rate that is lower by FullDumps::every with the full dump. The samples of the
// second one have an accounting of their own, and represent nothing in a profile.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

absl::Status Plan::CheckFullDumps() const {
  const CallStack& stack = options_.stack;
  if (stack.full.every == 0 || (stack.kind == CallStack::Kind::kUserDump && stack.full.bytes > stack.stack_bytes &&
                                stack.full.bytes % 8 == 0 && stack.full.bytes <= kLargestStack)) {
    return absl::OkStatus();
  }
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("full dumps of %d bytes beside dumps of %d. Remedy: CallStack::UserDump, and a "
                                      "multiple of 8 that is larger, at most %d.",
                                      stack.full.bytes, stack.stack_bytes, kLargestStack));
}

// Linux prepares a software event's sample once for all its events on a thread, including the stack (do_perf_sw_event).
absl::Status Plan::AddFullDumps() {
  const CallStack& stack = options_.stack;
  if (stack.full.every == 0) return absl::OkStatus();
  if (absl::Status status = CheckFullDumps(); !status.ok()) return status;
  for (size_t i = 0; i < asked(); ++i) {
    PlannedEvent beside = events_[i];
    if (!beside.stack) {
      return absl::Status(absl::StatusCode::kInvalidArgument,
                          absl::StrFormat("event '%s' is asked for without stacks (SampledEvent::stack), and full dumps "
                                          "of all events (FullDumps). Remedy: no FullDumps, or its stacks.",
                                          beside.config.name));
    }
    if (beside.shares_samples) {
      return absl::Status(absl::StatusCode::kInvalidArgument,
                          absl::StrFormat("event '%s': the kernel gives two events of this kind the same stack, so "
                                          "none can be full. Remedy: no FullDumps, or a clock.",
                                          beside.config.name));
    }
    beside.full_stack = true;
    beside.followers.clear();
    beside.rate = Rarer(beside.rate, stack.full.every);
    events_.push_back(std::move(beside));
  }
  return absl::OkStatus();
}

absl::Status Plan::SetStackBytes(uint32_t bytes) {
  if (options_.stack.kind != CallStack::Kind::kUserDump || options_.mode == RingMode::kOverwrite) {
    return absl::FailedPreconditionError(
        "the size of dumps can be changed only for samplers with CallStack::UserDump and RingMode::kStream");
  }
  const uint32_t before = std::exchange(options_.stack.stack_bytes, bytes);
  absl::Status status = CheckOptions();
  if (status.ok()) status = CheckFullDumps();
  if (!status.ok()) options_.stack.stack_bytes = before;
  return status;
}

// A full dump is reduced in proportion to the short ones.
uint32_t Plan::StackOf(const PlannedEvent& event, const SamplingLevel& level) const {
  if (!event.full_stack) return level.stack;
  const uint64_t bytes = uint64_t{options_.stack.full.bytes} * level.stack / options_.stack.stack_bytes;
  return static_cast<uint32_t>(bytes / 8 * 8);
}

}  // namespace perfkit::sample
