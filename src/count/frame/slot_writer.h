// Publishes a thread's snapshots in its slot, as totals that include those of the slot's earlier owners.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "perfkit/count.h"
#include "src/count/frame/slot_table.h"

namespace perfkit::count {

// For one thread at a time. Words: the value of each event, then the enabled and the running time of each event in
// `multiplexable`.
class SlotWriter {
 public:
  static size_t WordsFor(size_t events, uint32_t multiplexable) {
    return events + 2 * static_cast<size_t>(__builtin_popcount(multiplexable));
  }

  // Returns false if all slots are taken: no total then includes this thread.
  bool Claim(std::shared_ptr<SlotTable> table, size_t events, uint32_t multiplexable) {
    table_ = std::move(table);
    events_ = events;
    multiplexable_ = multiplexable;
    slot_ = table_->Claim();
    if (slot_ != SlotTable::kNoSlot) table_->Carry(slot_, words());
    return slot_ != SlotTable::kNoSlot;
  }
  void Release() {
    if (slot_ != SlotTable::kNoSlot) table_->Release(slot_);
    slot_ = SlotTable::kNoSlot;
  }

  // Adds what is counted from `now` on to what was published last. All arithmetic is modulo 2^64.
  void StartAt(const Snapshot& now) {
    const std::array<uint64_t, SlotTable::kMaxWords> published = words_;
    Fill(now, {});
    for (size_t w = 0; w < published.size(); ++w) offset_[w] = published[w] - words_[w];
    words_ = published;
  }

  void Publish(const Snapshot& now) noexcept {
    if (slot_ == SlotTable::kNoSlot) return;
    Fill(now, offset_);
    table_->Publish(slot_, words(), now.missing);
  }

 private:
  std::span<uint64_t> words() { return std::span(words_).first(WordsFor(events_, multiplexable_)); }

  void Fill(const Snapshot& now, const std::array<uint64_t, SlotTable::kMaxWords>& offset) noexcept {
    for (size_t i = 0; i < events_; ++i) words_[i] = now.values[i] + offset[i];
    size_t w = events_;
    for (uint32_t left = multiplexable_; left != 0; left &= left - 1, w += 2) {
      const Snapshot::Times& times = now.times[static_cast<size_t>(__builtin_ctz(left))];
      words_[w] = times.enabled_ns + offset[w];
      words_[w + 1] = times.running_ns + offset[w + 1];
    }
  }

  std::shared_ptr<SlotTable> table_;
  size_t events_ = 0;
  uint32_t multiplexable_ = 0;
  uint32_t slot_ = SlotTable::kNoSlot;
  std::array<uint64_t, SlotTable::kMaxWords> words_{};
  std::array<uint64_t, SlotTable::kMaxWords> offset_{};
};

}  // namespace perfkit::count
