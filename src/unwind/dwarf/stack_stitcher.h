// Whole stacks that threads had lately, to complete those of theirs that were cut off.
//
//   whole, earlier    main <─ run <─ eval <─ sort <─ compare
//   cut off, now       ?   <─  ?  <─ eval <─ match          the call of eval has the same CFA and the same function:
//   what
//                     main <─ run <──┘                      was outside of it then is taken to be there still
//
// Nothing proves that eval was not called anew, at the same depth by somebody else. So of all remembered stacks that
// have the call those are asked that agree in most calls inside of it, and where these say different things nothing is
// taken over. How often that is wrong is measured: docs/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/unwinder.h"

namespace perfkit::unwind {

// A frame, and where its caller's begins: the CFA, which stays the same as long as the call lasts.
struct KnownCall {
  StackFrame frame;
  uint64_t cfa = kNoCfa;

  static constexpr uint64_t kNoCfa = UINT64_MAX;
};

// One thread at a time. Allocates until each thread has had its longest stacks, and never more than it may.
class StackStitcher {
 public:
  // Of a thread it keeps the latest 32 stacks, of each the outermost 512 calls.
  static constexpr size_t kStacks = 32, kMaxCalls = 512;

  explicit StackStitcher(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Threads that end or begin, and programs that are replaced, have no stacks any more.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // `calls`: innermost first.
  void Remember(TaskId task, std::span<const KnownCall> calls);

  // What is outside of the last one of `calls`, the outermost that was found; empty when that is not known.
  // `same_function` is told two places in code. Valid until the next call of Add or Remember.
  std::span<const KnownCall> Find(TaskId task, std::span<const KnownCall> calls,
                                  absl::FunctionRef<bool(uint64_t, uint64_t)> same_function) const;

  size_t heap_bytes() const { return bytes_; }

 private:
  using Stack = std::vector<KnownCall>;
  struct Thread {
    uint32_t pid = 0;
    uint64_t used = 0;  // when it last remembered something
    size_t next = 0;    // which of `stacks` is the oldest
    std::vector<Stack> stacks;
  };

  void Forget(uint32_t tid);
  void ForgetProcess(uint32_t pid);
  bool MakeRoom(uint32_t tid, size_t bytes);
  static size_t BytesOf(const Thread& thread);

  const size_t max_bytes_;
  size_t bytes_ = 0;
  uint64_t clock_ = 0;
  std::unordered_map<uint32_t, Thread> threads_;
};

}  // namespace perfkit::unwind
