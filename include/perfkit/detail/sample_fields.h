// The layout of samples: the fields, their order, and where each one ends. Included by sample.h; do not include it
// directly.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "perfkit/record.h"

namespace perfkit::detail {

struct FieldRow {
  uint64_t bits;  // Of sample_type; the field exists if any of them is set.
  std::string_view name;
};

// The table of all fields, indexed by Field.
inline constexpr std::array<FieldRow, kFieldCount> kFields = {{
    {kSampleIdentifier, "identifier"},
    {kSampleIp, "ip"},
    {kSampleTid, "tid"},
    {kSampleTime, "time"},
    {kSampleAddr, "addr"},
    {kSampleId, "id"},
    {kSampleStreamId, "stream_id"},
    {kSampleCpu, "cpu"},
    {kSamplePeriod, "period"},
    {kSampleRead, "read"},
    {kSampleCallchain, "callchain"},
    {kSampleRaw, "raw"},
    {kSampleBranchStack, "branch_stack"},
    {kSampleRegsUser, "regs_user"},
    {kSampleStackUser, "stack_user"},
    {kSampleWeight | kSampleWeightStruct, "weight"},
    {kSampleDataSrc, "data_src"},
    {kSampleTransaction, "transaction"},
    {kSampleRegsIntr, "regs_intr"},
    {kSamplePhysAddr, "phys_addr"},
    {kSampleCgroup, "cgroup"},
    {kSampleDataPageSize, "data_page_size"},
    {kSampleCodePageSize, "code_page_size"},
    {kSampleAux, "aux"},
}};

constexpr uint64_t FieldBit(Field field) { return uint64_t{1} << static_cast<unsigned>(field); }
// The fields of the trailer of records other than samples, in the order of perf_event__output_id_sample
// (kernel/events/core.c).
inline constexpr std::array<Field, 6> kTrailer = {Field::kTid,      Field::kTime, Field::kId,
                                                  Field::kStreamId, Field::kCpu,  Field::kIdentifier};

inline constexpr size_t kFirstLate = static_cast<size_t>(Field::kRead);

// The number of words of kRead for times, and of those for each value.
constexpr uint32_t ReadTimeWords(uint64_t format) {
  return ((format & kReadTimeEnabled) != 0 ? 1u : 0u) + ((format & kReadTimeRunning) != 0 ? 1u : 0u);
}
constexpr uint32_t ReadValueWords(uint64_t format) {
  return 1u + ((format & kReadId) != 0 ? 1u : 0u) + ((format & kReadLost) != 0 ? 1u : 0u);
}

// The layout of one field from kRead on. kFixed: a constant size. kWords: u64 n, then n words. kList: a constant part
// that begins with u64 n, then n items of `item_bytes`. kSized32: u32 n, then n bytes. kRegisters: u64 abi; then,
// unless it is 0, `item_bytes`. kStack: u64 n; then, unless it is 0, n bytes and a u64, the number of them that were
// copied.
enum class Shape : uint8_t { kFixed, kWords, kList, kSized32, kRegisters, kStack };

// A field from kRead on in one layout. Sizes are in bytes.
struct Step {
  Field field = Field::kRead;
  Shape shape = Shape::kFixed;
  uint16_t min_bytes = 8;   // The size if all counts are 0.
  uint32_t item_bytes = 0;  // kList: the size of an item. kRegisters: the size of all registers.
};

constexpr uint32_t RegisterBytes(uint64_t mask) { return 8 * static_cast<uint32_t>(std::popcount(mask)); }

constexpr Step StepOf(Field field, const AttrBits& bits) {
  const auto times = static_cast<uint16_t>(8 * ReadTimeWords(bits.read_format));
  const auto value = static_cast<uint16_t>(8 * ReadValueWords(bits.read_format));
  const uint16_t hw_index = (bits.branch_sample_type & kBranchHwIndex) != 0 ? 8 : 0;
  const uint32_t branch = (bits.branch_sample_type & kBranchCounters) != 0 ? 32 : 24;
  switch (field) {
    case Field::kRead:
      if ((bits.read_format & kReadGroup) != 0) return {field, Shape::kList, static_cast<uint16_t>(8 + times), value};
      return {field, Shape::kFixed, static_cast<uint16_t>(times + value)};
    case Field::kCallchain: return {field, Shape::kWords};
    case Field::kRaw: return {field, Shape::kSized32, 4};
    case Field::kBranchStack: return {field, Shape::kList, static_cast<uint16_t>(8 + hw_index), branch};
    case Field::kRegsUser: return {field, Shape::kRegisters, 8, RegisterBytes(bits.regs_user)};
    case Field::kStackUser: return {field, Shape::kStack};
    case Field::kRegsIntr: return {field, Shape::kRegisters, 8, RegisterBytes(bits.regs_intr)};
    case Field::kAux: return {field, Shape::kList, 8, 1};
    default: return {field};
  }
}

// Advances `at` from the beginning of a field to its end. `spare` is the number of bytes by which the record exceeds
// the minimum size of all its fields, so comparing the variable part of each field with it is enough. Returns false if
// the field does not fit.
__attribute__((always_inline)) inline bool Skip(const Step& step, const std::byte* body, uint32_t& at,
                                                uint32_t& spare) noexcept {
  const std::byte* const from = body + at;
  uint64_t bytes = 0;  // Bytes beyond the minimum.
  at += step.min_bytes;
  switch (step.shape) {
    case Shape::kFixed: return true;
    case Shape::kWords:
      bytes = Load<uint64_t>(from);
      if (bytes > spare / 8) return false;
      bytes *= 8;
      break;
    case Shape::kList:
      bytes = Load<uint64_t>(from);
      if (bytes > spare) return false;  // Else the product might overflow.
      bytes *= step.item_bytes;
      if (bytes > spare) return false;
      break;
    case Shape::kSized32:
      bytes = Load<uint32_t>(from);
      if (bytes > spare) return false;
      break;
    case Shape::kRegisters:
      if (Load<uint64_t>(from) == 0) return true;
      bytes = step.item_bytes;
      if (bytes > spare) return false;
      break;
    case Shape::kStack: {
      const uint64_t reserved = Load<uint64_t>(from);
      if (reserved == 0) return true;
      if (reserved > spare || reserved + 8 > spare) return false;
      bytes = reserved + 8;
      if (Load<uint64_t>(from + bytes) > reserved) return false;
      break;
    }
  }
  at += static_cast<uint32_t>(bytes);
  spare -= static_cast<uint32_t>(bytes);
  return true;
}

}  // namespace perfkit::detail
