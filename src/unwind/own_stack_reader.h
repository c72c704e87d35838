// The stack of the thread that runs, read where it is: nothing is copied, and no read can fault.
//
// What lies above sp is the thread's for as long as this runs, but nobody says how far up: the top of a stack is known
// to whoever made it, and a list of mappings is old as soon as it is made. So each page is asked for once, when the
// first word of it is read, from sp on upwards; but for a stack that is known to be there while its thread runs.
//
//   begin_ (sp's page)          end_
//      ├────── known ────────────┤── asked for when needed, up to kNear ──┤── copied by the kernel ── …
//
// A word further up is at the other end of a large array, on another stack (a handler's that was interrupted), or a
// damaged CFA has led there, to memory that another thread may be unmapping: the kernel copies those, until a frame
// there has turned out to be one (Settle).
#pragma once

#include <cstdint>
#include <optional>

#include "perfkit/unwinder.h"
#include "src/sys/own_memory.h"

namespace perfkit::unwind {

// The same as StackBytes. For one walk.
class OwnStackReader {
 public:
  // `end`: up to where all is known to be there, if it is.
  explicit OwnStackReader(uint64_t sp, uint64_t end = 0) : begin_(sys::PageOf(sp)), end_(end > sp ? end : begin_) {}

  PERFKIT_IN_HANDLER bool Read(uint64_t address, uint64_t& word) const {
    if (!IsKnown(address, sizeof(word)) && !Extend(address, sizeof(word))) [[unlikely]]
      return ReadFar(address, word);
    word = sys::WordAt(address);
    return true;
  }

  PERFKIT_IN_HANDLER std::optional<uint64_t> ReadPart(uint64_t address, unsigned size) const {
    if (size == 0 || size > sizeof(uint64_t)) return std::nullopt;
    uint64_t value = 0;
    if (IsKnown(address, size) || Extend(address, size)) {
      for (unsigned i = size; i-- > 0;) value = value << 8 | reinterpret_cast<const uint8_t*>(address)[i];
      return value;
    }
    return !IsNear(address) && sys::CopyOwn(address, &value, size) ? std::optional(value) : std::nullopt;
  }

  // The walk has found a frame at `sp`, by rules that vouch for it: the stack goes on from there.
  void Settle(uint64_t sp) {
    if (!IsNear(sp)) begin_ = end_ = sys::PageOf(sp);
  }

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
};

}  // namespace perfkit::unwind
