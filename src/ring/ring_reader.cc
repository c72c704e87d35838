// The rare half of reading a ring: begins and ends batches, and accounts for bytes that are not records. The positions
// come from a page that may be hostile, so a batch begins only if they are plausible: multiples of 8, and at most the
// ring's size apart. Otherwise all bytes up to the head count as malformed, and reading goes on there. The frequent
// half is inline in ring_reader.h.
#include "perfkit/ring_reader.h"

#include <algorithm>
#include <utility>

namespace perfkit {
namespace {

constexpr size_t kLargestRecord = size_t{1} << 16;  // perf_event_header.size has 16 bits

}  // namespace

DrainStats& DrainStats::operator+=(const DrainStats& more) noexcept {
  records += more.records;
  bytes += more.bytes;
  malformed += more.malformed;
  malformed_bytes += more.malformed_bytes;
  overwritten_bytes += more.overwritten_bytes;
  skipped_bytes += more.skipped_bytes;
  return *this;
}

RingReader::RingReader(const UserPage* page, UserPage* writable, Bytes data, RingMode mode) : mode_(mode) {
  if (page == nullptr || data.size() < RawRecord::kHeaderSize || !std::has_single_bit(data.size())) return;
  page_ = page;
  writable_ = writable;
  data_ = data;
  // The tail is ours, but a ring may have been read before by another reader.
  if (writable != nullptr) tail_ = writable->data_tail;
  // The memory is not touched until a record wraps, so until then it costs address space only.
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(std::min(data.size(), kLargestRecord));
}

// Gives up what was written so far, because nothing says where a record begins. The next batch begins at the head,
// which the kernel only ever leaves between two records.
bool RingReader::DropAll(uint64_t bytes, uint64_t head, DrainStats& stats) noexcept {
  stats.malformed += 1;
  stats.malformed_bytes += bytes;
  stats_ += stats;
  if (stream()) {
    PublishTail(head);
  } else {
    seen_ = head;
  }
  return false;
}

bool RingReader::Begin(DrainStats& stats) noexcept {
  if (!usable()) return false;
  return stream() ? BeginStream(stats) : BeginOverwrite(stats);
}

bool RingReader::BeginStream(DrainStats& stats) noexcept {
  head_ = Head();
  const uint64_t written = head_ - tail_;
  // If a writer interrupts another one on the same CPU, it publishes its head first, and the other one then publishes
  // an older head (perf_output_put_handle, kernel/events/ring_buffer.c). For a moment the head is then before the tail,
  // by less than the ring's size.
  if (written == 0 || tail_ - head_ <= data_.size()) return false;
  if (((head_ | tail_) & 7) != 0 || written > data_.size()) return DropAll(written, head_, stats);
  at_ = tail_;
  to_ = head_;
  return true;
}

// A backward ring starts at position 0 and grows downwards, so 0 - head is the number of bytes ever written to it.
bool RingReader::BeginOverwrite(DrainStats& stats) noexcept {
  head_ = Head();
  const bool again = std::exchange(rewound_, false);
  // After Rewind everything since position 0 is read once more, so far as it is still there.
  const uint64_t written = (again ? 0 : seen_) - head_;
  if (written == 0 || uint64_t{0} - written <= data_.size()) return false;
  if ((head_ & 7) != 0) return DropAll(written, head_, stats);
  // More was written than fits: the oldest bytes are gone, and the last record in the ring may be cut.
  clipped_ = written > data_.size();
  if (clipped_ && !again) stats.overwritten_bytes += written - data_.size();
  at_ = head_;
  to_ = head_ + std::min<uint64_t>(written, data_.size());
  return true;
}

void RingReader::End(uint64_t at, bool broken, DrainStats& stats) noexcept {
  const uint64_t left = to_ - at;
  if (broken) {
    // The oldest record of a full backward ring has lost its end to newer records. That is not damage.
    RawRecord record;
    const std::byte* const from = data_.data() + (at & (data_.size() - 1));
    detail::ReadHeader(from, from + left, record);
    // Its header is whole and says that it would reach beyond what is left.
    const bool cut = clipped_ && record.size % 8 == 0 && record.size > left;
    stats.malformed += cut ? 0 : 1;
    (cut ? stats.overwritten_bytes : stats.malformed_bytes) += left;
  } else if (!stream()) {
    stats.skipped_bytes += left;
  }
  clipped_ = false;
  stats_ += stats;
  if (stream()) {
    PublishTail(broken ? to_ : at);
  } else {
    seen_ = head_;
  }
}

// Release pairs with the kernel's control dependency on data_tail before it writes (perf_output_begin): all reads of
// the records happen before their room is reused.
void RingReader::PublishTail(uint64_t tail) noexcept {
  tail_ = tail;
  __atomic_store_n(&writable_->data_tail, tail, __ATOMIC_RELEASE);
}

RingReader::Stretch RingReader::NextStretch(uint64_t at) noexcept {
  RawRecord first;
  if (!RecordAt(at, to_ - at, first)) return {};
  const size_t offset = at & (data_.size() - 1);
  // A record that wraps is a stretch of its own, in the copy.
  if (offset + first.size > data_.size()) return {first.data, first.data + first.size};
  // At most a quarter of the ring, but at least one record: the tail is published after each stretch, so a slow visitor
  // returns room to the kernel meanwhile.
  const size_t contiguous = std::min<uint64_t>(to_ - at, data_.size() - offset);
  return {first.data, first.data + std::min<uint64_t>(contiguous, std::max<uint64_t>(data_.size() / 4, first.size))};
}

// Copies a record that wraps at the ring's end into one piece. Valid until the next record that wraps.
const std::byte* RingReader::Linearised(size_t at, size_t size) noexcept {
  const size_t first = data_.size() - at;
  std::memcpy(scratch_.get(), data_.data() + at, first);
  std::memcpy(scratch_.get() + first, data_.data(), size - first);
  return scratch_.get();
}

// Next compares pointers only. They run to the end of the ring or of the batch, whichever is first; turn_ turns a
// pointer back into a position.
void RingReader::GoTo(uint64_t at) noexcept {
  const size_t offset = at & (data_.size() - 1);
  next_ = data_.data() + offset;
  end_ = next_ + std::min<uint64_t>(to_ - at, data_.size() - offset);
  turn_ = at - offset;
}

bool RingReader::NextTurn(RawRecord& record) noexcept {
  if (!in_batch_) {
    batch_ = {};
    broken_ = false;
    in_batch_ = Begin(batch_);
    if (!in_batch_) return false;
    GoTo(at_);
  }
  const uint64_t at = NextAt();
  if (broken_ || at == to_) return false;
  broken_ = !RecordAt(at, to_ - at, record);
  if (broken_) {
    end_ = next_;  // Next then has no bytes to look at: it comes here again, and finds broken_.
    return false;
  }
  GoTo(at + record.size);
  batch_.records += 1;
  return true;
}

// A record put back may be the one that was read before a broken one: that will be found again.
void RingReader::Unread(const RawRecord& last) noexcept {
  GoTo(NextAt() - last.size);
  broken_ = false;
  batch_.records -= 1;
}

DrainStats RingReader::Release() noexcept {
  if (std::exchange(in_batch_, false)) {
    batch_.bytes = NextAt() - at_;
    End(NextAt(), broken_, batch_);
    end_ = next_;
  }
  return std::exchange(batch_, {});
}

bool LinearReader::Next(RawRecord& record) noexcept {
  const std::byte* const from = left_.data();
  if (left_.size() < RawRecord::kHeaderSize || !detail::ReadHeader(from, from + left_.size(), record)) return false;
  left_ = left_.subspan(record.size);
  return true;
}

}  // namespace perfkit
