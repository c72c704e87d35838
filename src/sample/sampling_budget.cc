// Adds up costs, and compares windows of them with the budget.
#include "src/sample/sampling_budget.h"

#include <utility>

#include "src/sys/clock.h"

namespace perfkit::sample {

SamplingBudget::SamplingBudget(const Plan& plan, Accounting& accounting)
    : plan_(plan),
      accounting_(accounting),
      controller_(plan.options().cpu_budget, plan.FullLevel(), plan.MinStack()),
      costed_(plan.events().size()) {}

void SamplingBudget::AddCosts(const SamplingLevel& level, uint64_t handlers_ns) {
  for (size_t i = 0; i < costed_.size(); ++i) {
    const EventAccounting& event = accounting_.event(i);
    // The kernel has paid for each of these, whatever became of it here.
    const uint64_t taken = event.delivered + event.duplicates + event.malformed;
    accounting_.kernel_cpu_ns += (taken - std::exchange(costed_[i], taken)) * plan_.SampleCostNs(i, level);
  }
  const uint64_t lost = accounting_.told_lost - std::exchange(costed_lost_, accounting_.told_lost);
  accounting_.own_cpu_ns += handlers_ns;
  if (!plan_.events().empty()) accounting_.kernel_cpu_ns += lost * plan_.SampleCostNs(0, level);
}

void SamplingBudget::BeginWindow() {
  window_begun_ns_ = sys::ClockNs(CLOCK_MONOTONIC);
  window_cpu_ns_ = CpuNs();
  window_lost_ = accounting_.told_lost;
}

bool SamplingBudget::is_due() const {
  return controller_.has_budget() && sys::ClockNs(CLOCK_MONOTONIC) - window_begun_ns_ >= OverheadController::kWindowNs;
}

std::optional<SamplerDecision> SamplingBudget::Judge() {
  return controller_.Judge({.wall_ns = sys::ClockNs(CLOCK_MONOTONIC) - window_begun_ns_,
                            .cpu_ns = CpuNs() - window_cpu_ns_,
                            .lost = accounting_.told_lost - window_lost_});
}

void SamplingBudget::Restart() {
  controller_ = OverheadController(plan_.options().cpu_budget, plan_.FullLevel(), plan_.MinStack());
  BeginWindow();
}

}  // namespace perfkit::sample
