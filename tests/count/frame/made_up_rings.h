// Rings in ordinary memory, which a test writes as the kernel would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "src/count/frame/detail_ring.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {

// A ring of switches.
class MadeUpRing {
 public:
  explicit MadeUpRing(size_t records, uint64_t start = 0) : data_(records * kSwitchRecordBytes), head_(start) {}
  DetailRing view() const { return {data_, &head_}; }
  uint64_t head() const { return head_; }

  void Switch(bool out, bool preempted, uint64_t time_ns, uint32_t cpu) {
    const uint32_t misc = (out ? sys::kMiscSwitchOut : 0) | (preempted ? sys::kMiscSwitchOutPreempt : 0);
    Append(sys::kRecordSwitch | uint64_t{misc} << 32, 0, time_ns, cpu);
  }
  void Append(uint64_t header, uint64_t a, uint64_t b, uint64_t c, uint64_t size = kSwitchRecordBytes) {
    const uint64_t words[4] = {header | size << 48, a, b, c};
    std::memcpy(data_.data() + head_ % data_.size(), words, sizeof(words));
    head_ += sizeof(words);
  }
  std::vector<std::byte>& bytes() { return data_; }

 private:
  std::vector<std::byte> data_;
  uint64_t head_;
};

// The same of faults, backwards. A record may be larger than its fields.
class MadeUpFaults {
 public:
  explicit MadeUpFaults(size_t records, uint64_t start = 0) : data_(records * 64), head_(start) {}
  DetailRing view() const { return {data_, &head_}; }
  FaultMark mark() const { return MarkFaults(view()); }
  uint64_t count() const { return count_; }

  void Fault(uint64_t address, size_t size = kFaultRecordBytes) {
    Append(sys::kRecordSample | uint64_t{size} << 48, address, size);
  }
  void Append(uint64_t header, uint64_t address, size_t size) {
    const uint64_t words[5] = {header, 0x401000, 1, address, ++count_};
    const uint64_t at = head_ - size;
    for (size_t i = 0; i < std::size(words); ++i) {
      std::memcpy(data_.data() + (at + 8 * i) % data_.size(), &words[i], sizeof(words[i]));
    }
    head_ = at;
  }
  std::vector<std::byte>& bytes() { return data_; }

 private:
  std::vector<std::byte> data_;
  uint64_t head_, count_ = 0;
};

}  // namespace perfkit::count
