// Reads the numbers of DWARF, one behind the other, from bytes that nobody vouches for.
//
// A read that would reach past the end gives 0, moves to the end and is remembered: a loop over such a reader ends, and
// asks once, afterwards, whether all was well. That is less to write, and faster, than an optional for each operand.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/base/cursor.h"

namespace perfkit::unwind {

class ByteReader {
 public:
  explicit ByteReader(base::Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  bool failed() const { return failed_; }
  const std::byte* at() const { return at_; }

  template <class T>
  T Fixed() {
    T value{};
    if (!Has(sizeof(T))) return value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // LEB128 (DWARF 5, 7.6): seven bits a byte, lowest first. Bits above the 64th are read and dropped.
  uint64_t Uleb() {
    unsigned bits = 0;
    return Leb(bits);
  }
  int64_t Sleb() {
    unsigned bits = 0;
    uint64_t value = Leb(bits);
    if (bits < 64 && (value >> (bits - 1) & 1) != 0) value |= ~uint64_t{0} << bits;
    return static_cast<int64_t>(value);
  }

  base::Bytes Block(uint64_t size) {
    if (!Has(size)) return {};
    const base::Bytes block(at_, size);
    at_ += size;
    return block;
  }

 private:
  bool Has(uint64_t size) {
    if (size <= static_cast<uint64_t>(end_ - at_)) return true;
    at_ = end_;
    failed_ = true;
    return false;
  }

  // `bits`: how many the number had, at least 1.
  uint64_t Leb(unsigned& bits) {
    uint64_t value = 0;
    for (bits = 0;;) {
      const auto byte = Fixed<uint8_t>();
      if (bits < 64) value |= uint64_t{byte & 0x7fu} << bits;
      bits += 7;
      if ((byte & 0x80) == 0) return value;
    }
  }

  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

}  // namespace perfkit::unwind
