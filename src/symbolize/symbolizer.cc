// Symbolizer: the public interface of SymbolizerImpl.
#include "perfkit/symbolizer.h"

#include <utility>

#include "src/symbolize/symbolizer_impl.h"

namespace perfkit {

Symbolizer::Symbolizer(SymbolizerOptions options)
    : impl_(std::make_unique<symbolize::SymbolizerImpl>(std::move(options))) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

bool Symbolizer::Add(const RawRecord& record, const SampleLayout& layout) { return impl_->Add(record, layout); }
absl::Status Symbolizer::AddProcess(pid_t pid) { return impl_->AddProcess(pid); }
CodeLocation Symbolizer::Locate(uint32_t pid, uint64_t pc, CpuMode mode) { return impl_->Locate(pid, pc, mode); }
Symbol Symbolizer::Name(CodeLocation location) { return impl_->Name(location); }
Symbol Symbolizer::Resolve(uint32_t pid, uint64_t pc, CpuMode mode) { return impl_->Resolve(pid, pc, mode); }
std::span<const SourceFrame> Symbolizer::Inlined(CodeLocation location) { return impl_->Inlined(location); }
bool Symbolizer::ResolveAll(std::span<const CodeLocation> locations,
                            absl::FunctionRef<bool(const ResolvedLocation&)> visit) {
  return impl_->ResolveAll(locations, visit);
}
std::string Symbolizer::BuildId(CodeLocation location) { return impl_->BuildId(location); }
std::vector<SymbolizedModule> Symbolizer::Modules() const { return impl_->Modules(); }

}  // namespace perfkit
