// Copies records into the ring buffer, and finds them there. A record never wraps: if the end of the buffer is too
// near, the rest of it is skipped, and marked so, because readers want views of contiguous bytes.
#include "src/unwind/dwarf/sampled/record_queue.h"

#include <algorithm>
#include <cstring>

namespace perfkit::unwind {

RecordQueue::RecordQueue(size_t bytes)
    : size_(std::max(bytes, kMinBytes) / kAlign * kAlign), bytes_(std::make_unique_for_overwrite<std::byte[]>(size_)) {}

void RecordQueue::Write(uint64_t position, const Head& head) {
  std::memcpy(bytes_.get() + position % size_, &head, sizeof(head));
}

bool RecordQueue::Push(const SamplerRecord& record, size_t spare) {
  uint64_t position = head_.load(std::memory_order_relaxed);
  const size_t bytes = (kAlign + record.size + kAlign - 1) / kAlign * kAlign;
  const size_t to_end = size_ - position % size_;
  const size_t skipped = bytes > to_end ? to_end : 0;
  // Acquire pairs with the release of tail_ in Release: the reader is done with the bytes before it.
  const size_t used = position - tail_.load(std::memory_order_acquire);
  if (used + skipped + bytes + spare > size_) return false;
  if (skipped > 0) Write(position, {.bytes = static_cast<uint32_t>(skipped), .skip = 1});
  position += skipped;
  Write(position, {.bytes = static_cast<uint32_t>(bytes),
                   .event = record.event,
                   .weight = record.weight,
                   .time_ns = record.time_ns,
                   .full_stack = record.full_stack,
                   .synthesized = record.synthesized,
                   .foreign = record.foreign});
  std::memcpy(bytes_.get() + position % size_ + kAlign, record.data, record.size);
  // Release pairs with the acquire in At: the record is complete.
  head_.store(position + bytes, std::memory_order_release);
  Wake();
  return true;
}

void RecordQueue::Wake() {
  // A waiter compares the number that it read before it looked at the queue: a push in between is not missed.
  signal_.fetch_add(1, std::memory_order_release);
  signal_.notify_one();
}

std::optional<SamplerRecord> RecordQueue::At(uint64_t& position) const {
  while (position != head_.load(std::memory_order_acquire)) {
    const std::byte* const at = bytes_.get() + position % size_;
    Head head;
    std::memcpy(&head, at, sizeof(head));
    position += head.bytes;
    if (head.skip != 0) continue;
    RawRecord raw;
    LinearReader(Bytes(at, head.bytes).subspan(kAlign)).Next(raw);
    return SamplerRecord{raw,         head.event,  head.synthesized != 0, head.full_stack != 0, head.foreign != 0,
                         head.weight, head.time_ns};
  }
  return std::nullopt;
}

}  // namespace perfkit::unwind
