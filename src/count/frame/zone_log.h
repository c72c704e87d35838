// The log of a thread's zones and frames, in order. The thread writes it while a FrameRecording listens, which reads
// it.
//
// The writer compares the stack of open zones with what it has logged so far, so the log may begin, or continue after a
// loss, in the middle of any zone:
//
//   kBegin  (epoch)                    the log of one recording begins: no zone is open
//   kEnter  (zone, ticks)              kLeave (ticks)             in order of nesting
//   kAbandon (depth)                   the open zone at this depth ends on another thread, at an unknown time
//   kFrame  (begin, end, number, values)         kHitch (number, text)
//   kReason (ticks, text) missing: FrameText      why the frame under way of a sequence is kept (FrameCounter::Keep)
//   kState  (ticks, text) missing: FrameText      what the program says of that frame (FrameCounter::AttachState)
//   kGap    (from, to, lost)           there was no room: all zones are closed, those that are still open follow
//   kEnd    (ticks)                    the thread is no longer attached: all zones are closed
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/count/frame/record_ring.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

// A frame of a sequence that has ended.
struct EndedFrame {
  uint16_t sequence = 0;
  uint64_t begin_ticks = 0, end_ticks = 0;
  uint32_t multiplexed = 0;  // bit i: the value of event i is too low
};

// ZoneRecord::missing of a text for a frame under way.
struct FrameText {
  uint16_t sequence = 0;
  bool is_cut = false;

  static constexpr uint32_t kCut = 1u << 31;
  uint32_t Pack() const { return sequence | (is_cut ? kCut : 0); }
  static FrameText Of(uint32_t packed) { return {static_cast<uint16_t>(packed), (packed & kCut) != 0}; }
};

class ZoneLog : public RecordRing {
 public:
  // For the zones of `tree`, whose names it keeps alive. `max_words`: as RecordRing.
  ZoneLog(const ZoneTree& tree, size_t max_words);

  // For the writer. None allocates; records that find no room are counted in a kGap.
  // Logs what changed since the last call: zones that are no longer open were left at `ticks`; 0: now.
  void Follow(const ZoneTree& tree, uint64_t ticks) noexcept;
  // Logs that the visit `entry` ends on another thread. Requires that the tree has not removed it from its stack yet.
  void Abandon(uint64_t entry) noexcept;
  void AddFrame(const EndedFrame& frame, const FrameRecord& record, size_t events) noexcept;
  void AddHitch(uint64_t number, std::string_view cause) noexcept;
  // `kind`: kReason or kState.
  void AddText(ZoneRecordKind kind, uint16_t sequence, std::string_view text) noexcept;
  // Logs that the thread is no longer attached; does nothing if the log of this reader has ended before.
  void End(uint64_t ticks) noexcept;

  // The parent and the name of a zone. zone(id) requires that a kEnter with this id was read.
  struct Zone {
    uint16_t parent = ZoneTree::kRoot;
    const char* name = nullptr;
  };
  const Zone& zone(uint16_t id) const { return zones_[id]; }

 private:
  bool IsCurrent() noexcept;
  void WriteText(ZoneRecordKind kind, uint32_t missing, uint64_t word, std::string_view text, uint64_t ticks) noexcept;
  void EndGap(const ZoneTree& tree) noexcept;

  const std::shared_ptr<const NameArena> names_;
  std::vector<Zone> zones_;
  std::vector<uint64_t> logged_;  // the visits that are open in the log; its capacity is the largest depth
  bool has_ended_ = false;
};

}  // namespace perfkit::count
