// The log of one thread's zones. A record is a header (kind, words, id, missing) and its words. It becomes visible as a
// whole, by the store of head_.
//
// Follow compares what the log says to be open with what is open, from the outermost zone on: what is no longer open is
// left, innermost first, and what is new is entered. So the caller need not say what happened, and a loss heals itself.
#include "src/count/frame/zone_log.h"

#include <algorithm>
#include <cstring>

#include "perfkit/detail/user_page.h"

namespace perfkit::count {
namespace {

constexpr size_t kMaxTextWords = 32;

uint64_t HeaderOf(ZoneRecordKind kind, size_t words, uint16_t id, uint32_t missing) {
  return static_cast<uint64_t>(kind) | uint64_t{words} << 8 | uint64_t{id} << 16 | uint64_t{missing} << 32;
}

}  // namespace

ZoneLog::ZoneLog(const ZoneTree& tree, size_t max_words)
    : names_(tree.names()),
      max_words_(max_words),
      ring_(std::make_unique_for_overwrite<uint64_t[]>(max_words)),
      zones_(tree.shape().max_zones + 1) {
  logged_.reserve(tree.shape().max_depth + 1);
  record_.reserve(kMaxWordsARecord);
}

void ZoneLog::Start(uint64_t epoch) noexcept {
  tail_.store(head_.load(std::memory_order_acquire), std::memory_order_release);  // pair with Write and HasRoom
  epoch_.store(epoch, std::memory_order_release);                                 // pairs with IsCurrent
}

ZoneLog::Loss ZoneLog::CurrentLoss() const {
  const uint64_t records = lost_.load(std::memory_order_acquire);
  return {lost_from_ticks_.load(std::memory_order_relaxed), records, lost_end_ticks_.load(std::memory_order_relaxed)};
}

bool ZoneLog::HasRoom(size_t words) const noexcept {
  const uint64_t used =
      head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);  // pairs with Read
  return words <= max_words_ - used;
}

bool ZoneLog::Write(ZoneRecordKind kind, uint16_t id, uint32_t missing, std::span<const uint64_t> words,
                    uint64_t ticks) noexcept {
  const uint64_t lost = lost_.load(std::memory_order_relaxed);
  // After a loss nothing is written until EndGap: a record in the middle of a gap would be read as if nothing were
  // missing.
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

// Returns false if there is no reader. Otherwise the log of the reader's epoch has begun.
bool ZoneLog::IsCurrent() noexcept {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  if (epoch == 0) return false;
  // Another reader than before: its log begins with nothing open.
  if (epoch == current_) return true;
  lost_.store(0, std::memory_order_relaxed);
  lost_end_ticks_.store(0, std::memory_order_relaxed);
  logged_.clear();
  if (Write(ZoneRecordKind::kBegin, 0, 0, std::span(&epoch, 1), 0)) current_ = epoch;  // Start has made room
  return epoch == current_;
}

// Once there is room for all open zones and as much again.
void ZoneLog::EndGap(const ZoneTree& tree) noexcept {
  if (!HasRoom(8 * (2 + tree.open_depth()))) return;
  const uint64_t words[] = {lost_from_ticks_.load(std::memory_order_relaxed), ReadTicks(),
                            lost_.load(std::memory_order_relaxed)};
  lost_.store(0, std::memory_order_relaxed);
  logged_.clear();
  Write(ZoneRecordKind::kGap, 0, 0, words, words[1]);
}

void ZoneLog::Follow(const ZoneTree& tree, uint64_t ticks) noexcept {
  if (!IsCurrent()) return;
  if (lost_.load(std::memory_order_relaxed) != 0) EndGap(tree);
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
  Write(ZoneRecordKind::kFrame, frame.chain, record.missing | frame.multiplexed, std::span(words, 3 + events),
        frame.end_ticks);
}

void ZoneLog::AddHitch(uint64_t number, std::string_view cause) noexcept {
  if (IsCurrent()) WriteText(ZoneRecordKind::kHitch, 0, number, cause, ReadTicks());
}

void ZoneLog::AddReason(uint32_t chain, std::string_view reason) noexcept {
  if (!IsCurrent()) return;
  const uint64_t ticks = ReadTicks();
  WriteText(ZoneRecordKind::kReason, chain, ticks, reason, ticks);
}

// A longer text is cut, between two characters of UTF-8.
void ZoneLog::WriteText(ZoneRecordKind kind, uint32_t missing, uint64_t word, std::string_view text,
                        uint64_t ticks) noexcept {
  uint64_t words[1 + kMaxTextWords] = {word};
  size_t bytes = std::min(text.size(), kMaxTextWords * sizeof(uint64_t));
  while (bytes != 0 && bytes < text.size() && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  std::memcpy(words + 1, text.data(), bytes);
  const size_t text_words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  Write(kind, static_cast<uint16_t>(bytes), missing, std::span(words, 1 + text_words), ticks);
}

void ZoneLog::End(uint64_t ticks) noexcept {
  if (!IsCurrent()) return;
  logged_.clear();
  if (Write(ZoneRecordKind::kEnd, 0, 0, std::span(&ticks, 1), ticks)) return;
  lost_end_ticks_.store(ticks, std::memory_order_relaxed);
  lost_.store(lost_.load(std::memory_order_relaxed), std::memory_order_release);  // pairs with CurrentLoss
}

void ZoneLog::Read(uint64_t epoch, absl::FunctionRef<void(const ZoneRecord& record)> visit) {
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
