// Unwinder: the public face of a Walker.
#include "perfkit/unwinder.h"

#include "src/unwind/dwarf/walker.h"

namespace perfkit {

std::string_view StackEndName(StackEnd end) {
  constexpr std::string_view kNames[] = {"root",        "truncated", "no mapping", "no info",     "unreadable",
                                         "no progress", "limit",     "no stack",   "no registers"};
  const auto index = static_cast<size_t>(end);
  return index < std::size(kNames) ? kNames[index] : "";
}

Unwinder::Unwinder(UnwinderOptions options) : walker_(std::make_unique<unwind::Walker>(options)) {}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

bool Unwinder::Add(const RawRecord& record, const SampleLayout& layout) { return walker_->Add(record, layout); }
absl::Status Unwinder::AddProcess(pid_t pid) { return walker_->AddProcess(pid); }
UnwoundStack Unwinder::Unwind(const Sample& sample, std::span<StackFrame> frames) {
  return walker_->Unwind(sample, frames);
}
void Unwinder::Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks) {
  walker_->Unwind(samples, frames, stacks);
}
UnwinderStats Unwinder::stats() const { return walker_->stats(); }

}  // namespace perfkit
