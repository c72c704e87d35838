// A log of what one thread does: written by that thread while a reader listens, read by another one.
//
// A ring of words with one writer and one reader. A record is a header (kind, words, id, missing) and its words. It
// becomes visible as a whole, by the store of head_. zone_log.h has the words of each kind for zones and frames,
// task_log.h those for tasks. These kinds are common to both:
//
//   kBegin (epoch, …)         the log of one recording begins
//   kGap   (from, to, lost)   no room for `lost` records from `from` to `to`: the state before is no longer valid
//   kEnd   (ticks)            the thread is no longer attached
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/count.h"

namespace perfkit::count {

enum class ZoneRecordKind : uint8_t { kBegin, kEnter, kLeave, kAbandon, kFrame, kHitch, kReason, kState, kGap, kEnd, kTask };

// A record, without its header.
struct ZoneRecord {
  ZoneRecordKind kind = ZoneRecordKind::kBegin;
  // kEnter: the zone; kFrame: the sequence of frames; kHitch, kReason, kState: bytes of text; kTask: the node
  uint16_t id = 0;
  // kFrame: as FrameRecord::missing, and values that are too low; kReason, kState: FrameText; kTask: AwaitChains
  uint32_t missing = 0;
  std::span<const uint64_t> words;

  std::string_view text() const { return {reinterpret_cast<const char*>(words.data() + 1), id}; }
};

class RecordRing {
 public:
  // `max_words` is a power of two. Pages that are never written cost no memory.
  explicit RecordRing(size_t max_words);

  // Reader: drops the records that it has not read. The writer begins a new log, for this epoch, with its next record.
  // 0 means that there is no reader any more.
  void Start(uint64_t epoch) noexcept;
  // Reader: visits the records of its epoch, oldest first. Views are valid until visit returns.
  void Read(uint64_t epoch, absl::FunctionRef<void(const ZoneRecord& record)> visit);

  // Reader: the number of records lost since the last kGap, and the time of the first one. `to_ticks`: the time at
  // which the thread was detached, if its kEnd was lost, too; otherwise 0.
  struct Loss {
    uint64_t from_ticks = 0, records = 0, to_ticks = 0;
  };
  Loss CurrentLoss() const;

 protected:
  // Words of the largest record, with its header.
  static constexpr size_t kMaxWordsARecord = 1 + 3 + kMaxEvents + 32;
  ~RecordRing() = default;

  // For the writer. None allocates.

  // Returns the reader's epoch; 0 if there is no reader.
  uint64_t epoch() const noexcept { return epoch_.load(std::memory_order_acquire); }  // pairs with Start
  // Returns true if the log of this epoch has begun.
  bool has_begun(uint64_t epoch) const noexcept { return epoch == current_; }
  // Begins the log. Returns false if there is no room.
  bool Begin(uint16_t id, std::span<const uint64_t> epoch_and_more) noexcept;
  // Returns false if there is no room, and counts the record as lost. After a loss nothing is written until WriteGap.
  bool Write(ZoneRecordKind kind, uint16_t id, uint32_t missing, std::span<const uint64_t> words,
             uint64_t ticks) noexcept;
  bool HasRoom(size_t words) const noexcept;
  bool has_lost() const noexcept { return lost_.load(std::memory_order_relaxed) != 0; }
  // Ends a loss: writes a kGap up to now. Requires room.
  void WriteGap() noexcept;
  void WriteEnd(uint64_t ticks) noexcept;

 private:
  const size_t max_words_;
  const std::unique_ptr<uint64_t[]> ring_;

  std::atomic<uint64_t> epoch_{0};
  std::atomic<uint64_t> head_{0}, tail_{0};  // in words, ever growing

  uint64_t current_ = 0;  // the writer's: the epoch that kBegin was written for
  // Changed by the writer alone. The times are written before the count, with release: pairs with CurrentLoss.
  std::atomic<uint64_t> lost_{0}, lost_from_ticks_{0}, lost_end_ticks_{0};

  // The reader's.
  uint64_t reading_ = 0;  // the epoch of the records that come next
  std::vector<uint64_t> record_;
};

}  // namespace perfkit::count
