// Locates pcs, creates modules, and finds the calls at locations. Names: symbolizer_names.cc.
//
// A pc is first turned into a location, a module's number and an offset in its file, by the mappings of its process.
// Everything that is expensive (symbols, names, lines) is known by location, so processes that run the same file share
// it. Files are read when the first name in them is asked for.
#include "src/symbolize/symbolizer_impl.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace perfkit::symbolize {
namespace {

// The numbers of code that is in no module, in the order of kNoModules.
enum : uint32_t { kUnknown, kKernel, kHypervisor, kGuestKernel, kGuestUser };
constexpr const char* kNoModules[] = {"[unknown]", "[kernel]", "[hypervisor]", "[guest.kernel]", "[guest.user]"};

uint32_t NoModuleOf(CpuMode mode) {
  switch (mode) {
    case CpuMode::kKernel: return kKernel;
    case CpuMode::kHypervisor: return kHypervisor;
    case CpuMode::kGuestKernel: return kGuestKernel;
    case CpuMode::kGuestUser: return kGuestUser;
    default: return kUnknown;
  }
}

// 8,192 entries, twice the number of locations in the profile of a large program. An entry takes 40 bytes, and 48 bytes
// for each of its calls.
constexpr size_t kCallsMemoBits = 13;

}  // namespace

SymbolizerImpl::SymbolizerImpl(SymbolizerOptions options)
    : options_(std::move(options)),
      processes_(options_.proc, kNoModules),
      lines_(options_.lines == nullptr ? nullptr : options_.lines(options_.lines_cache_bytes)),
      fetcher_(options_.fetch == nullptr ? nullptr : options_.fetch()) {}

// processes_ numbers modules when they are mapped. They are created here at the first lookup.
Module& SymbolizerImpl::ModuleAt(uint32_t number) {
  while (modules_.size() <= number) modules_.emplace_back(processes_.modules()[modules_.size()]);
  return modules_[number];
}

CodeLocation SymbolizerImpl::LocateIn(uint32_t pid, const Process* process, uint64_t pc) {
  const proc::MappedRange* const range = process == nullptr ? nullptr : process->space.Find(pc);
  if (range == nullptr) return {kUnknown, pc};
  const CodeLocation location{range->module, range->offset + (pc - range->begin)};
  if (process->parent == nullptr) [[likely]]
    return location;
  const uint32_t module = processes_.ModuleIn(pid, *process, location.module);
  NoticeJitCode();
  return {module, location.offset};
}

CodeLocation SymbolizerImpl::Locate(uint32_t pid, uint64_t pc, CpuMode mode) {
  if (mode != CpuMode::kUser) return {NoModuleOf(mode), pc};
  return LocateIn(pid, processes_.Find(pid), pc);
}

// The last call, the function itself, is named by its linkage name if the debug information has that, else by the
// location's symbol. So code with the symbol "f(int) [clone .cold]" is named f(int), because it is a part of that
// function. Symbols are looked up only if they are needed: looking up all would take a third of the time.
void SymbolizerImpl::FindCalls(CodeLocation location, std::vector<SourceFrame>& frames) {
  calls_.clear();
  frames.clear();
  if (Module& module = ModuleAt(location.module); module.has_file()) {
    module.Load(options_, helpers());
    module.OpenLines(options_, helpers(), location.module);
    const std::optional<uint64_t> address = module.AddressOf(location.offset);
    if (address && lines_ != nullptr) lines_->Find(location.module, *address, calls_);
  }
  for (const SourceCall& call : calls_) {
    const bool inlined = &call != &calls_.back();
    std::string_view function = call.linkage ? Readable(call.function) : call.function;
    if (!inlined && !call.linkage) {
      if (const Symbol& symbol = Name(location); symbol.named()) function = symbol.function;
    }
    frames.push_back({function, call.file, call.line, call.column, inlined});
  }
  if (frames.empty()) frames.push_back({.function = Name(location).function});
}

std::span<const SourceFrame> SymbolizerImpl::Inlined(CodeLocation location) {
  if (location.module >= processes_.modules().size()) location.module = 0;  // An unknown module, as in Name.
  if (calls_memos_.empty()) calls_memos_.resize(size_t{1} << kCallsMemoBits);
  CallsMemo& memo = calls_memos_[base::Mix(location.offset ^ uint64_t{location.module} << 40) >> (64 - kCallsMemoBits)];
  if (memo.location != location || memo.frames.empty()) {
    __builtin_prefetch(memo.frames.data(), 1);  // Written by FindCalls.
    FindCalls(location, memo.frames);
    memo.location = MayBeRenamed(location) ? CodeLocation{.module = UINT32_MAX} : location;
  }
  return memo.frames;
}

bool SymbolizerImpl::ResolveAll(std::span<const CodeLocation> locations,
                                absl::FunctionRef<bool(const ResolvedLocation&)> visit) {
  std::vector<size_t> order(locations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // By module and offset: what the LineSource reads for one location (a unit of debug information) serves its
  // neighbours.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return locations[a] < locations[b]; });
  size_t done = 0;
  for (const size_t index : order) {
    const std::span<const SourceFrame> frames = Inlined(locations[index]);
    if (!visit({index, Name(locations[index]), frames, ++done})) return false;
  }
  return true;
}

}  // namespace perfkit::symbolize
