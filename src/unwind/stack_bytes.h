// A copy of a part of a stack. Each read is checked against its bounds.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "perfkit/stack_frame.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

// Prefetches the memory at `from` + `offset`. Any address is allowed: a prefetch does not fault.
inline void PrefetchAt(const std::byte* from, uint64_t offset) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + offset));
}

// The bytes at the addresses [begin, begin + size). A view: valid as long as the bytes. Thread-safe to read.
class StackBytes {
 public:
  StackBytes() = default;
  StackBytes(uint64_t begin, base::Bytes bytes)
      : data_(bytes.data()),
        begin_(begin),
        size_(bytes.size()),
        words_(size_ < sizeof(uint64_t) ? 0 : size_ - sizeof(uint64_t) + 1) {}

  // Reads the word at `address`. Returns false if it is not wholly within the bytes.
  bool Read(uint64_t address, uint64_t& word) const {
    const uint64_t at = address - begin_;  // Huge if address < begin_.
    if (at >= words_) return false;
    std::memcpy(&word, data_ + at, sizeof(word));
    return true;
  }

  void Prefetch(uint64_t address) const { PrefetchAt(data_, address - begin_); }

  // Returns the 1 to 8 bytes at `address` as a little-endian number, or nullopt if they are not within the bytes.
  std::optional<uint64_t> ReadPart(uint64_t address, unsigned size) const {
    const uint64_t at = address - begin_;
    if (size == 0 || size > 8 || size_ < size || at > size_ - size) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, data_ + at, size);
    return value;
  }

  // Returns why a walk that could not read `address` ends. `elsewhere`: the walk has just reached another stack, from a
  // signal handler on an alternate stack.
  //
  // If fewer bytes were copied than asked for, the stack need not end there: the kernel also stops at a page that is
  // not present, e.g. one of a large array that was never written.
  StackEnd Missing(uint64_t address, bool elsewhere) const {
    const bool past_end = address >= begin_ && address - begin_ < kLargest;
    return elsewhere || past_end ? StackEnd::kTruncated : StackEnd::kUnreadable;
  }
  bool Holds(uint64_t address) const { return address - begin_ < size_; }

  // Returns nullptr if the byte is not there.
  const std::byte* At(uint64_t address) const { return Holds(address) ? data_ + (address - begin_) : nullptr; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr uint64_t kLargest = uint64_t{1} << 32;  // In bytes; no stack is larger.

  const std::byte* data_ = nullptr;
  uint64_t begin_ = 0, size_ = 0;
  uint64_t words_ = 0;  // Number of offsets at which a whole word begins.
};

}  // namespace perfkit::unwind
