// A copy of a piece of a stack, every read of which is checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "perfkit/unwinder.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

// Brings near what is `offset` bytes after `from`. Nothing is read, so that it may be anywhere.
inline void PrefetchAt(const std::byte* from, uint64_t offset) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + offset));
}

// What was at [begin, begin + size).
class StackBytes {
 public:
  StackBytes() = default;
  StackBytes(uint64_t begin, base::Bytes bytes)
      : data_(bytes.data()),
        begin_(begin),
        size_(bytes.size()),
        words_(size_ < sizeof(uint64_t) ? 0 : size_ - sizeof(uint64_t) + 1) {}

  // The word at `address`. False: not, or not wholly, among the bytes.
  bool Read(uint64_t address, uint64_t& word) const {
    const uint64_t at = address - begin_;  // below begin_: huge
    if (at >= words_) return false;
    std::memcpy(&word, data_ + at, sizeof(word));
    return true;
  }

  void Prefetch(uint64_t address) const { PrefetchAt(data_, address - begin_); }

  // The 1 to 8 bytes at `address`, as a little-endian number.
  std::optional<uint64_t> ReadPart(uint64_t address, unsigned size) const {
    const uint64_t at = address - begin_;
    if (size == 0 || size > 8 || size_ < size || at > size_ - size) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, data_ + at, size);
    return value;
  }

  // What it means for a walk that `address` could not be read. `elsewhere`: the walk has just come to another stack,
  // from a handler that ran on an alternate one.
  //
  // That fewer bytes were copied than asked for does not say that the stack ends there: the kernel also stops at a
  // page that is not in memory, as those of a large array are that nobody has written to yet.
  StackEnd Missing(uint64_t address, bool elsewhere) const {
    const bool past_end = address >= begin_ && address - begin_ < kLargest;
    return elsewhere || past_end ? StackEnd::kTruncated : StackEnd::kUnreadable;
  }
  bool Holds(uint64_t address) const { return address - begin_ < size_; }

  const std::byte* At(uint64_t address) const { return Holds(address) ? data_ + (address - begin_) : nullptr; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr uint64_t kLargest = uint64_t{1} << 32;  // no stack is larger

  const std::byte* data_ = nullptr;
  uint64_t begin_ = 0, size_ = 0;
  uint64_t words_ = 0;  // how many bytes a whole word begins at
};

}  // namespace perfkit::unwind
