// The log of one thread's zones.
//
// Follow compares the zones that are open in the log with those that are open in the tree, from the outermost on. It
// logs that the zones that are no longer open were left, innermost first, and that new ones were entered. So the caller
// need not say what happened, and the log is right again after a loss.
#include "src/count/frame/zone_log.h"

#include <algorithm>
#include <cstring>

#include "perfkit/detail/user_page.h"

namespace perfkit::count {
namespace {

constexpr size_t kMaxTextWords = 32, kMaxTextBytes = kMaxTextWords * sizeof(uint64_t);

}  // namespace

ZoneLog::ZoneLog(const ZoneTree& tree, size_t max_words)
    : RecordRing(max_words), names_(tree.names()), zones_(tree.shape().max_zones + 1) {
  logged_.reserve(tree.shape().max_depth + 1);
}

// Returns false if there is no reader. Otherwise the log of the reader's epoch has begun.
bool ZoneLog::IsCurrent() noexcept {
  const uint64_t reader = epoch();
  if (reader == 0) return false;
  // The log of a new reader begins with no zone open.
  if (has_begun(reader)) return true;
  logged_.clear();
  has_ended_ = false;
  return Begin(0, std::span(&reader, 1));
}

// Ends a loss once there is room for four times the kGap and the kEnters of all open zones.
void ZoneLog::EndGap(const ZoneTree& tree) noexcept {
  if (!HasRoom(8 * (2 + tree.open_depth()))) return;
  logged_.clear();
  WriteGap();
}

void ZoneLog::Follow(const ZoneTree& tree, uint64_t ticks) noexcept {
  if (!IsCurrent()) return;
  if (has_lost()) EndGap(tree);
  while (!logged_.empty() &&
         (logged_.size() > tree.open_depth() || tree.OpenAt(logged_.size()).entry != logged_.back())) {
    logged_.pop_back();
    if (ticks == 0) ticks = ReadTicks();
    Write(ZoneRecordKind::kLeave, 0, 0, std::span(&ticks, 1), ticks);
  }
  for (size_t depth = logged_.size() + 1; depth <= tree.open_depth(); ++depth) {
    const ZoneTree::OpenZone open = tree.OpenAt(depth);
    if (zones_[open.zone].name == nullptr) zones_[open.zone] = {tree.parent(open.zone), tree.name(open.zone)};
    logged_.push_back(open.entry);
    Write(ZoneRecordKind::kEnter, open.zone, 0, std::span(&open.begin_ticks, 1), open.begin_ticks);
  }
}

void ZoneLog::Abandon(uint64_t entry) noexcept {
  if (!IsCurrent()) return;
  const auto found = std::find(logged_.begin(), logged_.end(), entry);
  if (found == logged_.end()) return;
  const auto depth = static_cast<uint64_t>(found - logged_.begin());
  Write(ZoneRecordKind::kAbandon, 0, 0, std::span(&depth, 1), ReadTicks());
}

void ZoneLog::AddFrame(const EndedFrame& frame, const FrameRecord& record, size_t events) noexcept {
  if (!IsCurrent()) return;
  uint64_t words[3 + kMaxEvents] = {frame.begin_ticks, frame.end_ticks, record.number};
  std::copy_n(record.values.begin(), events, words + 3);
  Write(ZoneRecordKind::kFrame, frame.sequence, record.missing | frame.multiplexed, std::span(words, 3 + events),
        frame.end_ticks);
}

void ZoneLog::AddHitch(uint64_t number, std::string_view cause) noexcept {
  if (IsCurrent()) WriteText(ZoneRecordKind::kHitch, 0, number, cause, ReadTicks());
}

void ZoneLog::AddText(ZoneRecordKind kind, uint16_t sequence, std::string_view text) noexcept {
  if (!IsCurrent()) return;
  const uint64_t ticks = ReadTicks();
  const FrameText about{.sequence = sequence, .is_cut = text.size() > kMaxTextBytes};
  WriteText(kind, about.Pack(), ticks, text, ticks);
}

// A longer text is cut, between two characters of UTF-8.
void ZoneLog::WriteText(ZoneRecordKind kind, uint32_t missing, uint64_t word, std::string_view text,
                        uint64_t ticks) noexcept {
  uint64_t words[1 + kMaxTextWords] = {word};
  size_t bytes = std::min(text.size(), kMaxTextBytes);
  while (bytes != 0 && bytes < text.size() && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  std::memcpy(words + 1, text.data(), bytes);
  const size_t text_words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  Write(kind, static_cast<uint16_t>(bytes), missing, std::span(words, 1 + text_words), ticks);
}

void ZoneLog::End(uint64_t ticks) noexcept {
  if (!IsCurrent() || has_ended_) return;
  has_ended_ = true;
  logged_.clear();
  WriteEnd(ticks);
}

}  // namespace perfkit::count
