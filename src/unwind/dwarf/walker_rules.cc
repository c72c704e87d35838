// The source of a walk's rules and rows: the cache, then the mappings of the process and the files of its modules.
#include "src/unwind/dwarf/walker.h"

namespace perfkit::unwind {

uint32_t Walker::GenerationOf(const Process* process) {
  if (process == nullptr) return 0;
  Generation& generation = generations_[process->epoch % generations_.size()];
  if (generation.epoch == process->epoch) return generation.number;
  if (last_generation_ == RuleCache::kMaxGenerations) {
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

bool Walker::Locate(const Process* process, uint64_t address, ModuleOffset& found) {
  const proc::MappedRange* const range = process == nullptr ? nullptr : process->space.Find(address);
  if (range == nullptr) return false;
  found = {&ModuleAt(range->module), range->offset + (address - range->begin)};
  return true;
}

bool Walker::ReadRule(const Process* process, uint64_t address, Rule& rule) {
  ModuleOffset found;
  if (!Locate(process, address, found)) return false;
  rule = found.module->At(found.offset);
  return true;
}

bool Walker::RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule) {
  ++stats_.rule_lookups;
  // An unknown process has generation 0, so its key could be that of an empty entry.
  if (process == nullptr || !RuleCache::CanHold(address)) return ReadRule(process, address, rule);
  const uint64_t key = RuleCache::KeyOf(address, generation);
  if (const Rule* const known = cache_.Find(key)) {
    ++stats_.cache_hits;
    return rule = *known, true;
  }
  if (!ReadRule(process, address, rule)) return false;
  cache_.Put(key, rule);
  return true;
}

bool Walker::ReadRow(const Process* process, uint64_t address, CfiRow& row, uint64_t& bias) {
  ModuleOffset found;
  uint64_t in_module = 0;
  if (!Locate(process, address, found) || !found.module->Full(found.offset, row, in_module)) return false;
  bias = address - in_module;
  return true;
}

UnwinderStats Walker::stats() const {
  UnwinderStats stats = stats_;
  stats.stitch_bytes = stitcher_ == nullptr ? 0 : stitcher_->heap_bytes();
  for (const std::unique_ptr<CodeModule>& module : modules_) {
    if (module == nullptr) continue;
    ++(module->status().ok() ? stats.modules : stats.unreadable_modules);
    stats.table_bytes += module->heap_bytes();
  }
  return stats;
}

}  // namespace perfkit::unwind
