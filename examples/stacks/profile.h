// One way to have the stacks of this process's threads: a sampler, what came of its samples, and what it cost.
#pragma once

#include <absl/status/statusor.h>
#include <perfkit/dwarf_lines.h>
#include <perfkit/sampler.h>
#include <perfkit/symbolizer.h>
#include <perfkit/unwinder.h>

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "call_tree.h"

namespace stacks {

struct Outcome {
  uint64_t stacks = 0, frames = 0, guesses = 0;
  std::array<uint64_t, 16> ends{};       // by StackEnd
  uint64_t drain_ns = 0, unwind_ns = 0;  // CPU time of this thread
};

class Profile {
 public:
  static absl::StatusOr<std::unique_ptr<Profile>> Open(const perfkit::CallStack& stack);

  // Samples all threads for so long.
  absl::Status Sample(std::chrono::milliseconds time);

  const Outcome& outcome() const { return outcome_; }
  void PrintTree(double min_percent) { tree_.Print(symbolizer_, min_percent); }
  void PrintOutcome(const std::string& title) const;

 private:
  Profile(perfkit::Sampler sampler, bool live) : sampler_(std::move(sampler)), live_(live) {}

  void Drain();
  void Take(const perfkit::SamplerRecord& record);
  void Add(uint32_t pid, std::span<const perfkit::StackFrame> frames, perfkit::StackEnd end);
  void PrintAccounting(const perfkit::EventAccounting& accounting) const;

  perfkit::Sampler sampler_;
  bool live_;
  perfkit::Unwinder unwinder_;  // of dumps
  perfkit::Symbolizer symbolizer_{{.lines = perfkit::DwarfLines}};
  std::array<perfkit::StackFrame, 512> frames_{};
  CallTree tree_;
  Outcome outcome_;
};

}  // namespace stacks
