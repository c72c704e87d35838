// Zones may be many, as programs may name them at run time. Frames are few, so their names are searched linearly.
#include "src/count/frame/defined_names.h"

namespace perfkit::count {

ZoneId DefinedNames::DefineZone(std::string_view name) {
  if (const auto known = zones_.find(name); known != zones_.end()) return {known->c_str()};
  return {zones_.size() < kMaxZones ? zones_.emplace(name).first->c_str() : "(more names)"};
}

FrameId DefinedNames::DefineFrame(std::string_view name, const ZoneShape& shape, uint64_t budget_ns) {
  const uint32_t index = count_.load(std::memory_order_relaxed);
  if (index == kMaxSequences) return {kMaxSequences};
  sequences_[index] = std::make_unique<FrameSequence>(std::string(name), shape, history_frames_, budget_ns);
  count_.store(index + 1, std::memory_order_release);  // pairs with the acquire in sequence()
  return {index};
}

FrameId DefinedNames::FindFrame(std::string_view name) const {
  const uint32_t count = count_.load(std::memory_order_acquire);  // pairs with the release in DefineFrame
  for (uint32_t c = 1; c < count; ++c) {
    if (sequences_[c]->name() == name) return {c};
  }
  return {};
}

void DefinedNames::Disown(const FrameThread& thread) {
  for (uint32_t c = 1; c < count_.load(std::memory_order_relaxed); ++c) sequences_[c]->Disown(thread);
}

}  // namespace perfkit::count
