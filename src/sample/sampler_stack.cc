// Changes the size of dumps while the sampler runs.
#include <utility>

#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

// The next Drain carries it out, because the records of the old events have to be delivered to a visitor.
absl::Status SamplerImpl::SetStackBytes(uint32_t bytes) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  Plan trial = plan_;
  if (absl::Status status = trial.SetStackBytes(bytes); !status.ok()) return status;
  wanted_stack_ = bytes == plan_.options().stack.stack_bytes ? 0 : bytes;
  return absl::OkStatus();
}

// Restarts the OverheadController at the full level, because its decisions were about the old size.
void SamplerImpl::AdoptStack(Visit visit, size_t max_records) {
  const uint32_t wanted = wanted_stack_, before = plan_.options().stack.stack_bytes;
  if (wanted == 0) return;
  SamplerDecision unasked;
  if (plan_.SetStackBytes(wanted).ok() && Change(plan_.FullLevel(), unasked, visit, max_records).ok()) {
    wanted_stack_ = 0;
    overhead_ = OverheadController(plan_.options().cpu_budget, plan_.FullLevel(), plan_.MinStack());
    return BeginWindow();
  }
  ++accounting_.decisions_refused;
  (void)plan_.SetStackBytes(before);  // Until the next drain, which tries again.
}

}  // namespace perfkit::sample
