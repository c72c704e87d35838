// Names locations, with caches by location and by pc. A pc's entry holds for one epoch: the state of its process's
// mappings, which is another one after each change of them. Names of code that is made at run time are not kept: its
// process may write them later, and may use an address again.
#include <algorithm>

#include "src/base/mix.h"
#include "src/elf/notes.h"
#include "src/symbolize/demangle.h"
#include "src/symbolize/symbolizer_impl.h"

namespace perfkit::symbolize {
namespace {

constexpr uint32_t kKernelModule = 1;
constexpr uint64_t kKernelEpoch = 1;
// 4,096 entries of 72 bytes: a program spends most of its time at a few thousand pcs.
constexpr size_t kMemos = 4096;
// The cache of names is cleared when it exceeds this size.
constexpr size_t kMaxNames = 1 << 20;

}  // namespace

std::string_view SymbolizerImpl::Readable(std::string_view name) {
  if (!options_.demangle) return name;
  // By address: mangled names stay where they are as long as their module or line source.
  const auto [found, is_new] = readable_.try_emplace(name.data());
  if (is_new) found->second = Demangle(name);
  return found->second;
}

Symbol SymbolizerImpl::NameInKernel(uint64_t pc) {
  Symbol symbol{.function = {}, .module = ModuleAt(kKernelModule).name(), .offset = pc, .kernel = true};
  kernel_names_.Load(options_.proc);
  const std::optional<KernelNames::Found> found = kernel_names_.Find(pc);
  if (!found) return symbol;
  if (!found->module.empty()) symbol.module = found->module;
  symbol.function = found->function;
  symbol.offset = pc - found->begin;
  return symbol;
}

// Creates the jit maps while the process exists: later its user, and its pid in its container, are unknown.
void SymbolizerImpl::NoticeJitCode() {
  const auto& modules = processes_.modules();
  for (; noticed_modules_ < modules.size(); ++noticed_modules_) {
    const proc::ModuleId& id = modules[noticed_modules_];
    if (!id.may_be_made()) continue;
    jit_modules_[static_cast<uint32_t>(noticed_modules_)] = &JitMapOf(id.pid, id.life, id.parent.get());
  }
}

proc::JitMap& SymbolizerImpl::JitMapOf(pid_t pid, uint64_t life, const proc::ForkedFrom* parent) {
  if (const auto known = jit_maps_.find(life); known != jit_maps_.end()) return known->second;
  proc::JitMap* const of_parent =
      parent == nullptr ? nullptr : &JitMapOf(parent->pid, parent->life, parent->parent.get());
  return jit_maps_.try_emplace(life, pid, options_.proc, of_parent).first->second;
}

Symbol SymbolizerImpl::NameInJitCode(CodeLocation location, proc::JitMap& map) {
  Symbol symbol{.function = {}, .module = ModuleAt(location.module).name(), .offset = location.offset, .kernel = false};
  const std::optional<proc::JitFunction> found = map.Find(location.offset);
  if (!found) return symbol;
  symbol.function = found->name;
  symbol.offset = location.offset - found->begin;
  return symbol;
}

Symbol SymbolizerImpl::NameInModule(CodeLocation location) {
  if (const auto jit = jit_modules_.find(location.module); jit != jit_modules_.end())
    return NameInJitCode(location, *jit->second);

  Module& module = ModuleAt(location.module);
  Symbol symbol{.function = {}, .module = module.name(), .offset = location.offset, .kernel = false};
  if (!module.has_file()) return symbol;
  module.Load(options_, helpers());
  const std::optional<uint64_t> address = module.AddressOf(location.offset);
  if (!address) return symbol;
  symbol.offset = *address;
  const std::optional<SymbolTable::Found> found = module.Find(*address);
  if (!found) return symbol;
  symbol.function = Readable(found->name);
  symbol.offset = *address - found->begin;
  return symbol;
}

const Symbol& SymbolizerImpl::Name(CodeLocation location) {
  if (location.module >= processes_.modules().size()) location.module = 0;
  if (names_.size() >= kMaxNames) names_.clear();
  if (MayBeRenamed(location)) return in_jit_code_ = NameInModule(location);
  const auto [found, is_new] = names_.try_emplace(location);
  if (is_new) found->second = location.module == kKernelModule ? NameInKernel(location.offset) : NameInModule(location);
  return found->second;
}

const Symbol& SymbolizerImpl::Resolve(uint32_t pid, uint64_t pc, CpuMode mode) {
  const Process* const process = mode == CpuMode::kUser ? processes_.Find(pid) : nullptr;
  const bool kernel = mode == CpuMode::kKernel;
  if (process == nullptr && !kernel) return Name(Locate(pid, pc, mode));
  const uint64_t epoch = kernel ? kKernelEpoch : process->epoch;
  if (memos_.empty()) memos_.resize(kMemos);
  Memo& memo = memos_[base::Mix(pc ^ epoch << 48) >> 52];
  if (memo.epoch == epoch && memo.pc == pc) return memo.symbol;
  const CodeLocation location = kernel ? CodeLocation{kKernelModule, pc} : LocateIn(pid, process, pc);
  const Symbol symbol = Name(location);
  memo = {MayBeRenamed(location) ? proc::Processes::kNoEpoch : epoch, pc, symbol};
  return memo.symbol;
}

std::vector<SymbolizedModule> SymbolizerImpl::Modules() const {
  std::vector<SymbolizedModule> modules;
  if (kernel_names_.loaded()) {
    modules.push_back(
        {.name = modules_[kKernelModule].name(), .status = kernel_names_.status(), .symbols = kernel_names_.symbols()});
  }
  for (const Module& module : modules_) {
    if (!module.loaded()) continue;
    modules.push_back({.name = module.name(),
                       .status = module.status(),
                       .lines = module.lines_status(),
                       .symbols = module.symbols(),
                       .debug_file = module.debug_path()});
  }
  for (const auto& [number, map] : jit_modules_) {
    if (map->functions() == 0 && map->status().ok()) continue;
    modules.push_back(
        {.name = processes_.modules()[number].path, .status = map->status(), .symbols = map->functions()});
  }
  std::sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return modules;
}

std::string SymbolizerImpl::BuildId(CodeLocation location) {
  if (location.module == kKernelModule || location.module >= processes_.modules().size()) return "";
  return elf::HexText(std::as_bytes(std::span(ModuleAt(location.module).build_id())));
}

}  // namespace perfkit::symbolize
