// The inside of a Symbolizer: what is mapped by process, names by place.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "perfkit/sample.h"
#include "perfkit/symbolizer.h"
#include "src/base/mix.h"
#include "src/proc/jit_map.h"
#include "src/proc/processes.h"
#include "src/symbolize/kernel_names.h"
#include "src/symbolize/line_source.h"
#include "src/symbolize/module.h"

namespace perfkit::symbolize {

class SymbolizerImpl {
 public:
  explicit SymbolizerImpl(SymbolizerOptions options);

  bool Add(const RawRecord& record, const SampleLayout& layout) {
    const bool changes = processes_.Add(record, layout);
    NoticeJitCode();
    return changes;
  }
  absl::Status AddProcess(pid_t pid) {
    const absl::Status status = processes_.AddProcess(pid);
    NoticeJitCode();
    return status;
  }
  CodeLocation Locate(uint32_t pid, uint64_t pc, CpuMode mode);
  const Symbol& Name(CodeLocation location);
  const Symbol& Resolve(uint32_t pid, uint64_t pc, CpuMode mode);
  std::span<const SourceFrame> Inlined(CodeLocation location);
  bool ResolveAll(std::span<const CodeLocation> locations, absl::FunctionRef<bool(const ResolvedLocation&)> visit);
  std::vector<SymbolizedModule> Modules() const;
  std::string BuildId(CodeLocation location);

 private:
  using Process = proc::Processes::Process;
  // One pc that was resolved, in the place where its hash puts it.
  struct Memo {
    uint64_t epoch = 0, pc = 0;
    Symbol symbol;
  };
  // The calls at one place, in the place where its hash puts it.
  struct CallsMemo {
    CodeLocation location;
    std::vector<SourceFrame> frames;  // none: nothing is here yet
  };
  struct LocationHash {
    size_t operator()(const CodeLocation& location) const noexcept {
      return static_cast<size_t>(base::Mix(location.offset ^ uint64_t{location.module} << 40) >> 16);
    }
  };

  CodeLocation LocateIn(const Process* process, uint64_t pc) const;
  Helpers helpers() const { return {lines_.get(), fetcher_.get()}; }
  Module& ModuleAt(uint32_t number);
  Symbol NameInKernel(uint64_t pc);
  Symbol NameInModule(CodeLocation location);
  void NoticeJitCode();
  Symbol NameInJitCode(CodeLocation location, proc::JitMap& map);
  // Returns true if a place has no name now and may have one later: its process is still making code.
  bool MayBeNamedLater(CodeLocation location, std::string_view function) const {
    return function.empty() && jit_maps_.contains(location.module);
  }
  std::string_view Readable(std::string_view name);
  void FindCalls(CodeLocation location, std::vector<SourceFrame>& frames);

  const SymbolizerOptions options_;
  proc::Processes processes_;
  std::deque<Module>
      modules_;  // by number, as far as they were asked for; the first are what CodeLocations of none say
  const std::unique_ptr<LineSource> lines_;  // looks at the modules' bytes
  const std::unique_ptr<DebugFetcher> fetcher_;
  KernelNames kernel_names_;
  size_t noticed_modules_ = 0;                           // of processes_, as far as NoticeJitCode came
  std::unordered_map<uint32_t, proc::JitMap> jit_maps_;  // by module
  Symbol unnamed_;                                       // what Name returned last of a place that may be named later
  std::unordered_map<CodeLocation, Symbol, LocationHash> names_;
  std::unordered_map<const char*, std::string> readable_;  // demangled, by where the mangled name is
  std::vector<Memo> memos_;
  std::vector<CallsMemo> calls_memos_;
  std::vector<SourceCall> calls_;  // of the place that was asked for last
};

}  // namespace perfkit::symbolize
