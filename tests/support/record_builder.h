// Writes records as the kernel does, field by field, and rings in ordinary memory that contain them.
//
// The order of a sample's fields is repeated here on purpose, as the calls of perf_output_sample (kernel/events/core.c)
// in their order: so a mistake in the library's table is found.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/sample.h"

namespace perfkit::testing {

// Bytes, appended.
class RecordBuilder {
 public:
  template <class T>
  RecordBuilder& Add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  RecordBuilder& U16(uint64_t value) { return Add(static_cast<uint16_t>(value)); }
  RecordBuilder& U32(uint64_t value) { return Add(static_cast<uint32_t>(value)); }
  RecordBuilder& U64(uint64_t value) { return Add(value); }
  RecordBuilder& Raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  RecordBuilder& Words64(const std::vector<uint64_t>& words) {
    for (const uint64_t word : words) U64(word);
    return *this;
  }
  // With its NUL, padded to words.
  RecordBuilder& Text(std::string_view text) {
    bytes_ += text;
    bytes_ += '\0';
    return Pad();
  }
  RecordBuilder& Pad() {
    bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
    return *this;
  }
  // Returns the whole record: a header, then all of the above.
  std::string Finish(RecordType type, uint16_t misc = 0) const { return Finish(static_cast<uint32_t>(type), misc); }
  std::string Finish(uint32_t type, uint16_t misc) const {
    RecordBuilder header;
    header.U32(type).U16(misc).U16(bytes_.size() + 8);
    return header.bytes_ + bytes_;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The contents of a sample. Counts and lengths follow from them.
struct SampleValues {
  uint64_t identifier = 0x1d, ip = 0x401000, time = 123'456'789, addr = 0x7f00, id = 0x2d, stream_id = 0x3d,
           period = 99;
  uint32_t pid = 4711, tid = 4712, cpu = 3;
  uint64_t time_enabled = 1000, time_running = 900;
  std::vector<uint64_t> read_values = {7};  // With ids 100 + i and lost 200 + i.
  std::vector<uint64_t> chain = {~uint64_t{511}, 0x401000, 0x402000};
  std::string raw = std::string("tracepoint!!", 12);  // 4 + size is a multiple of 8.
  std::vector<Branch> branches = {{1, 2, 3}, {4, 5, 6}};
  uint64_t hw_index = 5;
  uint64_t user_abi = 2, intr_abi = 2;  // Register i of a mask is 1000 + i, or 2000 + i.
  std::string stack = std::string(24, 's');
  uint64_t stack_copied = 17;
  uint64_t weight = 11, data_src = 12, transaction = 13, phys_addr = 14, cgroup = 15, data_page = 4096,
           code_page = 8192;
  std::string aux = std::string(16, 'a');
  uint16_t misc = 2;
};

inline void AddRead(RecordBuilder& out, uint64_t format, const SampleValues& values) {
  const bool group = (format & kReadGroup) != 0;
  if (group) out.U64(values.read_values.size());
  if (!group) out.U64(values.read_values.at(0));
  if ((format & kReadTimeEnabled) != 0) out.U64(values.time_enabled);
  if ((format & kReadTimeRunning) != 0) out.U64(values.time_running);
  for (size_t i = 0; i < (group ? values.read_values.size() : 1); ++i) {
    if (group) out.U64(values.read_values[i]);
    if ((format & kReadId) != 0) out.U64(100 + i);
    if ((format & kReadLost) != 0) out.U64(200 + i);
  }
}

inline void AddRegisters(RecordBuilder& out, uint64_t abi, uint64_t mask, uint64_t base) {
  out.U64(abi);
  for (uint64_t i = 0; abi != 0 && i < 64; ++i) {
    if ((mask >> i & 1) != 0) out.U64(base + i);
  }
}

inline void AddBranches(RecordBuilder& out, const AttrBits& bits, const SampleValues& values) {
  out.U64(values.branches.size());
  if ((bits.branch_sample_type & kBranchHwIndex) != 0) out.U64(values.hw_index);
  for (const Branch& branch : values.branches) out.U64(branch.from).U64(branch.to).U64(branch.flags);
  if ((bits.branch_sample_type & kBranchCounters) == 0) return;
  for (size_t i = 0; i < values.branches.size(); ++i) out.U64(300 + i);
}

inline void AddStack(RecordBuilder& out, const SampleValues& values) {
  out.U64(values.stack.size());
  if (!values.stack.empty()) out.Raw(values.stack).U64(values.stack_copied);
}

// Returns a PERF_RECORD_SAMPLE of an event with these bits.
inline std::string BuildSample(const AttrBits& bits, const SampleValues& values = {}) {
  RecordBuilder out;
  const auto has = [&](uint64_t bit) { return (bits.sample_type & bit) != 0; };
  if (has(1 << 16)) out.U64(values.identifier);
  if (has(1 << 0)) out.U64(values.ip);
  if (has(1 << 1)) out.U32(values.pid).U32(values.tid);
  if (has(1 << 2)) out.U64(values.time);
  if (has(1 << 3)) out.U64(values.addr);
  if (has(1 << 6)) out.U64(values.id);
  if (has(1 << 9)) out.U64(values.stream_id);
  if (has(1 << 7)) out.U32(values.cpu).U32(0);
  if (has(1 << 8)) out.U64(values.period);
  if (has(1 << 4)) AddRead(out, bits.read_format, values);
  if (has(1 << 5)) out.U64(values.chain.size()).Words64(values.chain);
  if (has(1 << 10)) out.U32(values.raw.size()).Raw(values.raw);
  if (has(1 << 11)) AddBranches(out, bits, values);
  if (has(1 << 12)) AddRegisters(out, values.user_abi, bits.regs_user, 1000);
  if (has(1 << 13)) AddStack(out, values);
  if (has(1 << 14 | 1 << 24)) out.U64(values.weight);
  if (has(1 << 15)) out.U64(values.data_src);
  if (has(1 << 17)) out.U64(values.transaction);
  if (has(1 << 18)) AddRegisters(out, values.intr_abi, bits.regs_intr, 2000);
  if (has(1 << 19)) out.U64(values.phys_addr);
  if (has(1 << 21)) out.U64(values.cgroup);
  if (has(1 << 22)) out.U64(values.data_page);
  if (has(1 << 23)) out.U64(values.code_page);
  if (has(1 << 20)) out.U64(values.aux.size()).Raw(values.aux);
  return out.Finish(RecordType::kSample, values.misc);
}

// Appends the trailer that sample_id_all adds to all other records (perf_event__output_id_sample).
inline void AddTrailer(RecordBuilder& out, const AttrBits& bits, const SampleValues& values = {}) {
  if (!bits.sample_id_all) return;
  const auto has = [&](uint64_t bit) { return (bits.sample_type & bit) != 0; };
  if (has(1 << 1)) out.U32(values.pid).U32(values.tid);
  if (has(1 << 2)) out.U64(values.time);
  if (has(1 << 6)) out.U64(values.id);
  if (has(1 << 9)) out.U64(values.stream_id);
  if (has(1 << 7)) out.U32(values.cpu).U32(0);
  if (has(1 << 16)) out.U64(values.identifier);
}

// Returns a view of a whole record; `bytes` must outlive it and begin with a header.
inline RawRecord AsRecord(std::string_view bytes) {
  RawRecord record;
  const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
  std::memcpy(&record.type, data, sizeof(record.type));
  std::memcpy(&record.misc, data + 4, sizeof(record.misc));
  record.size = static_cast<uint16_t>(bytes.size());
  record.data = data;
  return record;
}

// A ring in ordinary memory, with the kernel's half of the protocol. Page and data are allocated to the byte, so that a
// sanitizer detects a read outside.
class MemoryRing {
 public:
  // The data area is `size` bytes, a power of two; positions begin at `start`.
  explicit MemoryRing(size_t size, uint64_t start = 0) : page_(1), data_(size) {
    page().data_size = size;
    page().data_head = page().data_tail = start;
  }

  UserPage& page() { return page_[0]; }
  Bytes data() const { return data_; }
  std::vector<std::byte>& bytes() { return data_; }

  // Writes as a streaming event does: returns false, and writes nothing, if there is no room.
  bool Write(std::string_view record) {
    const uint64_t head = page().data_head;
    const uint64_t tail = __atomic_load_n(&page().data_tail, __ATOMIC_ACQUIRE);
    if (head + record.size() - tail > data_.size()) return false;
    Put(head, record);
    __atomic_store_n(&page().data_head, head + record.size(), __ATOMIC_RELEASE);
    return true;
  }
  // Writes as an event with write_backward does: always.
  void WriteBackward(std::string_view record) {
    const uint64_t head = page().data_head - record.size();
    Put(head, record);
    __atomic_store_n(&page().data_head, head, __ATOMIC_RELEASE);
  }
  void Put(uint64_t at, std::string_view bytes) {
    for (const char byte : bytes) data_[at++ & (data_.size() - 1)] = static_cast<std::byte>(byte);
  }

 private:
  std::vector<UserPage> page_;
  std::vector<std::byte> data_;
};

inline std::string Text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace perfkit::testing
