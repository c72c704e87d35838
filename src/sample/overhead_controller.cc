// The rules by which the level changes. Down at once if a window costs more than the budget, or if several in a row
// lost records; up by one step after `backoff_` windows with room. Going down is by powers of two, in one step as far
// as the cost asks for, because each change costs milliseconds of opening events.
#include "src/sample/overhead_controller.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace perfkit::sample {

using What = SamplerDecision::What;
using Why = SamplerDecision::Why;

std::optional<SamplerDecision> OverheadController::Judge(const Window& window) {
  if (!has_budget() || window.wall_ns == 0) return std::nullopt;
  // UINT32_MAX stands for "never", and must not wrap around to "just now".
  if (since_climb_ != UINT32_MAX) ++since_climb_;
  const double cost = static_cast<double>(window.cpu_ns) / static_cast<double>(window.wall_ns);
  if (cost > budget_) return Down(Why::kCost, cost, cost / budget_);
  lossy_ = window.lost > 0 ? lossy_ + 1 : 0;
  if (lossy_ >= kLossyWindows) return Down(Why::kLoss, cost, 2);
  const bool headroom = window.lost == 0 && cost * kHeadroom < budget_;
  calm_ = headroom ? calm_ + 1 : 0;
  return now_ != Highest() && calm_ >= backoff_ ? Up(cost) : std::nullopt;
}

SamplerDecision OverheadController::Take(What what, Why why, double cost, uint32_t to) {
  uint32_t& rung = what == What::kSamples ? now_.slower : now_.stack;
  SamplerDecision decision{.what = what, .why = why, .from = rung, .to = to, .cost = cost};
  rung = to;
  return decision;
}

SamplerDecision OverheadController::LetAdvance() {
  calm_ = 0;
  min_slower_ = std::min(now_.slower * kNoProgressFactor, kSlowest);
  return Take(What::kSamples, Why::kNoProgress, 0, min_slower_);
}

// A step up that has to be undone was too early: the next one waits twice as long.
std::optional<SamplerDecision> OverheadController::Down(Why why, double cost, double factor) {
  lossy_ = calm_ = 0;
  if (since_climb_ <= backoff_) backoff_ = std::min(2 * backoff_, kMaxBackoff);
  since_climb_ = UINT32_MAX;
  const uint32_t times = std::bit_ceil(static_cast<uint32_t>(std::ceil(std::min<double>(factor, kMaxAtOnce))));
  if (now_.stack > min_stack_ && !stack_stuck_) {
    // The size of a dump must be a multiple of 8 (perf_copy_attr in kernel/events/core.c).
    return Take(What::kStackBytes, why, cost, std::max(min_stack_, now_.stack / times / 8 * 8));
  }
  if (now_.stack > 0 && !stack_stuck_) return Take(What::kStack, why, cost, 0);
  if (now_.slower >= kSlowest) return std::nullopt;
  return Take(What::kSamples, why, cost, std::min(now_.slower * times, kSlowest));
}

std::optional<SamplerDecision> OverheadController::Up(double cost) {
  calm_ = 0;
  if (since_climb_ != UINT32_MAX) backoff_ = kFirstBackoff;  // The last step up has held.
  since_climb_ = 0;
  if (now_.slower > min_slower_) {
    return Take(What::kSamples, Why::kHeadroom, cost, std::max(now_.slower / 2, min_slower_));
  }
  if (stack_stuck_) return std::nullopt;
  if (now_.stack == 0) return Take(What::kStack, Why::kHeadroom, cost, std::min(min_stack_, full_.stack));
  return Take(What::kStackBytes, Why::kHeadroom, cost, std::min(2 * now_.stack, full_.stack));
}

void OverheadController::Undo(const SamplerDecision& decision) {
  const auto before = static_cast<uint32_t>(decision.from);
  if (decision.what == What::kSamples) {
    now_.slower = before;
  } else {
    now_.stack = before;
  }
}

void OverheadController::Refused(const SamplerDecision& decision) {
  Undo(decision);
  stack_stuck_ = stack_stuck_ || decision.what != What::kSamples;
}

}  // namespace perfkit::sample
