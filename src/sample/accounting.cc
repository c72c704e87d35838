// Lists the kept losses and decisions, and fills the statistics. Both lists are rings of the latest 256 entries, since
// a sampler may run for days: entry number i, counted from the first one ever, is at i % 256.
#include "src/sample/accounting.h"

namespace perfkit::sample {

std::vector<LossInterval> Accounting::Losses() const {
  std::vector<LossInterval> losses;
  for (uint64_t i = losses_forgotten(); i < loss_count_; ++i) losses.push_back(losses_[i % kLosses]);
  return losses;
}

std::vector<SamplerDecision> Accounting::Decisions() const {
  std::vector<SamplerDecision> decisions;
  for (uint64_t i = decisions_forgotten(); i < decision_count_; ++i) decisions.push_back(decisions_[i % kLosses]);
  return decisions;
}

void Accounting::Fill(SamplerStats& stats) const {
  stats.losses = Losses();
  stats.losses_forgotten = losses_forgotten();
  stats.paused_is_lower_bound = paused_is_lower_bound;
  stats.side_band_lost = side_band_lost;
  stats.drains_of_full_rings = drains_of_full_rings;
  stats.malformed_bytes = malformed_bytes;
  stats.overwritten_bytes = overwritten_bytes;
  stats.overwritten_until_ns = overwritten_until_ns;
  stats.late = late;
  stats.unattributed = unattributed;
  stats.own_cpu_ns = own_cpu_ns;
  stats.kernel_cpu_ns = kernel_cpu_ns;
  stats.decisions = Decisions();
  stats.decisions_forgotten = decisions_forgotten();
  stats.decisions_refused = decisions_refused;
}

}  // namespace perfkit::sample
