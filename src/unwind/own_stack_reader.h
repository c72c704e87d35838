// Reads the calling thread's own stack in place: without a copy, and without a fault.
//
// The stack above sp exists while this runs, but its end is not known in general: only the code that made the stack
// knows its top, and a list of mappings is out of date as soon as it is read. So each page from sp upwards is probed
// once, when the first word in it is read. For a stack whose end is known (ThreadStackBounds), no probes are needed.
//
//   begin_ (sp's page)          end_
//      ├────── known ────────────┤── probed when needed, up to kNear ──┤── copied by the kernel ── …
//
// A word further up is beyond a large array, on another stack (that of an interrupted handler), or a damaged CFA led
// there. Another thread may unmap such memory between a probe and a read, so the kernel copies the word, until the walk
// has found a frame there (Settle).
#pragma once

#include <cstdint>
#include <optional>

#include "perfkit/stack_frame.h"
#include "src/sys/own_memory.h"

namespace perfkit::unwind {

// As StackBytes, for one walk. Not thread-safe. Async-signal-safe.
class OwnStackReader {
 public:
  // `end`: the address up to which the stack is known to be mapped; 0 if it is not known.
  explicit OwnStackReader(uint64_t sp, uint64_t end = 0) : begin_(sys::PageOf(sp)), end_(end > sp ? end : begin_) {}

  // Reads the word at `address`. Returns false if it is not mapped.
  PERFKIT_IN_HANDLER bool Read(uint64_t address, uint64_t& word) const {
    if (!IsKnown(address, sizeof(word)) && !Extend(address, sizeof(word))) [[unlikely]]
      return ReadFar(address, word);
    word = sys::WordAt(address);
    return true;
  }

  // Returns the 1 to 8 bytes at `address` as a little-endian number, or nullopt if they are not mapped.
  PERFKIT_IN_HANDLER std::optional<uint64_t> ReadPart(uint64_t address, unsigned size) const {
    if (size == 0 || size > sizeof(uint64_t)) return std::nullopt;
    uint64_t value = 0;
    if (IsKnown(address, size) || Extend(address, size)) {
      for (unsigned i = size; i-- > 0;) value = value << 8 | reinterpret_cast<const uint8_t*>(address)[i];
      return value;
    }
    return !IsNear(address) && sys::CopyOwn(address, &value, size) ? std::optional(value) : std::nullopt;
  }

  // The walk has found a frame at `sp` by rules, not by a guess: from now on the stack continues there.
  void Settle(uint64_t sp) {
    if (!IsNear(sp)) begin_ = end_ = sys::PageOf(sp);
  }

  // As StackBytes::Missing. Never kTruncated: this is no copy.
  StackEnd Missing(uint64_t, bool) const { return StackEnd::kUnreadable; }
  bool Holds(uint64_t address) const { return address - begin_ < end_ - begin_; }
  static constexpr bool empty() { return false; }

 private:
  static constexpr uint64_t kNear = 16 * sys::kMinPage;

  bool IsKnown(uint64_t address, unsigned size) const {
    const uint64_t at = address - begin_, known = end_ - begin_;
    return known >= size && at <= known - size;
  }
  bool IsNear(uint64_t address) const { return address - begin_ < end_ - begin_ + kNear; }

  // Probes pages until all `size` bytes at `address` are known to be readable. Returns false if they are too far away.
  bool Extend(uint64_t address, unsigned size) const {
    const uint64_t last = address + size - 1;
    if (!IsNear(address) || last < address) return false;
    for (; end_ <= last; end_ += sys::kMinPage) {
      if (end_ + sys::kMinPage < end_ || !sys::CanRead(end_)) return false;
    }
    return true;
  }

  bool ReadFar(uint64_t address, uint64_t& word) const {
    return !IsNear(address) && sys::CopyOwn(address, &word, sizeof(word));
  }

  uint64_t begin_;
  mutable uint64_t end_;  // what is known grows as it is read
};                        // Grows as pages are probed.

}  // namespace perfkit::unwind
