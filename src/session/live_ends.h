// Copies live stacks, and counts how they end. What is not usual becomes notes of the profile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perfkit/live_stack.h"
#include "perfkit/stack_frame.h"

namespace perfkit::session {

// Not thread-safe.
class LiveEnds {
 public:
  // Copies the frames of a stack, with StackTable::kLeftOut between its two ends if calls were left out there. Returns
  // those that fit. Counts the stack.
  std::span<const StackFrame> Take(const LiveStack& stack, std::span<StackFrame> room);
  void AddNotes(std::vector<std::string>& notes) const;

 private:
  uint64_t not_ready_ = 0;  // Stacks with StackEnd::kNotReady.
  uint64_t limited_ = 0;    // Stacks with StackEnd::kLimit.
  uint64_t left_out_ = 0;   // Stacks without some calls of their middle.
  uint64_t max_calls_ = 0;  // The most calls of one of those, with the ones that were left out.
};

}  // namespace perfkit::session
