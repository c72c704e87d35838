// Recent complete stacks of each thread, from which truncated stacks of the same thread are completed.
//
//   complete, earlier    main <─ run <─ eval <─ sort <─ compare
//   truncated, now        ?   <─  ?  <─ eval <─ sort <─ swap       eval's call has the same CFA and the same pc:
//                        main <─ run <──┘                          its outer calls are taken from the earlier stack
//
// It is likely, but not certain, that this is one call of eval: it may have returned, and another function may have
// called eval anew at the same depth. Two things are evidence:
//
//   alive   No stack since then has shown that the call had returned: by another call at its CFA or outside of it.
//   known   What surrounded eval then always did: all remembered stacks with this call have the same outer calls, and
//           either one of them has the same eight inner calls, or two of them have the same two.
//
// docs/sampling.md has the measured error.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "perfkit/sample.h"
#include "perfkit/stack_frame.h"

namespace perfkit::unwind {

// A frame, and its CFA, which stays the same as long as the call lasts.
struct KnownCall {
  StackFrame frame;
  uint64_t cfa = kNoCfa;

  static constexpr uint64_t kNoCfa = UINT64_MAX;
};

// Not thread-safe. Its memory grows up to the longest stacks of each thread, but never beyond the maximum.
class StackStitcher {
 public:
  // For each thread the latest 32 stacks, with at most their 512 outermost calls.
  static constexpr size_t kStacks = 32, kMaxCalls = 512;

  explicit StackStitcher(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Forgets the stacks of threads that start or end, and of processes that exec.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // Remembers a complete stack, innermost call first.
  void Remember(TaskId task, std::span<const KnownCall> calls);

  // Notes which remembered calls of the thread have returned, from a stack of now, complete or not.
  void Observe(TaskId task, std::span<const KnownCall> calls);

  // Returns the outer calls of the last one of `calls`, which is the outermost that was found; empty if there is too
  // little evidence for any. Requires that `calls` have been observed. Valid until the next call of another method.
  std::span<const KnownCall> Find(TaskId task, std::span<const KnownCall> calls) const;

  size_t heap_bytes() const { return bytes_; }

 private:
  struct Stack {
    std::vector<KnownCall> calls;
    size_t alive = 0;  // Index of the innermost call that may not have returned yet.
  };
  struct Thread {
    uint32_t pid = 0;
    uint64_t used = 0;  // The value of clock_ at its last Remember.
    size_t next = 0;    // Index of the oldest of `stacks`.
    std::vector<Stack> stacks;
  };

  void Forget(uint32_t tid);
  void ForgetProcess(uint32_t pid);
  // Forgets other threads until `bytes` more fit. Returns false if they don't.
  bool MakeRoom(uint32_t tid, size_t bytes);
  static size_t BytesOf(const Thread& thread);

  const size_t max_bytes_;
  size_t bytes_ = 0;
  uint64_t clock_ = 0;  // Counts the stacks that were remembered.
  std::unordered_map<uint32_t, Thread> threads_;
};

}  // namespace perfkit::unwind
