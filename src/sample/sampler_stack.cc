// Changes how long dumps are, while they are being taken.
#include <utility>

#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

// Whoever asks may be in no position to take the records that the old events have written: Drain is.
absl::Status SamplerImpl::SetStackBytes(uint32_t bytes) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  Plan trial = plan_;
  if (absl::Status status = trial.SetStackBytes(bytes); !status.ok()) return status;
  wanted_stack_ = bytes == plan_.options().stack.stack_bytes ? 0 : bytes;
  return absl::OkStatus();
}

// What the OverheadController had given up was of another length: it begins at the top again.
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
  (void)plan_.SetStackBytes(before);  // until the next drain, which tries again
}

}  // namespace perfkit::sample
