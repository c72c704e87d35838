// Interns stacks of processes as entries of a profile's stack table. A stack that its process has had before is found
// by its pcs alone.
//
//   frames ── hash of the pcs ──> seen before?  yes: its entry
//                                 no: each frame ── Symbolizer::Locate ──> location ──> stack (parent, location)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/stack_frame.h"
#include "perfkit/symbolizer.h"

namespace perfkit::session {

// The stacks that a process has had since its mappings last changed, and their entries. Not thread-safe.
class SeenStacks {
 public:
  static constexpr uint32_t kUnseen = UINT32_MAX;

  // Returns the entry of a stack; kUnseen if there is none. `hash`: HashOf(frames).
  uint32_t Find(uint64_t hash, std::span<const StackFrame> frames) const;
  // Requires that the stack is unseen, and has a frame.
  void Remember(uint64_t hash, std::span<const StackFrame> frames, uint32_t stack);
  // Words of all stacks that are remembered.
  size_t words() const { return words_.size(); }

  static uint64_t HashOf(std::span<const StackFrame> frames);

 private:
  struct Seen {
    uint64_t hash = 0;
    uint32_t first_word = 0, words = 0;  // in words_
    uint32_t stack = kUnseen;
  };

  void Insert(const Seen& seen);
  void Grow();

  std::vector<Seen> seen_;  // open addressing, a power of two; empty entries have words == 0
  size_t seen_count_ = 0;
  std::vector<uint64_t> words_;
};

// Tables that are full get no new entries, so that their size is bounded even if a program keeps making code:
//
//   max_stacks, max_locations ── a new stack is cut to its leaf, unless both have room for each of its new frames
//   max_locations             ── a leaf at a new address gets the location for other addresses of its module
//
// Not thread-safe.
class StackTable {
 public:
  // Stands for frames of a stack that were left out: UnwoundStack::omitted. Its name is "[frames left out]". No frame
  // has this pc.
  static constexpr StackFrame kLeftOut{.pc = uint64_t{1} << 60};

  struct Limits {
    size_t max_stacks = 0;
    size_t max_locations = 0;
  };
  StackTable(ProfileBuilder& builder, Symbolizer& symbolizer, Limits limits);

  // To be called when the mappings of process `pid` have changed: its pcs are located again.
  void ForgetLocations(uint32_t pid);

  // Returns the entry of a stack of process `pid`, innermost frame first; ProfileStack::kRoot if it has no frame. The
  // stack ends before the first guess that is in no code. Sets `was_cut` if a table is full, and callers are missing.
  uint32_t Intern(uint32_t pid, std::span<const StackFrame> frames, bool& was_cut);
  // Returns the entry of kernel frames that `stack` called: at `pc`, and its callers, as return addresses, innermost
  // first. If max_stacks is reached, sets `was_cut`, and returns the entry of `pc` alone.
  uint32_t InternKernel(uint32_t stack, std::span<const uint64_t> callers, uint64_t pc, bool& was_cut);
  // Returns the entry for other addresses of the module of the leaf of `stack`. Requires that `stack` is not kRoot.
  uint32_t InternOther(uint32_t stack);
  // Return true if a location, or the leaf of a stack, is that for other addresses of its module.
  bool IsOther(uint32_t location) const { return code_locations_[location].offset == kOtherOffset; }
  // Returns true if a location has a name that is not one of code.
  bool HasOwnName(uint32_t location) const { return code_locations_[location].offset >= kLeftOutOffset; }
  bool EndsInOther(uint32_t stack) const { return IsOther(builder_.profile().stacks[stack].location); }

  // Returns how many leaves were replaced by that location, because max_locations was reached.
  uint64_t replaced() const { return replaced_; }

  // Returns the CodeLocation of each location of the profile.
  const std::vector<CodeLocation>& code_locations() const { return code_locations_; }

 private:
  struct Process {
    SeenStacks seen;
    std::unordered_map<uint64_t, uint32_t> locations;  // by pc

    size_t words() const { return kWordsOfOne + seen.words() + locations.size(); }
  };
  static constexpr size_t kMaxWords = 1 << 20;  // 8 MiB of remembered stacks, of all processes
  static constexpr size_t kWordsOfOne = 256;    // the rest of a process, about
  static constexpr uint64_t kOtherOffset = UINT64_MAX, kLeftOutOffset = UINT64_MAX - 1;

  Process& ProcessOf(uint32_t pid);
  uint32_t UserLocation(Process& process, uint32_t pid, uint64_t pc);
  std::optional<uint32_t> FindUserLocation(Process& process, uint32_t pid, uint64_t pc);
  uint32_t KernelLocation(uint64_t pc);
  uint32_t AddKernelFrame(uint32_t stack, uint64_t pc, bool& was_cut);
  uint32_t LocationOf(CodeLocation code, bool kernel);
  uint32_t AddLocation(const CodeLocation& code, bool kernel);
  std::span<const StackFrame> UpToCode(uint32_t pid, std::span<const StackFrame> frames) const;
  uint32_t Add(Process& process, uint32_t pid, std::span<const StackFrame> frames, bool& was_cut);

  ProfileBuilder& builder_;
  Symbolizer& symbolizer_;
  const Limits limits_;
  std::unordered_map<uint32_t, Process> processes_;          // by pid
  uint32_t latest_pid_ = 0;                                  // the process of `latest_`
  Process* latest_ = nullptr;                                // the one that ProcessOf returned last
  size_t words_ = 0;                                         // of all processes
  std::unordered_map<uint64_t, uint32_t> kernel_locations_;  // by pc
  std::unordered_map<uint64_t, uint32_t> kernel_stacks_;     // by stack and location
  std::vector<CodeLocation> code_locations_;                 // by location
  uint64_t replaced_ = 0;
};

}  // namespace perfkit::session
