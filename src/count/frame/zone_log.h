// What a thread's zones and frames did, in order: written by the thread while a FrameRecording listens, read by that.
//
// A ring of words with one writer and one reader. The writer compares the stack of open zones with what it has logged
// so far, so that it may begin, or go on after a loss, in the middle of any zone:
//
//   kBegin  (epoch)                    the log of one recording begins: no zone is open
//   kEnter  (zone, ticks)              kLeave (ticks)             in order of nesting
//   kAbandon (depth)                   the open zone at this depth ends on another thread, at an unknown time
//   kFrame  (begin, end, number, values)         kHitch (number, text)
//   kReason (ticks, text)              why the frame under way of a chain is kept (FrameCounter::Keep)
//   kGap    (from, to, lost)           there was no room: all zones are closed, those that are still open follow
//   kEnd    (ticks)                    the thread is no longer attached: all zones are closed
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

enum class ZoneRecordKind : uint8_t { kBegin, kEnter, kLeave, kAbandon, kFrame, kHitch, kReason, kGap, kEnd };

// A record, without its header. Which words there are is said above.
struct ZoneRecord {
  ZoneRecordKind kind = ZoneRecordKind::kBegin;
  uint16_t id = 0;       // kEnter: the zone; kFrame: the chain of frames; kHitch, kReason: bytes of text
  uint32_t missing = 0;  // kFrame: as FrameRecord::missing, and values that are too low; kReason: the chain
  std::span<const uint64_t> words;

  std::string_view text() const { return {reinterpret_cast<const char*>(words.data() + 1), id}; }
};

// A frame that has ended, by a chain of marks.
struct EndedFrame {
  uint16_t chain = 0;
  uint64_t begin_ticks = 0, end_ticks = 0;
  uint32_t multiplexed = 0;  // bit i: the value of event i is too low
};

class ZoneLog {
 public:
  // For the zones of `tree`, whose names it keeps alive. `max_words` is a power of two. Memory that is never written
  // costs nothing.
  ZoneLog(const ZoneTree& tree, size_t max_words);

  // Reader: forgets what it has not read; the next thing that the writer does begins a log anew, under this number.
  // 0: there is no reader any more.
  void Start(uint64_t epoch) noexcept;

  // Writer. None allocates; what there is no room for is counted in a kGap.
  // Logs what changed since the last call: zones that are no longer open were left at `ticks`; 0: now.
  void Follow(const ZoneTree& tree, uint64_t ticks) noexcept;
  // The visit `entry` ends on another thread. Before the tree takes it from its stack.
  void Abandon(uint64_t entry) noexcept;
  void AddFrame(const EndedFrame& frame, const FrameRecord& record, size_t events) noexcept;
  void AddHitch(uint64_t number, std::string_view cause) noexcept;
  void AddReason(uint32_t chain, std::string_view reason) noexcept;
  void End(uint64_t ticks) noexcept;

  // Reader: visits the records of its epoch, oldest first. Views are valid until visit returns.
  void Read(uint64_t epoch, absl::FunctionRef<void(const ZoneRecord& record)> visit);

  // Of a zone whose kEnter was read.
  struct Zone {
    uint16_t parent = ZoneTree::kRoot;
    const char* name = nullptr;
  };
  const Zone& zone(uint16_t id) const { return zones_[id]; }
  // Reader: what was lost since the last kGap, and from when on. `to_ticks`: when the thread was detached, if the kEnd
  // that says so was lost, too; else 0.
  struct Loss {
    uint64_t from_ticks = 0, records = 0, to_ticks = 0;
  };
  Loss CurrentLoss() const;

 private:
  static constexpr size_t kMaxWordsARecord = 1 + 3 + kMaxEvents + 32;

  bool IsCurrent() noexcept;
  bool HasRoom(size_t words) const noexcept;
  bool Write(ZoneRecordKind kind, uint16_t id, uint32_t missing, std::span<const uint64_t> words,
             uint64_t ticks) noexcept;
  void WriteText(ZoneRecordKind kind, uint32_t missing, uint64_t word, std::string_view text, uint64_t ticks) noexcept;
  void EndGap(const ZoneTree& tree) noexcept;

  const std::shared_ptr<const NameArena> names_;
  const size_t max_words_;
  const std::unique_ptr<uint64_t[]> ring_;
  std::vector<Zone> zones_;

  std::atomic<uint64_t> epoch_{0};
  std::atomic<uint64_t> head_{0}, tail_{0};  // in words, ever growing

  // The writer's.
  uint64_t current_ = 0;          // the epoch that kBegin was written for
  std::vector<uint64_t> logged_;  // the visits that are open as far as the log says; its capacity is the largest depth
  // Changed by the writer alone. The times are written before the count, with release: pairs with CurrentLoss.
  std::atomic<uint64_t> lost_{0}, lost_from_ticks_{0}, lost_end_ticks_{0};

  // The reader's.
  uint64_t reading_ = 0;  // the epoch of the records that come next
  std::vector<uint64_t> record_;
};

}  // namespace perfkit::count
