// How the fields of a sample are written: which there are, in which order, and where each one ends.
//
// Not for inclusion: sample.h brings it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "perfkit/record.h"

namespace perfkit::detail {

// How a field is written. kWord: 8 bytes. kWords: u64 n, n words. kSized32, kSized64: a size, so many bytes.
enum class Shape : uint8_t { kWord, kRead, kWords, kSized32, kBranches, kRegsUser, kStack, kRegsIntr, kSized64 };

struct FieldRow {
  uint64_t bits;  // of sample_type; any of them means that it is there
  Shape shape;
  std::string_view name;
};

// THE table of fields, by Field.
inline constexpr std::array<FieldRow, kFieldCount> kFields = {{
    {kSampleIdentifier, Shape::kWord, "identifier"},
    {kSampleIp, Shape::kWord, "ip"},
    {kSampleTid, Shape::kWord, "tid"},
    {kSampleTime, Shape::kWord, "time"},
    {kSampleAddr, Shape::kWord, "addr"},
    {kSampleId, Shape::kWord, "id"},
    {kSampleStreamId, Shape::kWord, "stream_id"},
    {kSampleCpu, Shape::kWord, "cpu"},
    {kSamplePeriod, Shape::kWord, "period"},
    {kSampleRead, Shape::kRead, "read"},
    {kSampleCallchain, Shape::kWords, "callchain"},
    {kSampleRaw, Shape::kSized32, "raw"},
    {kSampleBranchStack, Shape::kBranches, "branch_stack"},
    {kSampleRegsUser, Shape::kRegsUser, "regs_user"},
    {kSampleStackUser, Shape::kStack, "stack_user"},
    {kSampleWeight | kSampleWeightStruct, Shape::kWord, "weight"},
    {kSampleDataSrc, Shape::kWord, "data_src"},
    {kSampleTransaction, Shape::kWord, "transaction"},
    {kSampleRegsIntr, Shape::kRegsIntr, "regs_intr"},
    {kSamplePhysAddr, Shape::kWord, "phys_addr"},
    {kSampleCgroup, Shape::kWord, "cgroup"},
    {kSampleDataPageSize, Shape::kWord, "data_page_size"},
    {kSampleCodePageSize, Shape::kWord, "code_page_size"},
    {kSampleAux, Shape::kSized64, "aux"},
}};

constexpr uint64_t FieldBit(Field field) { return uint64_t{1} << static_cast<unsigned>(field); }
// What the trailer of other records has of a sample (perf_event__output_id_sample), in its order.
inline constexpr std::array<Field, 6> kTrailer = {Field::kTid,      Field::kTime, Field::kId,
                                                  Field::kStreamId, Field::kCpu,  Field::kIdentifier};

inline constexpr size_t kFirstLate = static_cast<size_t>(Field::kRead);
inline constexpr uint32_t kNoEnd = 0;

// The words of READ before its values, and of each value.
constexpr uint32_t ReadTimeWords(uint64_t format) {
  return ((format & kReadTimeEnabled) != 0 ? 1 : 0) + ((format & kReadTimeRunning) != 0 ? 1 : 0);
}
constexpr uint32_t ReadValueWords(uint64_t format) {
  return 1 + ((format & kReadId) != 0 ? 1 : 0) + ((format & kReadLost) != 0 ? 1 : 0);
}

// What an attr makes of the sizes of fields, in bytes: worked out once for each layout.
struct FieldSizes {
  bool read_group = false;
  uint32_t read_extra = 0, read_item = 0;      // besides the values, and of each value
  uint32_t branch_extra = 0, branch_item = 0;  // after the count, and of each branch
  uint32_t user_registers = 0, intr_registers = 0;

  constexpr FieldSizes() = default;
  constexpr explicit FieldSizes(const AttrBits& bits)
      : read_group((bits.read_format & kReadGroup) != 0),
        read_extra(8 * ReadTimeWords(bits.read_format)),
        read_item(8 * ReadValueWords(bits.read_format)),
        branch_extra((bits.branch_sample_type & kBranchHwIndex) != 0 ? 8 : 0),
        branch_item((bits.branch_sample_type & kBranchCounters) != 0 ? 32 : 24),
        user_registers(8 * static_cast<uint32_t>(std::popcount(bits.regs_user))),
        intr_registers(8 * static_cast<uint32_t>(std::popcount(bits.regs_intr))) {}
};

// All of these: where the field ends that begins at `at`, kNoEnd when it does not fit; at <= size < 2^16.
//
// A count of `item` bytes each, and `extra` bytes besides.
inline uint32_t EndOfList(const std::byte* body, uint32_t at, uint32_t size, uint32_t item, uint32_t extra) noexcept {
  if (size - at < 8 + extra) return kNoEnd;
  const uint64_t count = Load<uint64_t>(body + at);
  const uint32_t left = size - at - 8 - extra;
  // No product that could overflow: more items than bytes there cannot be.
  if (count > left || count * item > left) return kNoEnd;
  return at + 8 + extra + static_cast<uint32_t>(count) * item;
}

// The same where the item is known, a power of two: one comparison less, in the commonest field of all.
template <uint32_t kItem>
inline uint32_t EndOfList(const std::byte* body, uint32_t at, uint32_t size) noexcept {
  if (size - at < 8) return kNoEnd;
  const uint64_t count = Load<uint64_t>(body + at);
  if (count > (size - at - 8) / kItem) [[unlikely]]
    return kNoEnd;
  return at + 8 + static_cast<uint32_t>(count) * kItem;
}

// The copied size stands behind the reserved one, unless that is 0.
inline uint32_t EndOfStack(const std::byte* body, uint32_t at, uint32_t size) noexcept {
  if (size - at < 8) return kNoEnd;
  const uint64_t reserved = Load<uint64_t>(body + at);
  if (reserved == 0) return at + 8;
  if (size - at < 16 || reserved > size - at - 16) return kNoEnd;
  const uint32_t end = at + 16 + static_cast<uint32_t>(reserved);
  return Load<uint64_t>(body + end - 8) <= reserved ? end : kNoEnd;
}

inline uint32_t EndOfRead(const std::byte* body, uint32_t at, uint32_t size, const FieldSizes& sizes) noexcept {
  if (sizes.read_group) return EndOfList(body, at, size, sizes.read_item, sizes.read_extra);
  return size - at < sizes.read_extra + sizes.read_item ? kNoEnd : at + sizes.read_extra + sizes.read_item;
}

inline uint32_t EndOfRegisters(const std::byte* body, uint32_t at, uint32_t size, uint32_t bytes) noexcept {
  if (size - at < 8) return kNoEnd;
  if (Load<uint64_t>(body + at) == 0) return at + 8;
  return size - at < 8 + bytes ? kNoEnd : at + 8 + bytes;
}

inline uint32_t EndOfSized32(const std::byte* body, uint32_t at, uint32_t size) noexcept {
  if (size - at < 4) return kNoEnd;
  const uint32_t bytes = Load<uint32_t>(body + at);
  return bytes > size - at - 4 ? kNoEnd : at + 4 + bytes;
}

__attribute__((always_inline)) inline uint32_t EndOfField(Shape shape, const std::byte* body, uint32_t at,
                                                          uint32_t size, const FieldSizes& sizes) noexcept {
  switch (shape) {
    case Shape::kWord: return size - at < 8 ? kNoEnd : at + 8;
    case Shape::kRead: return EndOfRead(body, at, size, sizes);
    case Shape::kWords: return EndOfList<8>(body, at, size);
    case Shape::kSized32: return EndOfSized32(body, at, size);
    case Shape::kBranches: return EndOfList(body, at, size, sizes.branch_item, sizes.branch_extra);
    case Shape::kRegsUser: return EndOfRegisters(body, at, size, sizes.user_registers);
    case Shape::kStack: return EndOfStack(body, at, size);
    case Shape::kRegsIntr: return EndOfRegisters(body, at, size, sizes.intr_registers);
    case Shape::kSized64: return EndOfList<1>(body, at, size);
  }
  return kNoEnd;
}

}  // namespace perfkit::detail
