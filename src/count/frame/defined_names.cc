// Adds definitions. They are few and are made once, so that names are searched one by one; a deque never moves what it
// holds, so that an id can be the name's address.
#include "src/count/frame/defined_names.h"

namespace perfkit::count {

ZoneId DefinedNames::DefineZone(std::string_view name) {
  for (const std::string& known : zones_) {
    if (known == name) return {known.c_str()};
  }
  return {zones_.emplace_back(name).c_str()};
}

FrameId DefinedNames::DefineFrame(std::string_view name, const ZoneShape& shape, uint64_t budget_ns) {
  const uint32_t index = count_.load(std::memory_order_relaxed);
  if (index == kMaxChains) return {kMaxChains};
  chains_[index] = std::make_unique<FrameChain>(std::string(name), shape, history_frames_, budget_ns);
  count_.store(index + 1, std::memory_order_release);  // pairs with the acquire in chain()
  return {index};
}

void DefinedNames::Disown(const FrameThread& thread) {
  for (uint32_t c = 1; c < count_.load(std::memory_order_relaxed); ++c) chains_[c]->Disown(thread);
}

}  // namespace perfkit::count
