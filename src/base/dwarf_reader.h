// Reads the numbers of DWARF, one after the other, from bytes that may be damaged or hostile.
//
// A read past the end returns 0 or an empty text, moves to the end and sets a flag. So a loop over a reader ends, and
// its caller checks ok() once afterwards. That is shorter and faster than an optional for each operand.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "src/base/cursor.h"

namespace perfkit::base {

class DwarfReader {
 public:
  explicit DwarfReader(Bytes bytes, uint64_t at = 0) : bytes_(bytes), at_(at) {
    if (at > bytes.size()) Fail();
  }

  bool ok() const { return ok_; }
  bool done() const { return at_ >= bytes_.size(); }
  uint64_t at() const { return at_; }
  // The bytes that have not been read yet.
  Bytes rest() const { return bytes_.subspan(at_); }
  // Drops all bytes from `end` on.
  void EndAt(uint64_t end) {
    if (end < bytes_.size()) bytes_ = bytes_.first(end);
    if (at_ > bytes_.size()) Fail();
  }

  template <class T>
  T Fixed() {
    T value{};
    if (sizeof(T) > bytes_.size() - at_) return Fail(), value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint8_t U8() { return Fixed<uint8_t>(); }
  uint16_t U16() { return Fixed<uint16_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }

  // Reads a number of 1, 2, 3, 4 or 8 bytes.
  uint64_t Sized(uint32_t size) {
    switch (size) {
      case 1: return U8();
      case 2: return U16();
      case 3: {
        const uint64_t low = U16();
        return low | uint64_t{U8()} << 16;
      }
      case 4: return U32();
      case 8: return U64();
      default: return Fail(), 0;
    }
  }

  // Reads LEB128 (DWARF 5, 7.6): seven bits a byte, the lowest first, the top bit set on all bytes but the last. Bits
  // beyond the 64th are read and dropped.
  uint64_t Uleb() {
    if (at_ < bytes_.size() && static_cast<uint8_t>(bytes_[at_]) < 0x80) return static_cast<uint8_t>(bytes_[at_++]);
    uint64_t bits = 0;
    return Leb(bits);
  }
  int64_t Sleb() {
    uint64_t bits = 0;
    uint64_t value = Leb(bits);
    if (bits < 64 && (value >> (bits - 1) & 1) != 0) value |= ~uint64_t{0} << bits;
    return static_cast<int64_t>(value);
  }

  Bytes Block(uint64_t size) {
    const uint64_t begin = at_;
    Skip(size);
    return ok_ ? bytes_.subspan(begin, size) : Bytes();
  }
  void Skip(uint64_t size) {
    if (size > bytes_.size() - at_) return Fail();
    at_ += size;
  }

  // Reads a text that ends with a NUL.
  std::string_view Text() {
    const auto text = TextAt(bytes_, at_);
    if (!text) return Fail(), std::string_view();
    at_ += text->size() + 1;
    return *text;
  }

  // Reads the length that begins each unit (DWARF 5, 7.4): 4 bytes, or 0xffffffff and 8 bytes. Sets `offset_bytes` to
  // the size of the unit's offsets.
  uint64_t InitialLength(uint32_t* offset_bytes) {
    const uint64_t length = U32();
    *offset_bytes = length == 0xffffffff ? 8 : 4;
    return length == 0xffffffff ? U64() : length;
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

  // `bits` becomes the number of bits that were read: at least 7, or at least 64 if the number ends too early, so that
  // its sign is not extended.
  uint64_t Leb(uint64_t& bits) {
    uint64_t value = 0;
    for (bits = 0; at_ < bytes_.size();) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (bits < 64) value |= uint64_t{byte & 0x7fu} << bits;
      bits += 7;
      if (byte < 0x80) return value;
    }
    bits = 64;
    return Fail(), 0;
  }

  Bytes bytes_;
  uint64_t at_;
  bool ok_ = true;
};

}  // namespace perfkit::base
