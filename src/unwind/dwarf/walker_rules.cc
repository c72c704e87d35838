// Where a walk's rules come from, and the frames that no rule is enough for.
#include <algorithm>

#include "src/unwind/dwarf/full_step.h"
#include "src/unwind/dwarf/walker.h"

namespace perfkit::unwind {

// A number for what a process has mapped now, short enough for the cache's keys.
uint32_t Walker::GenerationOf(const Process* process) {
  if (process == nullptr) return 0;
  Generation& generation = generations_[process->epoch % generations_.size()];
  if (generation.epoch == process->epoch) return generation.number;
  if (last_generation_ == RuleCache::kMostGenerations) {
    cache_.Clear();
    generations_.fill({});
    last_generation_ = 0;
  }
  generation = {process->epoch, ++last_generation_};
  return generation.number;
}

CodeModule& Walker::ModuleAt(uint32_t number) {
  if (modules_.size() <= number) modules_.resize(processes_.modules().size());
  std::unique_ptr<CodeModule>& module = modules_[number];
  if (module == nullptr) module = std::make_unique<CodeModule>(processes_.modules()[number], proc_);
  return *module;
}

bool Walker::Locate(const Process* process, uint64_t address, Place& place) {
  const proc::MappedRange* const range = process == nullptr ? nullptr : process->space.Find(address);
  if (range == nullptr) return false;
  place = {&ModuleAt(range->module), range->offset + (address - range->begin)};
  return true;
}

bool Walker::ReadRule(const Process* process, uint64_t address, Rule& rule) {
  Place place;
  if (!Locate(process, address, place)) return false;
  rule = place.module->At(place.offset);
  return true;
}

// False: nothing is mapped there.
bool Walker::RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule) {
  ++stats_.rule_lookups;
  if (!RuleCache::CanHold(address)) return ReadRule(process, address, rule);
  const uint64_t key = RuleCache::KeyOf(address, generation);
  if (const Rule* const known = cache_.Find(key)) {
    ++stats_.cache_hits;
    return rule = *known, true;
  }
  if (!ReadRule(process, address, rule)) return false;
  cache_.Put(key, rule);
  return true;
}

// The walk has kept four registers; the others are found again, from the innermost frame on or the last one that needed
// them.
bool Walker::SlowStep(Walk& walk, StackEnd& why) {
  ++stats_.slow_frames;
  if (!walk.full) {
    walk.full = FromSample<Machine>(walk.sampled);
    walk.full_at = 0;
  }
  const uint32_t here = walk.found.frames - 1;
  for (; walk.full_at < here; ++walk.full_at) {
    if (!StepAll(walk, *walk.full, why)) return why = StackEnd::kNoInfo, false;
    if (walk.full->ValueOr0(Machine::kPc) != walk.frames[walk.full_at + 1].pc) return why = StackEnd::kNoInfo, false;
  }
  if (!StepAll(walk, *walk.full, why)) return false;
  ++walk.full_at;
  walk.at = StateOf<Machine>(*walk.full);
  return true;
}

bool Walker::StepAll(const Walk& walk, FullRegisters& registers, StackEnd& why) {
  WalkState at = StateOf<Machine>(registers);
  const uint64_t address = at.pc - (at.interrupted ? 0 : 1);
  Rule rule;
  if (!RuleAt(walk.process, walk.generation, address, rule)) return why = StackEnd::kNoMapping, false;
  if (rule.kind != RuleKind::kNone && rule.kind != RuleKind::kSignal) {
    return StepByRow(walk, address, registers, why);
  }
  // Of a guess only what was followed is known; of a signal's frame all is in one place.
  const uint64_t context = at.sp + static_cast<uint64_t>(int64_t{rule.offset});
  if (!Step<Machine>(rule, walk.stack, at, why)) return false;
  registers = rule.kind == RuleKind::kSignal ? FromContext<Machine>(walk.stack, context) : FromState<Machine>(at);
  return true;
}

bool Walker::StepByRow(const Walk& walk, uint64_t address, FullRegisters& registers, StackEnd& why) {
  Place place;
  FullRow row;
  uint64_t in_module = 0;
  if (!Locate(walk.process, address, place) || !place.module->Full(place.offset, row, in_module)) {
    return why = StackEnd::kNoInfo, false;
  }
  return FullStep<Machine>(row, walk.stack, address - in_module, registers, why);
}

UnwinderStats Walker::stats() const {
  UnwinderStats stats = stats_;
  for (const std::unique_ptr<CodeModule>& module : modules_) {
    if (module == nullptr) continue;
    ++(module->status().ok() ? stats.modules : stats.unreadable_modules);
    stats.table_bytes += module->heap_bytes();
  }
  return stats;
}

}  // namespace perfkit::unwind
