// Stacks of one process as entries of a profile's stack table. A stack that was seen before is found by its pcs alone.
//
//   frames ── hash of the pcs ──> seen before?  yes: its entry
//                                 no: each frame ── Symbolizer::Locate ──> location ──> stack (parent, location)
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/stack_frame.h"
#include "perfkit/symbolizer.h"

namespace perfkit::session {

// Not thread-safe.
class StackTable {
 public:
  // `max_stacks`: distinct stacks; beyond that a new stack is cut to its leaf.
  StackTable(ProfileBuilder& builder, Symbolizer& symbolizer, uint32_t pid, size_t max_stacks);

  // What is mapped has changed: what pcs mean is looked up anew.
  void ForgetPlaces();

  // The entry of a stack, innermost frame first; ProfileStack::kRoot if it has no frame. `was_cut`: the table is full.
  uint32_t Intern(std::span<const StackFrame> frames, bool& was_cut);
  // The entry of a kernel frame that `stack` called; of the frame alone if the table is full.
  uint32_t InternKernel(uint32_t stack, uint64_t pc, bool& was_cut);

  // The symbolizer's place of each location of the profile.
  const std::vector<CodeLocation>& places() const { return places_; }

 private:
  struct Seen {
    uint64_t hash = 0;
    uint32_t first_word = 0, words = 0;  // in words_
    uint32_t stack = ProfileStack::kRoot;
  };
  static constexpr size_t kMaxWords = 1 << 20;  // 8 MiB of remembered stacks

  uint32_t LocationOf(uint64_t pc, CpuMode mode);
  uint32_t Add(std::span<const StackFrame> frames, bool& was_cut);
  Seen* Find(uint64_t hash, std::span<const StackFrame> frames);
  void Remember(uint64_t hash, std::span<const StackFrame> frames, uint32_t stack);
  void Grow();

  ProfileBuilder& builder_;
  Symbolizer& symbolizer_;
  uint32_t pid_;
  size_t max_stacks_;
  std::vector<Seen> seen_;  // open addressing, a power of two; empty entries have words == 0
  size_t seen_count_ = 0;
  std::vector<uint64_t> words_;
  std::unordered_map<uint64_t, uint32_t> user_locations_, kernel_locations_;  // by pc
  std::unordered_map<uint64_t, uint32_t> kernel_stacks_;                      // by stack and location
  std::vector<CodeLocation> places_;                                          // by location
};

}  // namespace perfkit::session
