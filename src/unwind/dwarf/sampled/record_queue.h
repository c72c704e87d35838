// A queue of records from one thread to another: a ring buffer of bytes with a fixed size.
//
//    tail_ <─ released by the consumer            head_ <─ written by the producer
//   ─────┴──[record]──[record]──[record]──[record]──┴──────   positions only increase; index = position % size
//
// A record is contiguous, so it can be read in place: if it does not fit before the end of the buffer, that rest is
// skipped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "perfkit/sampler_record.h"

namespace perfkit::unwind {

// One thread pushes, another one reads. Neither waits for the other, except in Wait.
class RecordQueue {
 public:
  // More than two records of the maximum size.
  static constexpr size_t kMinBytes = 256 << 10;

  explicit RecordQueue(size_t bytes);

  // For the producer. Copies a record. Returns false if there is no room, or if less than `spare` bytes would be left.
  bool Push(const SamplerRecord& record, size_t spare);
  // Returns the number of bytes that wait. The consumer may release some of them at the same time.
  size_t waiting_bytes() const { return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire); }
  size_t size_bytes() const { return size_; }

  // For the consumer. Returns the record at `position` and advances `position` beyond it, or returns nullopt if it is
  // not there yet. The record is valid until it is released.
  std::optional<SamplerRecord> At(uint64_t& position) const;
  // Frees the room of all records before `position`.
  void Release(uint64_t position) { tail_.store(position, std::memory_order_release); }

  // Wait returns once Wake or Push was called after `signal` was read.
  uint32_t signal() const { return signal_.load(std::memory_order_acquire); }
  void Wait(uint32_t signal) const { signal_.wait(signal, std::memory_order_acquire); }
  void Wake();

 private:
  // Before each record.
  struct Head {
    uint32_t bytes = 0;  // Including this head; a multiple of kAlign.
    uint32_t event = 0;
    uint64_t weight = 0, time_ns = 0;
    uint8_t skip = 0;  // There is no record: the next one is at the beginning of the buffer.
    uint8_t full_stack = 0, synthesized = 0, foreign = 0;
  };
  static constexpr size_t kAlign = 32;
  static_assert(sizeof(Head) <= kAlign);

  void Write(uint64_t position, const Head& head);

  const size_t size_;
  const std::unique_ptr<std::byte[]> bytes_;
  std::atomic<uint64_t> head_{0}, tail_{0};
  std::atomic<uint32_t> signal_{0};
};

}  // namespace perfkit::unwind
