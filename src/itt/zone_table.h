// The zones of tasks: from a domain and a handle, which are addresses in the program, to the name of a zone.
//
// A look-up takes no lock: an entry is complete before its name is stored, and is never changed afterwards. Handles and
// domains live as long as the program (intel/ittapi has no function that destroys one).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace perfkit::itt {

class ZoneTable {
 public:
  static constexpr size_t kMaxZones = 6000;

  // Returns the name that Add was given for this pair; nullptr if there was none. Any thread; async-signal-safe.
  const char* Find(const void* domain, const void* key) const noexcept {
    for (size_t i = FirstSlot(domain, key);; i = (i + 1) % kSlots) {
      // Acquire: pairs with the release in Add.
      const char* const name = slots_[i].name.load(std::memory_order_acquire);
      if (name == nullptr || (slots_[i].domain == domain && slots_[i].key == key)) return name;
    }
  }

  // `name` must live as long as the table. Does nothing if the pair is there, or if the table is full. Thread-safe.
  void Add(const void* domain, const void* key, const char* name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (count_ == kMaxZones || Find(domain, key) != nullptr) return;
    size_t i = FirstSlot(domain, key);
    while (slots_[i].name.load(std::memory_order_relaxed) != nullptr) i = (i + 1) % kSlots;  // Add alone stores.
    slots_[i].domain = domain;
    slots_[i].key = key;
    slots_[i].name.store(name, std::memory_order_release);  // Pairs with the acquire in Find.
    ++count_;
  }

 private:
  static constexpr unsigned kSlotBits = 13;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static_assert(kMaxZones < kSlots, "a look-up ends at a slot without a name");

  struct Slot {
    const void* domain = nullptr;
    const void* key = nullptr;
    std::atomic<const char*> name{nullptr};
  };

  static size_t FirstSlot(const void* domain, const void* key) noexcept {
    const uint64_t mixed = reinterpret_cast<uintptr_t>(key) + 3 * reinterpret_cast<uintptr_t>(domain);
    return mixed * 0x9E3779B97F4A7C15u >> (64 - kSlotBits);
  }

  std::array<Slot, kSlots> slots_;
  std::mutex mutex_;  // Guards Add and count_.
  size_t count_ = 0;
};

}  // namespace perfkit::itt
