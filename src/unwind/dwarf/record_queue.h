// Records on their way from one thread to another: a ring of bytes that is never longer than it was made.
//
//      tail_ <─ the consumer has done with these      head_ <─ the producer has written up to here
//   ─────┴──[record]──[record]──[record]──[record]──┴──────   positions only rise; index = position % size
//
// A record lies in one piece, so that it can be read where it is: what is too short for it at the end is skipped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "perfkit/sampler.h"

namespace perfkit::unwind {

// One thread gives, another one takes; neither waits for the other, except in Wait.
class RecordQueue {
 public:
  // More than two records of any size.
  static constexpr size_t kMinBytes = 256 << 10;

  explicit RecordQueue(size_t bytes);

  // The producer's. False: there is no room, or less than `spare` would be left.
  bool Push(const SamplerRecord& record, size_t spare);
  // How many bytes wait; the consumer may have taken some of them by now.
  size_t waiting_bytes() const { return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire); }
  size_t size_bytes() const { return size_; }

  // The consumer's: the record at `position`, which is moved past it; nullopt if none is there yet. Views live until
  // it is released.
  std::optional<SamplerRecord> At(uint64_t& position) const;
  void Release(uint64_t position) { tail_.store(position, std::memory_order_release); }

  // Wake ends a Wait whose `signal` was read before; so does Push.
  uint32_t signal() const { return signal_.load(std::memory_order_acquire); }
  void Wait(uint32_t signal) const { signal_.wait(signal, std::memory_order_acquire); }
  void Wake();

 private:
  struct Head {
    uint32_t bytes = 0;  // with this head, a multiple of kAlign
    uint32_t event = 0;
    uint8_t skip = 0;  // there is no record: the next one lies at the ring's begin
    uint8_t full_stack = 0, synthesized = 0;
  };
  static constexpr size_t kAlign = 16;
  static_assert(sizeof(Head) <= kAlign);

  void Write(uint64_t position, const Head& head);

  const size_t size_;
  const std::unique_ptr<std::byte[]> bytes_;
  std::atomic<uint64_t> head_{0}, tail_{0};
  std::atomic<uint32_t> signal_{0};
};

}  // namespace perfkit::unwind
