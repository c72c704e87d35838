// The inside of an Unwinder: what is mapped by process, rules by address, and the walk itself.
//
//   pc ──cache──> Rule ──Step──> next (pc, sp, fp)              nearly always
//      └─miss──> mapping ──> module ──> Cfi ──> Rule            once for each pc
//                             kSlow: all registers, from the innermost frame on again
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/proc/processes.h"
#include "src/unwind/dwarf/code_module.h"
#include "src/unwind/full_registers.h"
#include "src/unwind/rule_cache.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

class Walker {
 public:
  using Machine = ThisMachine;

  explicit Walker(const UnwinderOptions& options);

  bool Add(const RawRecord& record, const SampleLayout& layout) { return processes_.Add(record, layout); }
  absl::Status AddProcess(pid_t pid) { return processes_.AddProcess(pid); }
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);
  UnwinderStats stats() const;

 private:
  using Process = proc::Processes::Process;

  // A stack under way.
  struct Walk {
    WalkState at;
    StackBytes stack;
    std::span<StackFrame> frames;
    UnwoundStack found;
    const Process* process = nullptr;
    uint32_t generation = 0;
    Registers sampled;
    std::optional<FullRegisters> full;  // of frame `full_at`, once a frame has needed them
    uint32_t full_at = 0;
  };

  struct Generation {
    uint64_t epoch = proc::Processes::kNoEpoch;
    uint32_t number = 0;
  };
  struct Place {
    CodeModule* module;
    uint64_t offset;
  };

  bool Begin(const Sample& sample, std::span<StackFrame> frames, Walk& walk);
  bool Advance(Walk& walk);
  bool Push(Walk& walk);
  bool End(Walk& walk, StackEnd end);

  bool RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule);
  bool ReadRule(const Process* process, uint64_t address, Rule& rule);
  bool Locate(const Process* process, uint64_t address, Place& place);
  bool SlowStep(Walk& walk, StackEnd& why);
  bool StepAll(const Walk& walk, FullRegisters& registers, StackEnd& why);
  bool StepByRow(const Walk& walk, uint64_t address, FullRegisters& registers, StackEnd& why);

  uint32_t GenerationOf(const Process* process);
  CodeModule& ModuleAt(uint32_t number);

  const std::string proc_;
  proc::Processes processes_;
  std::vector<std::unique_ptr<CodeModule>> modules_;  // by number; those that were met
  RuleCache cache_;
  std::array<Generation, 64> generations_{};  // by epoch, the latest
  uint32_t last_generation_ = 0;
  UnwinderStats stats_;
};

}  // namespace perfkit::unwind
