// The inside of an Unwinder: what is mapped by process, rules by address, and the walk itself.
//
//   pc ──cache──> Rule ──Step──> next (pc, sp, fp)              nearly always
//      └─miss──> mapping ──> module ──> Cfi ──> Rule            once for each pc
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/proc/processes.h"
#include "src/unwind/dwarf/code_module.h"
#include "src/unwind/dwarf/stack_stitcher.h"
#include "src/unwind/dwarf/stack_walk.h"
#include "src/unwind/fast_path_walk.h"
#include "src/unwind/rule_cache.h"

namespace perfkit::unwind {

class Walker {
 public:
  using Machine = ThisMachine;

  explicit Walker(const UnwinderOptions& options);

  bool Add(const RawRecord& record, const SampleLayout& layout) {
    if (stitcher_ != nullptr) stitcher_->Add(record, layout);
    return processes_.Add(record, layout);
  }
  absl::Status AddProcess(pid_t pid) { return processes_.AddProcess(pid); }
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);
  UnwinderStats stats() const;

 private:
  using Process = proc::Processes::Process;

  // A stack under way.
  struct Walk : StackWalk<StackBytes> {
    uint64_t begin = 0;  // of the stack
    const Process* process = nullptr;
    uint32_t generation = 0;
    const Sample* sample = nullptr;
  };
  struct Code;

  // Where a walk's first registers are among the values of samples that have those of `mask`.
  struct RegisterIndices {
    static constexpr uint8_t kNowhere = 0xff;

    uint64_t mask = 0;
    uint8_t pc = kNowhere, sp = kNowhere, fp = kNowhere, lr = kNowhere;
  };
  // One of several walks that go on in turns.
  struct Lane {
    Walk walk;
    FastPathWalk fast;
    bool looked_up = false;  // whether `fast` knows what to read next
    size_t sample = 0;   // which of them
  };

  struct Generation {
    uint64_t epoch = proc::Processes::kNoEpoch;
    uint32_t number = 0;
  };
  struct ModuleOffset {
    CodeModule* module;
    uint64_t offset;
  };

  static RegisterIndices IndicesOf(uint64_t mask);
  static uint32_t BytesBetween(uint64_t begin, uint64_t end) {
    return static_cast<uint32_t>(std::min<uint64_t>(end - begin, UINT32_MAX));
  }
  bool Begin(const Sample& sample, std::span<StackFrame> frames, Walk& walk);
  static FastPathWalk Load(const Walk& walk);
  void Store(const FastPathWalk& fast, Walk& walk);
  UnwoundStack UnwindOne(const Sample& sample, std::span<StackFrame> frames);
  void UnwindShallow(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                     std::span<UnwoundStack> stacks);
  void UnwindInTurns(std::span<const Sample> samples, size_t room, std::span<StackFrame> frames,
                     std::span<UnwoundStack> stacks);
  bool Turn(Lane& lane);
  bool Advance(Walk& walk);
  bool Count(Walk& walk);

  bool RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule);
  bool ReadRule(const Process* process, uint64_t address, Rule& rule);
  bool Locate(const Process* process, uint64_t address, ModuleOffset& place);
  bool ReadRow(const Process* process, uint64_t address, CfiRow& row, uint64_t& bias);

  // walker_stitch.cc: stacks that may be completed by earlier ones.
  UnwoundStack UnwindAndStitch(const Sample& sample, std::span<StackFrame> frames);
  void Stitch(TaskId task, Walk& walk);
  uint64_t CfaOf(const Walk& walk, const WalkState& at);
  bool InOneFunction(const Process* process, uint64_t one, uint64_t other);

  uint32_t GenerationOf(const Process* process);
  CodeModule& ModuleAt(uint32_t number);

  const std::string proc_;
  proc::Processes processes_;
  std::vector<std::unique_ptr<CodeModule>> modules_;  // by number; those that were met
  std::vector<Lane> lanes_;                           // the first also for walks that go on alone
  RegisterIndices indices_;                           // of the latest sample
  uint64_t extent_ = UINT16_MAX;                      // how many bytes of stack frames lie in, of late
  RuleCache cache_;
  std::array<Generation, 64> generations_{};  // by epoch, the latest
  uint32_t last_generation_ = 0;
  UnwinderStats stats_;
  std::unique_ptr<StackStitcher> stitcher_;  // none: stacks stay as they are
  std::vector<KnownCall> calls_;       // of the stack under way
  uint64_t min_dump_ = UINT64_MAX;     // the shortest that was asked for so far
};

}  // namespace perfkit::unwind
