// The two sides of the ring: the writer and the reader.
#include "src/count/frame/record_ring.h"

#include "perfkit/detail/user_page.h"

namespace perfkit::count {
namespace {

uint64_t HeaderOf(ZoneRecordKind kind, size_t words, uint16_t id, uint32_t missing) {
  return static_cast<uint64_t>(kind) | uint64_t{words} << 8 | uint64_t{id} << 16 | uint64_t{missing} << 32;
}

}  // namespace

RecordRing::RecordRing(size_t max_words)
    : max_words_(max_words), ring_(std::make_unique_for_overwrite<uint64_t[]>(max_words)) {
  record_.reserve(kMaxWordsARecord);
}

void RecordRing::Start(uint64_t epoch) noexcept {
  tail_.store(head_.load(std::memory_order_acquire), std::memory_order_release);  // pair with Write and HasRoom
  epoch_.store(epoch, std::memory_order_release);                                 // pairs with epoch()
}

RecordRing::Loss RecordRing::CurrentLoss() const {
  const uint64_t records = lost_.load(std::memory_order_acquire);
  return {lost_from_ticks_.load(std::memory_order_relaxed), records, lost_end_ticks_.load(std::memory_order_relaxed)};
}

bool RecordRing::HasRoom(size_t words) const noexcept {
  const uint64_t used =
      head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);  // pairs with Read
  return words <= max_words_ - used;
}

bool RecordRing::Write(ZoneRecordKind kind, uint16_t id, uint32_t missing, std::span<const uint64_t> words,
                       uint64_t ticks) noexcept {
  const uint64_t lost = lost_.load(std::memory_order_relaxed);
  // After a loss nothing is written until WriteGap: a record in the middle of a gap would look as if none were missing
  // before it.
  if (lost != 0 || !HasRoom(1 + words.size())) {
    if (lost == 0) lost_from_ticks_.store(ticks, std::memory_order_relaxed);
    lost_.store(lost + 1, std::memory_order_release);
    return false;
  }
  uint64_t head = head_.load(std::memory_order_relaxed);
  ring_[head++ & (max_words_ - 1)] = HeaderOf(kind, words.size(), id, missing);
  for (const uint64_t word : words) ring_[head++ & (max_words_ - 1)] = word;
  head_.store(head, std::memory_order_release);  // pairs with the acquire in Read
  return true;
}

// Forgets the losses of the previous epoch, which do not concern this reader. Start has emptied the ring.
bool RecordRing::Begin(uint16_t id, std::span<const uint64_t> epoch_and_more) noexcept {
  lost_.store(0, std::memory_order_relaxed);
  lost_end_ticks_.store(0, std::memory_order_relaxed);
  if (!Write(ZoneRecordKind::kBegin, id, 0, epoch_and_more, 0)) return false;
  current_ = epoch_and_more[0];
  return true;
}

void RecordRing::WriteGap() noexcept {
  const uint64_t words[] = {lost_from_ticks_.load(std::memory_order_relaxed), ReadTicks(),
                            lost_.load(std::memory_order_relaxed)};
  lost_.store(0, std::memory_order_relaxed);
  Write(ZoneRecordKind::kGap, 0, 0, words, words[1]);
}

void RecordRing::WriteEnd(uint64_t ticks) noexcept {
  if (Write(ZoneRecordKind::kEnd, 0, 0, std::span(&ticks, 1), ticks)) return;
  lost_end_ticks_.store(ticks, std::memory_order_relaxed);
  lost_.store(lost_.load(std::memory_order_relaxed), std::memory_order_release);  // pairs with CurrentLoss
}

void RecordRing::Read(uint64_t epoch, absl::FunctionRef<void(const ZoneRecord& record)> visit) {
  const uint64_t head = head_.load(std::memory_order_acquire);  // pairs with Write
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  while (tail != head) {
    const uint64_t header = ring_[tail++ & (max_words_ - 1)];
    record_.clear();
    for (uint64_t left = header >> 8 & 0xff; left != 0; --left) record_.push_back(ring_[tail++ & (max_words_ - 1)]);
    tail_.store(tail, std::memory_order_release);  // pairs with HasRoom
    const auto kind = static_cast<ZoneRecordKind>(header & 0xff);
    if (kind == ZoneRecordKind::kBegin) reading_ = record_[0];
    if (reading_ != epoch) continue;
    visit({.kind = kind,
           .id = static_cast<uint16_t>(header >> 16),
           .missing = static_cast<uint32_t>(header >> 32),
           .words = record_});
  }
}

}  // namespace perfkit::count
