// Looks up rules and rows: in the cache, then by the mappings of the process in the files of its modules. The cache's
// key has a small number for each state of a process's mappings, its generation. If the numbers are used up, the cache
// is emptied and numbering begins anew.
#include "src/unwind/dwarf/sampled/process_rules.h"

namespace perfkit::unwind {
namespace {

constexpr const char* kNoModules[] = {"[unknown]"};

}  // namespace

ProcessRules::ProcessRules(const std::string& proc) : proc_(proc), processes_(proc, kNoModules) {}

uint32_t ProcessRules::GenerationOf(const Process* process) {
  if (process == nullptr) return 0;
  Generation& generation = generations_[process->epoch % generations_.size()];
  if (generation.epoch == process->epoch) return generation.number;
  if (last_generation_ == RuleCache::kMaxGenerations) {
    cache_.Clear();
    after_calls_.fill({});
    generations_.fill({});
    last_generation_ = 0;
  }
  generation = {process->epoch, ++last_generation_};
  return generation.number;
}

void ProcessRules::FindAnew(uint32_t pid) {
  latest_pid_ = pid;
  latest_changes_ = processes_.changes();
  latest_.process = processes_.Find(pid);
  latest_.generation = GenerationOf(latest_.process);
}

CodeModule& ProcessRules::ModuleAt(uint32_t number) {
  if (modules_.size() <= number) modules_.resize(processes_.modules().size());
  std::unique_ptr<CodeModule>& module = modules_[number];
  if (module == nullptr) module = std::make_unique<CodeModule>(processes_.modules()[number], proc_);
  return *module;
}

bool ProcessRules::Locate(const Process* process, uint64_t address, ModuleOffset& found) {
  const proc::MappedRange* const range = process == nullptr ? nullptr : process->space.Find(address);
  if (range == nullptr) return false;
  found = {&ModuleAt(range->module), range->offset + (address - range->begin)};
  return true;
}

bool ProcessRules::ReadRule(const Process* process, uint64_t address, bool may_be_planted, Rule& rule) {
  ModuleOffset found;
  if (!Locate(process, address, found)) return false;
  rule = found.module->At(found.offset, may_be_planted);
  return true;
}

bool ProcessRules::RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule) {
  ++lookups_;
  // An unknown process has generation 0, so its key could be that of an empty entry.
  if (process == nullptr || !RuleCache::CanHold(address)) return ReadRule(process, address, true, rule);
  const uint64_t key = RuleCache::KeyOf(address, generation);
  if (const Rule* const known = cache_.Find(key)) {
    ++hits_;
    return rule = *known, true;
  }
  if (!ReadRule(process, address, true, rule)) return false;
  cache_.Put(key, rule);
  return true;
}

bool ProcessRules::UnplantedRuleAt(const Process* process, uint64_t address, Rule& rule) {
  return ReadRule(process, address, false, rule);
}

bool ProcessRules::RowAt(const Process* process, uint64_t address, CfiRow& row, uint64_t& bias) {
  ModuleOffset found;
  uint64_t in_module = 0;
  if (!Locate(process, address, found) || !found.module->Full(found.offset, row, in_module)) return false;
  bias = address - in_module;
  return true;
}

bool ProcessRules::IsCallOf(const Process* process, uint64_t address, uint64_t pc) {
  ModuleOffset caller, callee;
  // Code of a JIT compiler, which is in no file, has frame pointers.
  if (!Locate(process, pc, callee) || !callee.module->status().ok()) return false;
  if (!Locate(process, address - 1, caller)) return false;
  const CallBefore call = FindCallBefore(caller.module->CodeAround(caller.offset), address);
  if (call.kind != CallKind::kDirect || MayContain(call.target, pc)) return call.kind != CallKind::kNone;
  ModuleOffset target;
  return Locate(process, call.target, target) && IsJumpByMemory(target.module->CodeAround(target.offset), call.target);
}

bool ProcessRules::IsAfterCall(const Process* process, uint32_t generation, uint64_t address) {
  if (const std::optional<bool> known = KnownAfterCall(generation, address)) return *known;
  ModuleOffset caller;
  if (!Locate(process, address - 1, caller)) return false;
  const bool is_call = caller.module->is_unknown() ||
                       FindCallBefore(caller.module->CodeAround(caller.offset), address).kind != CallKind::kNone;
  const uint64_t key = RuleCache::KeyOf(address - 1, generation);
  if (RuleCache::CanHold(address - 1)) after_calls_[IndexOf(key)] = {key, is_call};
  return is_call;
}

void ProcessRules::Fill(UnwinderStats& stats) const {
  stats.rule_lookups = lookups_;
  stats.cache_hits = hits_;
  for (const std::unique_ptr<CodeModule>& module : modules_) {
    if (module == nullptr) continue;
    stats.modules += module->status().ok();
    stats.unreadable_modules += !module->status().ok() && module->is_file();
    stats.table_bytes += module->heap_bytes();
  }
}

}  // namespace perfkit::unwind
