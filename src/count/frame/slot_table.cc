// A sequence lock with two copies: readers read the copy that is not being written, so they have to try again only if a
// publication ended meanwhile. Each atomic access names the one that it pairs with.
#include "src/count/frame/slot_table.h"

#include <algorithm>

namespace perfkit::count {
namespace {

// Maximum attempts to read a slot. Each failed one means that a publication ended during it.
constexpr int kAttempts = 1000;

std::atomic_ref<uint64_t> Atomic(uint64_t& word) { return std::atomic_ref<uint64_t>(word); }

}  // namespace

SlotTable::SlotTable(size_t words, size_t slots)
    : words_(std::min(words, kMaxWords)),
      lines_per_slot_((1 + 2 * (1 + words_) + 7) / 8),
      slots_(static_cast<uint32_t>(slots)),
      lines_(std::make_unique<Line[]>(slots * lines_per_slot_)),
      taken_(std::make_unique<std::atomic<bool>[]>(slots)) {}

uint32_t SlotTable::Claim() {
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    bool expected = false;
    // Acquire: pairs with the release in Release, so that the last owner's words are seen by Carry.
    if (!taken_[slot].compare_exchange_strong(expected, true, std::memory_order_acquire)) continue;
    claimed_.fetch_add(1, std::memory_order_relaxed);
    uint32_t used = used_.load(std::memory_order_relaxed);
    // Release: pairs with the acquire in Total; a slot that is not in `used_` yet has published nothing.
    while (used <= slot && !used_.compare_exchange_weak(used, slot + 1, std::memory_order_release)) {
    }
    return slot;
  }
  return kNoSlot;
}

void SlotTable::Release(uint32_t slot) {
  claimed_.fetch_sub(1, std::memory_order_relaxed);
  taken_[slot].store(false, std::memory_order_release);  // pairs with the acquire in Claim
}

void SlotTable::Carry(uint32_t slot, std::span<uint64_t> words) const {
  std::array<uint64_t, 1 + kMaxWords> copy{};
  ReadSlot(slot, copy.data());  // no thread writes to it: the caller owns the slot
  std::copy_n(copy.data() + 1, std::min(words.size(), words_), words.data());
}

void SlotTable::Publish(uint32_t slot, std::span<const uint64_t> words, uint32_t missing) noexcept {
  uint64_t* const at = At(slot);
  const uint64_t version = Atomic(at[0]).load(std::memory_order_relaxed);  // only the owner writes it
  uint64_t* const current = at + 1 + (version & 1) * (1 + words_);
  uint64_t* const next = at + 1 + (~version & 1) * (1 + words_);
  const uint64_t sticky = Atomic(current[0]).load(std::memory_order_relaxed) | missing;  // only the owner writes it
  // Release, here and below: pairs with the acquire loads in ReadSlot. This copy was current until the last
  // publication, so a slow reader may still be reading it. If it sees one of these words, it then sees at least the
  // version of the last publication, and tries again.
  Atomic(next[0]).store(sticky, std::memory_order_release);
  for (size_t w = 0; w < words.size(); ++w) Atomic(next[1 + w]).store(words[w], std::memory_order_release);
  Atomic(at[0]).store(version + 1, std::memory_order_release);  // pairs with ReadSlot's first load
}

bool SlotTable::ReadSlot(uint32_t slot, uint64_t* out) const noexcept {
  uint64_t* const at = At(slot);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t version = Atomic(at[0]).load(std::memory_order_acquire);  // pairs with Publish's last store
    uint64_t* const copy = at + 1 + (version & 1) * (1 + words_);
    // Acquire: pairs with Publish's data stores, and keeps the second look at the version after them.
    for (size_t w = 0; w <= words_; ++w) out[w] = Atomic(copy[w]).load(std::memory_order_acquire);
    if (Atomic(at[0]).load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

bool SlotTable::Total(std::span<uint64_t> sums, uint32_t* missing) const noexcept {
  std::fill(sums.begin(), sums.end(), 0);
  *missing = 0;
  bool complete = true;
  std::array<uint64_t, 1 + kMaxWords> copy;
  const uint32_t used = used_.load(std::memory_order_acquire);  // pairs with Claim's release
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (!ReadSlot(slot, copy.data())) {
      complete = false;
      continue;
    }
    *missing |= static_cast<uint32_t>(copy[0]);
    for (size_t w = 0; w < sums.size(); ++w) sums[w] += copy[1 + w];
  }
  return complete;
}

}  // namespace perfkit::count
