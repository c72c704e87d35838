// What a sampler gives up when it costs more than it may, or when its rings overflow, and in which order: bytes of the
// stack, then the stack, then samples. The side band never: without it no sample can be read.
//
//   full ── stack halves … ── no stack ── samples halve …        down: at once, as far as the cost is over the budget
//        <────────────────────────────────────────────────       up: one rung, after a while in which there was room
//
// Pure: told what each window of time has cost, it says what shall be done. Whoever asks does it, or says that it could
// not (Refused).
#pragma once

#include <cstdint>
#include <optional>

#include "perfkit/sampler.h"

namespace perfkit::sample {

// What may change while a sampler runs.
struct SamplingLevel {
  uint32_t stack = 0;   // bytes of a dump, or calls of a chain; 0: none
  uint32_t slower = 1;  // periods are multiplied by this, frequencies divided

  friend bool operator==(const SamplingLevel&, const SamplingLevel&) = default;
};

// What a time has cost.
struct Window {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;  // of the reader and of the kernel
  uint64_t lost = 0;
};

class OverheadController {
 public:
  static constexpr uint64_t kWindowNs = 100'000'000;  // windows are at least this long
  static constexpr uint32_t kLossyWindows = 2;        // in a row, before a loss counts as one that repeats itself
  static constexpr uint32_t kFirstBackoff = 10;       // windows with room, before the first rung up
  static constexpr uint32_t kMaxBackoff = 160;
  static constexpr double kRoom = 3;  // there is room when the cost is this many times below the budget
  static constexpr uint32_t kSlowest = 1 << 20;
  static constexpr uint32_t kMaxAtOnce = 64;

  // `full` is what was asked for; a stack shorter than `min_stack` is not worth taking.
  OverheadController(double budget, const SamplingLevel& full, uint32_t min_stack)
      : budget_(budget), full_(full), now_(full), min_stack_(min_stack) {}

  // The decision that this window leads to, if any, and from then on what is taken (level). Its times are left open.
  std::optional<SamplerDecision> Judge(const Window& window);
  // It could not be done: what was taken before is taken still. A stack that cannot be changed is left alone.
  void Refused(const SamplerDecision& decision);

  const SamplingLevel& level() const { return now_; }
  bool has_budget() const { return budget_ > 0; }

 private:
  std::optional<SamplerDecision> Down(SamplerDecision::Why why, double cost, double factor);
  std::optional<SamplerDecision> Up(double cost);
  SamplerDecision Take(SamplerDecision::What what, SamplerDecision::Why why, double cost, uint32_t to);

  double budget_;
  SamplingLevel full_, now_;
  uint32_t min_stack_;
  bool stack_stuck_ = false;
  uint32_t lossy_ = 0, calm_ = 0;
  uint32_t backoff_ = kFirstBackoff;
  uint32_t since_climb_ = UINT32_MAX;  // windows
};

}  // namespace perfkit::sample
