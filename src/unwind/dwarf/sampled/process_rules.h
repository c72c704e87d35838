// The rules and rows of the code that processes have mapped.
//
//   address ──RuleCache──> Rule                                nearly always
//        └─miss──> mapping ──> module ──> Cfi ──> Rule         once for each address
//
// A cached rule is that of the current mappings: the key of the cache has a generation, a number that each process gets
// anew whenever its mappings change.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/base/mix.h"
#include "src/proc/processes.h"
#include "src/unwind/dwarf/sampled/code_module.h"
#include "src/unwind/dwarf/sampled/rule_cache.h"

namespace perfkit::unwind {

// Not thread-safe.
class ProcessRules {
 public:
  using Process = proc::Processes::Process;

  // `proc`: UnwinderOptions::proc.
  explicit ProcessRules(const std::string& proc);

  // As Processes::Add and AddProcess, with their results and errors.
  bool Add(const RawRecord& record, const SampleLayout& layout) { return processes_.Add(record, layout); }
  absl::Status AddProcess(pid_t pid) { return processes_.AddProcess(pid); }
  // A process, and a number for its current mappings, which fits into the cache's keys.
  struct Numbered {
    const Process* process = nullptr;  // Null if nothing is known of it.
    uint32_t generation = 0;           // 0 for nullptr.
  };
  // Valid until the next Add or AddProcess, and until a call while HasNewGeneration() is false: that may empty the
  // cache and number from 1 again.
  //
  // Keeps the result for the latest pid: the processor predicts the comparisons, and does not wait for the tables of
  // processes before it looks up the first rule of a stack.
  Numbered Find(uint32_t pid) {
    if (latest_changes_ != processes_.changes() || latest_pid_ != pid) [[unlikely]]
      FindAnew(pid);
    return latest_;
  }
  bool HasNewGeneration() const { return last_generation_ < RuleCache::kMaxGenerations; }

  // These return false if nothing is mapped at `address`. Code without information has a rule, the one that its bytes
  // tell or kNone, but no row: then RowAt returns false, too. `generation`: the process's. `bias`: what has to be added
  // to the module's own addresses.
  bool RuleAt(const Process* process, uint32_t generation, uint64_t address, Rule& rule);
  // As RuleAt, after a rule for planted return addresses (CodeModule::kPlanted) that does not hold. Not cached.
  bool UnplantedRuleAt(const Process* process, uint64_t address, Rule& rule);
  bool RowAt(const Process* process, uint64_t address, CfiRow& row, uint64_t& bias);
  // Returns true if the call before `address` may call the function that contains `pc`, also from another module.
  // Returns false if `pc` is in no readable file.
  bool IsCallOf(const Process* process, uint64_t address, uint64_t pc);
  // Returns true if a call ends right before `address`, or if the code there is unknown: the process may have made it,
  // or its file can't be read. `generation`: the process's.
  bool IsAfterCall(const Process* process, uint32_t generation, uint64_t address);
  // Returns what IsAfterCall has returned, as long as that is kept.
  std::optional<bool> KnownAfterCall(uint32_t generation, uint64_t address) const {
    const uint64_t key = RuleCache::KeyOf(address - 1, generation);
    const AfterCall& known = after_calls_[IndexOf(key)];
    return RuleCache::CanHold(address - 1) && known.key == key ? std::optional(known.is_call) : std::nullopt;
  }

  // The cache alone, for walks that leave misses to RuleAt. They tell how many rules they have found.
  RuleCache& cache() { return cache_; }
  void CountHits(uint32_t hits) {
    lookups_ += hits;
    hits_ += hits;
  }
  // Sets rule_lookups and cache_hits; adds to the numbers of modules and to table_bytes.
  void Fill(UnwinderStats& stats) const;

 private:
  struct Generation {
    uint64_t epoch = proc::Processes::kNoEpoch;
    uint32_t number = 0;
  };
  // What IsAfterCall has returned.
  struct AfterCall {
    uint64_t key = 0;  // As RuleCache's; 0 means none.
    bool is_call = false;
  };
  static constexpr unsigned kCallBits = 12;
  struct ModuleOffset {
    CodeModule* module;
    uint64_t offset;
  };

  uint32_t GenerationOf(const Process* process);
  void FindAnew(uint32_t pid);
  // As CodeModule::At.
  bool ReadRule(const Process* process, uint64_t address, bool may_be_planted, Rule& rule);
  static constexpr size_t IndexOf(uint64_t key) { return base::Mix(key) >> (64 - kCallBits); }
  bool Locate(const Process* process, uint64_t address, ModuleOffset& found);
  CodeModule& ModuleAt(uint32_t number);

  const std::string proc_;
  proc::Processes processes_;
  std::vector<std::unique_ptr<CodeModule>> modules_;  // By number; null until the first frame in it.
  RuleCache cache_;
  std::array<Generation, 64> generations_{};  // A cache by epoch.
  uint32_t last_generation_ = 0;
  Numbered latest_;  // Of `latest_pid_`, at `latest_changes_` of the processes.
  uint64_t latest_changes_ = UINT64_MAX;
  uint32_t latest_pid_ = 0;
  std::array<AfterCall, size_t{1} << kCallBits> after_calls_{};  // By a hash of the key.
  uint64_t lookups_ = 0, hits_ = 0;                              // Of rules, and of those in the cache.
};

}  // namespace perfkit::unwind
