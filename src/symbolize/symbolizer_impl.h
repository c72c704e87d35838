// The implementation of Symbolizer: mappings by process, names by location.
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

// As Symbolizer's; not thread-safe. Returned references are valid until the next call.
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
  // A resolved pc, at the index of its hash.
  struct Memo {
    uint64_t epoch = 0, pc = 0;
    Symbol symbol;
  };
  // The calls at a location, at the index of its hash.
  struct CallsMemo {
    CodeLocation location;
    std::vector<SourceFrame> frames;  // Empty if nothing is cached here.
  };
  struct LocationHash {
    size_t operator()(const CodeLocation& location) const noexcept {
      return static_cast<size_t>(base::Mix(location.offset ^ uint64_t{location.module} << 40) >> 16);
    }
  };

  CodeLocation LocateIn(uint32_t pid, const Process* process, uint64_t pc);
  Helpers helpers() const { return {lines_.get(), fetcher_.get()}; }
  Module& ModuleAt(uint32_t number);
  Symbol NameInKernel(uint64_t pc);
  Symbol NameInModule(CodeLocation location);
  // Creates the jit maps of new modules without a file.
  void NoticeJitCode();
  proc::JitMap& JitMapOf(pid_t pid, uint64_t life, const proc::ForkedFrom* parent);
  Symbol NameInJitCode(CodeLocation location, proc::JitMap& map);
  // Returns true if the name of a location may change, because its process generates code: names are not cached.
  bool MayBeRenamed(CodeLocation location) const { return jit_modules_.contains(location.module); }
  // Returns the demangled name, with a cache.
  std::string_view Readable(std::string_view name);
  // Writes the calls at a location to `frames`, without a cache.
  void FindCalls(CodeLocation location, std::vector<SourceFrame>& frames);

  const SymbolizerOptions options_;
  proc::Processes processes_;
  // By number; created at the first lookup. The first ones stand for code that is in no module.
  std::deque<Module> modules_;
  const std::unique_ptr<LineSource> lines_;  // Views the modules' bytes.
  const std::unique_ptr<DebugFetcher> fetcher_;
  KernelNames kernel_names_;
  size_t noticed_modules_ = 0;                           // Number of modules of processes_ that NoticeJitCode has seen.
  std::unordered_map<uint64_t, proc::JitMap> jit_maps_;  // By the life of their process.
  std::unordered_map<uint32_t, proc::JitMap*> jit_modules_;  // By module.
  Symbol in_jit_code_;                                       // The latest result of Name that may change.
  std::unordered_map<CodeLocation, Symbol, LocationHash> names_;
  std::unordered_map<const char*, std::string> readable_;  // Demangled names, by the address of the mangled one.
  std::vector<Memo> memos_;
  std::vector<CallsMemo> calls_memos_;
  std::vector<SourceCall> calls_;  // A buffer of FindCalls.
};

}  // namespace perfkit::symbolize
