// Decides what a sampler gives up if its cost exceeds the budget, or if its rings overflow: first bytes of the stack,
// then the stack, then samples. Never the side band: without it no sample can be interpreted.
//
//   full ── stack halves … ── no stack ── samples halve …        down: at once, by as many steps as the cost requires
//        <────────────────────────────────────────────────       up: one step, after a while with headroom
//
// A pure state machine: Judge takes the cost of a window of time and returns a decision. The caller carries it out, or
// reports that it failed (Refused).
#pragma once

#include <cstdint>
#include <optional>

#include "perfkit/sampler_stats.h"

namespace perfkit::sample {

// What a decision may change while the sampler runs.
struct SamplingLevel {
  uint32_t stack = 0;   // Bytes of a dump, or calls of a chain; 0 means no stack.
  uint32_t slower = 1;  // Periods are multiplied, frequencies divided by this.

  friend bool operator==(const SamplingLevel&, const SamplingLevel&) = default;
};

// The cost of an interval of time.
struct Window {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;  // Of the reader and the kernel.
  uint64_t lost = 0;
};

class OverheadController {
 public:
  static constexpr uint64_t kWindowNs = 100'000'000;  // Minimum length of a window.
  static constexpr uint32_t kLossyWindows = 2;        // Consecutive windows with losses that lead to a decision.
  static constexpr uint32_t kFirstBackoff = 10;       // Windows with headroom before the first step up.
  static constexpr uint32_t kMaxBackoff = 160;
  static constexpr double kHeadroom = 3;  // There is headroom if the cost is below the budget divided by this.
  static constexpr uint32_t kSlowest = 1 << 20;
  static constexpr uint32_t kMaxAtOnce = 64;
  static constexpr uint32_t kNoProgressFactor = 8;

  // `full` is the level that was asked for; stacks shorter than `min_stack` are useless.
  OverheadController(double budget, const SamplingLevel& full, uint32_t min_stack)
      : budget_(budget), full_(full), now_(full), min_stack_(min_stack) {}

  // Returns the decision that this window leads to, without its times, and changes level(); nullopt if there is none.
  std::optional<SamplerDecision> Judge(const Window& window);
  // Returns the decision that follows from a thread that does not advance, with a budget or without: samples become
  // kNoProgressFactor times as rare and never again more frequent.
  SamplerDecision LetAdvance();
  // Restores the level before the decision.
  void Undo(const SamplerDecision& decision);
  // The decision failed: restores the level before it. A stack that can't be changed is not tried again.
  void Refused(const SamplerDecision& decision);

  const SamplingLevel& level() const { return now_; }
  bool has_budget() const { return budget_ > 0; }

 private:
  // Returns the level above which no step up leads.
  SamplingLevel Highest() const { return {full_.stack, min_slower_}; }
  // The decisions to reduce by `factor`, and to restore one step.
  std::optional<SamplerDecision> Down(SamplerDecision::Why why, double cost, double factor);
  std::optional<SamplerDecision> Up(double cost);
  // Changes the level and returns the decision.
  SamplerDecision Take(SamplerDecision::What what, SamplerDecision::Why why, double cost, uint32_t to);

  double budget_;
  SamplingLevel full_, now_;
  uint32_t min_stack_;
  uint32_t min_slower_ = 1;            // The least SamplingLevel::slower with which threads advance.
  bool stack_stuck_ = false;           // A decision about the stack has failed.
  uint32_t lossy_ = 0, calm_ = 0;      // Consecutive windows with losses, and with headroom.
  uint32_t backoff_ = kFirstBackoff;   // Windows with headroom that are required before a step up.
  uint32_t since_climb_ = UINT32_MAX;  // Windows since the last step up.
};

}  // namespace perfkit::sample
