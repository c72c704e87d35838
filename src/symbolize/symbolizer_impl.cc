// Locates pcs and creates modules.
#include "src/symbolize/symbolizer_impl.h"

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

CodeLocation SymbolizerImpl::LocateIn(const Process* process, uint64_t pc) const {
  const proc::MappedRange* const range = process == nullptr ? nullptr : process->space.Find(pc);
  if (range == nullptr) return {kUnknown, pc};
  return {range->module, range->offset + (pc - range->begin)};
}

CodeLocation SymbolizerImpl::Locate(uint32_t pid, uint64_t pc, CpuMode mode) {
  if (mode != CpuMode::kUser) return {NoModuleOf(mode), pc};
  return LocateIn(processes_.Find(pid), pc);
}

}  // namespace perfkit::symbolize
