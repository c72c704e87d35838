// Symbolizer: the public face of a Core.
#include "perfkit/symbolizer.h"

#include <utility>

#include "src/symbolize/core.h"

namespace perfkit {

Symbolizer::Symbolizer(SymbolizerOptions options) : core_(std::make_unique<symbolize::Core>(std::move(options))) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

bool Symbolizer::Add(const RawRecord& record, const SampleLayout& layout) { return core_->Add(record, layout); }
absl::Status Symbolizer::AddProcess(pid_t pid) { return core_->AddProcess(pid); }
CodeLocation Symbolizer::Locate(uint32_t pid, uint64_t pc, CpuMode mode) { return core_->Locate(pid, pc, mode); }
Symbol Symbolizer::Name(CodeLocation location) { return core_->Name(location); }
Symbol Symbolizer::Resolve(uint32_t pid, uint64_t pc, CpuMode mode) { return core_->Resolve(pid, pc, mode); }
std::span<const SourceFrame> Symbolizer::Inlined(CodeLocation location) { return core_->Inlined(location); }
bool Symbolizer::ResolveAll(std::span<const CodeLocation> locations,
                            absl::FunctionRef<bool(const ResolvedLocation&)> visit) {
  return core_->ResolveAll(locations, visit);
}
std::vector<SymbolizedModule> Symbolizer::Modules() const { return core_->Modules(); }

}  // namespace perfkit
