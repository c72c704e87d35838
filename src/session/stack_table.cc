// Open addressing over hashes of stacks; the pcs themselves are kept beside it, so that equal hashes are no mistake.
#include "src/session/stack_table.h"

#include <algorithm>

#include "src/base/mix.h"

namespace perfkit::session {
namespace {

constexpr size_t kFirstSize = 1024;

// A frame as one word: user addresses have at most 57 bits.
uint64_t WordOf(const StackFrame& frame) {
  return frame.pc << 3 | (frame.is_return_address ? 1 : 0) | (frame.is_guess ? 2 : 0) | (frame.is_stitched ? 4 : 0);
}

uint64_t HashOf(std::span<const StackFrame> frames) {
  uint64_t hash = frames.size();
  for (const StackFrame& frame : frames) {
    hash = base::Mix(hash ^ WordOf(frame));
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

StackTable::StackTable(ProfileBuilder& builder, Symbolizer& symbolizer, uint32_t pid, size_t max_stacks)
    : builder_(builder), symbolizer_(symbolizer), pid_(pid), max_stacks_(max_stacks), seen_(kFirstSize) {}

void StackTable::ForgetPlaces() {
  user_locations_.clear();
  std::fill(seen_.begin(), seen_.end(), Seen{});
  seen_count_ = 0;
  words_.clear();
}

uint32_t StackTable::Intern(std::span<const StackFrame> frames, bool& was_cut) {
  was_cut = false;
  if (frames.empty()) return ProfileStack::kRoot;
  const uint64_t hash = HashOf(frames);
  if (const Seen* const seen = Find(hash, frames); seen != nullptr) return seen->stack;
  const uint32_t stack = Add(frames, was_cut);
  if (!was_cut) Remember(hash, frames, stack);
  return stack;
}

uint32_t StackTable::InternKernel(uint32_t stack, uint64_t pc, bool& was_cut) {
  const uint32_t location = LocationOf(pc, CpuMode::kKernel);
  was_cut = false;
  if (stack == ProfileStack::kRoot) return builder_.Stack(stack, location);
  const uint64_t key = uint64_t{stack} << 32 | location;
  if (const auto seen = kernel_stacks_.find(key); seen != kernel_stacks_.end()) return seen->second;
  was_cut = builder_.profile().stacks.size() >= max_stacks_;
  if (was_cut) return builder_.Stack(ProfileStack::kRoot, location);
  return kernel_stacks_[key] = builder_.Stack(stack, location);
}

uint32_t StackTable::LocationOf(uint64_t pc, CpuMode mode) {
  auto& locations = mode == CpuMode::kKernel ? kernel_locations_ : user_locations_;
  const auto [entry, is_new] = locations.try_emplace(pc);
  if (!is_new) return entry->second;
  const CodeLocation place = symbolizer_.Locate(pid_, pc, mode);
  entry->second = builder_.Location(place.module, place.offset, mode == CpuMode::kKernel);
  if (entry->second >= places_.size()) places_.resize(entry->second + 1);
  places_[entry->second] = place;
  return entry->second;
}

uint32_t StackTable::Add(std::span<const StackFrame> frames, bool& was_cut) {
  was_cut = builder_.profile().stacks.size() + frames.size() > max_stacks_;
  if (was_cut) frames = frames.first(1);
  uint32_t stack = ProfileStack::kRoot;
  for (size_t i = frames.size(); i-- > 0;) {
    const StackFrame& frame = frames[i];
    stack = builder_.Stack(stack, LocationOf(frame.code(), CpuMode::kUser), frame.is_guess, frame.is_stitched);
  }
  return stack;
}

StackTable::Seen* StackTable::Find(uint64_t hash, std::span<const StackFrame> frames) {
  const auto equals = [](uint64_t word, const StackFrame& frame) { return word == WordOf(frame); };
  for (size_t at = hash & (seen_.size() - 1); seen_[at].words != 0; at = (at + 1) & (seen_.size() - 1)) {
    Seen& seen = seen_[at];
    if (seen.hash != hash || seen.words != frames.size()) continue;
    if (std::equal(frames.begin(), frames.end(), words_.begin() + seen.first_word,
                   [&](const StackFrame& frame, uint64_t word) { return equals(word, frame); })) {
      return &seen;
    }
  }
  return nullptr;
}

void StackTable::Remember(uint64_t hash, std::span<const StackFrame> frames, uint32_t stack) {
  if (words_.size() + frames.size() > kMaxWords) {
    std::fill(seen_.begin(), seen_.end(), Seen{});
    seen_count_ = 0;
    words_.clear();
  }
  if (2 * seen_count_ >= seen_.size()) Grow();
  size_t at = hash & (seen_.size() - 1);
  while (seen_[at].words != 0) at = (at + 1) & (seen_.size() - 1);
  seen_[at] = {hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(frames.size()), stack};
  ++seen_count_;
  for (const StackFrame& frame : frames) words_.push_back(WordOf(frame));
}

void StackTable::Grow() {
  std::vector<Seen> old(2 * seen_.size());
  old.swap(seen_);
  for (const Seen& seen : old) {
    if (seen.words == 0) continue;
    size_t at = seen.hash & (seen_.size() - 1);
    while (seen_[at].words != 0) at = (at + 1) & (seen_.size() - 1);
    seen_[at] = seen;
  }
}

}  // namespace perfkit::session
