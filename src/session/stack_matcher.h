// Finds the samples that a live stack belongs to.
//
// The kernel writes a sample when the event happens; the thread's handler writes the stack some microseconds later, on
// its way back to user code. A sample in user code is the one whose pc is the stack's first pc. Samples in the kernel
// during one call of it share one stack: its first pc is where that call returns to.
//
//   samples of a thread:  U(a)  K(b) K(b)      U(c)
//   its stacks:                S(a)       S(b)          U(c) has none: it was skipped (StackAccounting)
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"
#include "src/session/fault_memory.h"

namespace perfkit::session {

// A sample that waits for its stack.
struct PendingSample {
  ProfileSample sample;
  uint64_t user_pc = 0;    // where the thread is, or will return to, in user code
  uint64_t kernel_pc = 0;  // 0: it was in user code
  uint32_t pid = 0;
  TouchedMemory touched{};
  std::vector<uint64_t> kernel_callers{};  // of kernel_pc: return addresses, innermost first; empty: not known
};

// Not thread-safe.
class StackMatcher {
 public:
  // Called with a sample, and whether the added stack belongs to it.
  using Emit = absl::FunctionRef<void(const PendingSample& sample, bool has_stack)>;

  // Adds a sample that waits for a stack of `event`. Samples of followers come right after their leader's, and get its
  // stack. Emits the oldest ones without a stack if too many wait.
  void AddSample(uint32_t thread, uint32_t event, const PendingSample& sample, Emit emit);
  // Emits the samples that the stack belongs to, and, as samples without one, those before them. Returns false if it
  // belongs to none.
  bool AddStack(uint32_t thread, uint32_t event, uint64_t first_pc, Emit emit);
  // To be called when the thread has ended. Emits its samples that wait, without a stack.
  void End(uint32_t thread, Emit emit);
  // Emits all samples for which `is_wanted` returns true, without a stack.
  void EmitIf(absl::FunctionRef<bool(const PendingSample& sample)> is_wanted, Emit emit);
  // Calls visit with all samples that wait. They keep waiting.
  void ForEach(absl::FunctionRef<void(const PendingSample& sample)> visit) const;
  void Clear() { pending_.clear(); }

 private:
  static constexpr size_t kMaxPending = 4096;
  using Pending = std::vector<PendingSample>;

  Pending& PendingOf(uint32_t thread, uint32_t event);
  static void EmitFirst(Pending& pending, size_t count, Emit emit);

  std::unordered_map<uint32_t, std::vector<Pending>> pending_;  // by thread, then by event
};

}  // namespace perfkit::session
