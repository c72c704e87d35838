// The inside of a Symbolizer: spaces by process, modules by identity, names by place.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfkit/sample.h"
#include "perfkit/symbolizer.h"
#include "src/proc/maps.h"
#include "src/symbolize/kernel_names.h"
#include "src/symbolize/module.h"
#include "src/symbolize/space.h"

namespace perfkit::symbolize {

class Core {
 public:
  explicit Core(SymbolizerOptions options);

  bool Add(const RawRecord& record, const SampleLayout& layout);
  absl::Status AddProcess(pid_t pid);
  CodePlace Locate(uint32_t pid, uint64_t pc, CpuMode mode);
  const Symbol& Name(CodePlace place);
  const Symbol& Resolve(uint32_t pid, uint64_t pc, CpuMode mode);
  std::vector<SymbolizedModule> Modules() const;

 private:
  // What a process has mapped. `epoch` is of this state of it alone: it changes with every change.
  struct Process {
    Space space;
    uint64_t epoch = 0;
  };
  // One pc that was resolved, in the place where its hash puts it.
  struct Memo {
    uint64_t epoch = 0, pc = 0;
    Symbol symbol;
  };
  struct PlaceHash {
    size_t operator()(const CodePlace& place) const noexcept {
      return static_cast<size_t>((place.offset ^ uint64_t{place.module} << 40) * 0x9e3779b97f4a7c15u >> 16);
    }
  };

  void OnMmap(const MmapRecord& map);
  void OnFork(const ForkRecord& fork);
  void OnExit(const ExitRecord& exit);
  void Forget(uint32_t pid);
  Process& ProcessOf(uint32_t pid);
  const Process* FindProcess(uint32_t pid);
  uint32_t ModuleOf(ModuleId id);
  CodePlace LocateIn(const Process* process, uint64_t pc) const;
  Symbol NameInKernel(uint64_t pc);
  Symbol NameInModule(CodePlace place);
  std::string_view Readable(std::string_view name);

  const SymbolizerOptions options_;
  std::unordered_map<uint32_t, Process> processes_;
  std::deque<std::pair<uint32_t, uint64_t>> dead_;  // pid and epoch of processes that ended, the oldest first
  uint64_t epochs_ = 1;                             // 1 is the kernel's: it never changes
  uint32_t last_pid_ = 0;                           // whose process `last_` is
  const Process* last_ = nullptr;

  std::deque<Module> modules_;  // the first are what CodePlaces of no module say
  std::unordered_map<std::string, uint32_t> module_index_;
  KernelNames kernel_names_;
  std::unordered_map<CodePlace, Symbol, PlaceHash> names_;
  std::unordered_map<const char*, std::string> readable_;  // demangled, by where the mangled name is
  std::vector<Memo> memos_;
};

}  // namespace perfkit::symbolize
