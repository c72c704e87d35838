// Keeps a sampler within its CPU budget: adds up what sampling costs, and lets the OverheadController judge it once in
// each window of time.
//
// The kernel's cost of each sample is added once, estimated at the level at which the sample was taken. So costs are
// added before the level changes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/sample/accounting.h"
#include "src/sample/overhead_controller.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

// Not thread-safe.
class SamplingBudget {
 public:
  // The arguments must outlive the object.
  SamplingBudget(const Plan& plan, Accounting& accounting);

  // Adds the costs since the last call. All samples since then were taken at `level`. `handlers_ns`: the time of
  // handlers of live stacks.
  void AddCosts(const SamplingLevel& level, uint64_t handlers_ns);
  // Begins a window: what was spent so far does not count in it.
  void BeginWindow();
  // Returns true if there is a budget, and the window is long enough to be judged.
  bool is_due() const;
  // Judges the window, after AddCosts. Returns what to do; nullopt if nothing.
  std::optional<SamplerDecision> Judge();
  // OverheadController::LetAdvance.
  SamplerDecision LetAdvance() { return controller_.LetAdvance(); }
  // Returns the level that the decisions lead to.
  const SamplingLevel& level() const { return controller_.level(); }
  // The decision was not carried out: a visitor threw.
  void Undo(const SamplerDecision& decision) { controller_.Undo(decision); }
  // The decision could not be carried out.
  void Refused(const SamplerDecision& decision) { controller_.Refused(decision); }
  // Begins anew at the plan's full level, because decisions so far were about another one.
  void Restart();

 private:
  uint64_t CpuNs() const { return accounting_.own_cpu_ns + accounting_.kernel_cpu_ns; }

  const Plan& plan_;
  Accounting& accounting_;
  OverheadController controller_;
  uint64_t window_begun_ns_ = 0, window_cpu_ns_ = 0, window_lost_ = 0;
  std::vector<uint64_t> costed_;  // By event: samples that kernel_cpu_ns includes.
  uint64_t costed_lost_ = 0;
};

}  // namespace perfkit::sample
