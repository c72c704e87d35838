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

// Where the field at `at` ends that begins with a count of `item` bytes each and `extra` bytes besides.
inline uint32_t EndOfList(const std::byte* body, uint32_t at, uint32_t size, uint32_t item, uint32_t extra) noexcept {
  if (size - at < 8 + extra) return kNoEnd;
  const uint64_t count = Load<uint64_t>(body + at);
  if (count > (size - at - 8 - extra) / item) return kNoEnd;
  return at + 8 + extra + static_cast<uint32_t>(count) * item;
}

// Where the stack at `at` ends. The copied size stands behind the reserved one, unless that is 0.
inline uint32_t EndOfStack(const std::byte* body, uint32_t at, uint32_t size) noexcept {
  if (size - at < 8) return kNoEnd;
  const uint64_t reserved = Load<uint64_t>(body + at);
  if (reserved == 0) return at + 8;
  if (size - at < 16 || reserved > size - at - 16) return kNoEnd;
  const uint32_t end = at + 16 + static_cast<uint32_t>(reserved);
  return Load<uint64_t>(body + end - 8) <= reserved ? end : kNoEnd;
}

inline uint32_t EndOfRead(const std::byte* body, uint32_t at, uint32_t size, uint64_t format) noexcept {
  const uint32_t times = 8 * ReadTimeWords(format), value = 8 * ReadValueWords(format);
  if ((format & kReadGroup) != 0) return EndOfList(body, at, size, value, times);
  return size - at < times + value ? kNoEnd : at + times + value;
}

inline uint32_t EndOfRegisters(const std::byte* body, uint32_t at, uint32_t size, uint64_t mask) noexcept {
  if (size - at < 8) return kNoEnd;
  if (Load<uint64_t>(body + at) == 0) return at + 8;
  const uint32_t bytes = 8 + 8 * static_cast<uint32_t>(std::popcount(mask));
  return size - at < bytes ? kNoEnd : at + bytes;
}

// Where the field that begins at `at` ends, kNoEnd when it does not fit: at <= size < 2^16.
template <Shape kShape>
inline uint32_t EndOfField(const std::byte* body, uint32_t at, uint32_t size, const AttrBits& bits) noexcept {
  switch (kShape) {
    case Shape::kWord: return size - at < 8 ? kNoEnd : at + 8;
    case Shape::kRead: return EndOfRead(body, at, size, bits.read_format);
    case Shape::kWords: return EndOfList(body, at, size, 8, 0);
    case Shape::kBranches:
      return EndOfList(body, at, size, (bits.branch_sample_type & kBranchCounters) != 0 ? 32 : 24,
                       (bits.branch_sample_type & kBranchHwIndex) != 0 ? 8 : 0);
    case Shape::kRegsUser: return EndOfRegisters(body, at, size, bits.regs_user);
    case Shape::kRegsIntr: return EndOfRegisters(body, at, size, bits.regs_intr);
    case Shape::kStack: return EndOfStack(body, at, size);
    case Shape::kSized64: return EndOfList(body, at, size, 1, 0);
    case Shape::kSized32:
      if (size - at < 4 || Load<uint32_t>(body + at) > size - at - 4) return kNoEnd;
      return at + 4 + Load<uint32_t>(body + at);
  }
  return kNoEnd;
}

// The same, the shape known at run time only.
inline uint32_t EndOfField(Shape shape, const std::byte* body, uint32_t at, uint32_t size,
                           const AttrBits& bits) noexcept {
  switch (shape) {
    case Shape::kWord: return EndOfField<Shape::kWord>(body, at, size, bits);
    case Shape::kRead: return EndOfField<Shape::kRead>(body, at, size, bits);
    case Shape::kWords: return EndOfField<Shape::kWords>(body, at, size, bits);
    case Shape::kSized32: return EndOfField<Shape::kSized32>(body, at, size, bits);
    case Shape::kBranches: return EndOfField<Shape::kBranches>(body, at, size, bits);
    case Shape::kRegsUser: return EndOfField<Shape::kRegsUser>(body, at, size, bits);
    case Shape::kStack: return EndOfField<Shape::kStack>(body, at, size, bits);
    case Shape::kRegsIntr: return EndOfField<Shape::kRegsIntr>(body, at, size, bits);
    case Shape::kSized64: return EndOfField<Shape::kSized64>(body, at, size, bits);
  }
  return kNoEnd;
}

}  // namespace perfkit::detail
