// The implementation of Unwinder: walks of samples' stacks, by the rules of their processes (ProcessRules).
//
//   pc ──> Rule ──Step──> next (pc, sp, fp)
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/cfi/stack_walk.h"
#include "src/unwind/dwarf/sampled/fast_path_walk.h"
#include "src/unwind/dwarf/sampled/process_rules.h"
#include "src/unwind/dwarf/sampled/stack_stitcher.h"

namespace perfkit::unwind {

// As Unwinder's; not thread-safe.
class Walker {
 public:
  using Machine = ThisMachine;

  explicit Walker(const UnwinderOptions& options);

  bool Add(const RawRecord& record, const SampleLayout& layout) {
    if (stitcher_ != nullptr) stitcher_->Add(record, layout);
    return rules_.Add(record, layout);
  }
  absl::Status AddProcess(pid_t pid) { return rules_.AddProcess(pid); }
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);
  UnwinderStats stats() const;

 private:
  using Process = ProcessRules::Process;

  // A walk in progress.
  struct Walk : StackWalk<StackBytes> {
    uint64_t begin = 0;  // The stack pointer of the sample.
    const Process* process = nullptr;
    uint32_t generation = 0;
    const Sample* sample = nullptr;
  };
  struct Code;

  // The indices of a walk's first registers among a sample's values, for samples with the registers `mask`.
  struct RegisterIndices {
    static constexpr uint8_t kNowhere = 0xff;

    uint64_t mask = 0;
    uint8_t pc = kNowhere, sp = kNowhere, fp = kNowhere, lr = kNowhere;
  };
  // One of several walks that take turns.
  struct Lane {
    Walk walk;
    FastPathWalk fast;
    bool looked_up = false;  // `fast` has a rule, so its next Advance can be prefetched.
    size_t sample = 0;       // Index in the samples of the call.
  };

  static RegisterIndices IndicesOf(uint64_t mask);
  static uint32_t BytesBetween(uint64_t begin, uint64_t end) {
    return static_cast<uint32_t>(std::min<uint64_t>(end - begin, UINT32_MAX));
  }
  // Starts the walk of a sample. Returns false if it has ended already.
  bool Begin(const Sample& sample, std::span<StackFrame> frames, Walk& walk);
  bool BeginInline(const Sample& sample, std::span<StackFrame> frames, Walk& walk);  // For walker.cc only.
  // Convert between the state of a walk and that of its fast path.
  static FastPathWalk Load(const Walk& walk);
  void Store(const FastPathWalk& fast, Walk& walk);
  UnwoundStack UnwindOne(const Sample& sample, std::span<StackFrame> frames);
  void UnwindShallow(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                     std::span<UnwoundStack> stacks);
  void UnwindInTurns(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                     std::span<UnwoundStack> stacks);
  // Advances a lane by a frame, or by all that FollowGuesses takes. Returns false if its walk has ended.
  bool Turn(Lane& lane);
  // Advances a walk by one frame on the slow path. Returns false if it has ended.
  bool Advance(Walk& walk);
  // Advances a walk by cached rules and frame pointers, as long as it leads through code without information, such as
  // that of JIT compilers, and through callers that were found by a guess. Returns false if it has not advanced.
  bool FollowGuesses(Walk& walk);
  // Adds a walk that has ended to the statistics. Returns false.
  bool Count(Walk& walk);
  // As above, given the numbers of frames, of slow ones, and of bytes.
  void Count(uint32_t frames, uint32_t slow, uint32_t stack_bytes);

  // Stacks that are completed from earlier ones: walker_stitch.cc.
  UnwoundStack UnwindAndStitch(const Sample& sample, std::span<StackFrame> frames);
  void Stitch(TaskId task, Walk& walk);
  uint64_t CfaOf(const Walk& walk, const WalkState& at);

  ProcessRules rules_;
  std::vector<Lane> lanes_;                  // The first one is also for walks that do not take turns.
  RegisterIndices indices_;                  // Of the latest sample.
  uint64_t extent_ = UINT16_MAX;             // A moving average of the bytes of stack that walks read.
  UnwinderStats stats_;                      // Of walks.
  std::unique_ptr<StackStitcher> stitcher_;  // Null if stacks are not stitched.
  std::vector<KnownCall> calls_;             // Of the current stack.
  uint64_t min_dump_ = UINT64_MAX;           // Bytes of the shortest dump so far.
};

}  // namespace perfkit::unwind
