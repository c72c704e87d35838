// Reads the rings that perf events write their records to, where they lie: no copy, no allocation, no system call.
//
//   data_tail ──────────────> data_head             kStream: we follow the kernel, and tell it how far we are
//   |#### read ####|-- to read --|   free   |
//
//   data_head ──────────────> older and older       kOverwrite (attr.write_backward): the newest record lies at the
//   | newest |   |      |  oldest  | over-              head; the kernel never waits for us
//                                   written
//
// A ring is a value: the reader owns neither page nor data, and ordinary memory will do for both (tests, files).
// Everything in a ring counts as hostile: whatever the bytes are, nothing outside of them is read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "perfkit/detail/user_page.h"

namespace perfkit {

using Bytes = std::span<const std::byte>;

namespace detail {

// A T from bytes of any alignment.
template <class T>
inline T Load(const std::byte* from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace detail

// A record as it lies in the ring: struct perf_event_header and what follows it. A view, as long-lived as its bytes.
// What it says is not checked, except that all `size` bytes are there, at least the header. record.h has the types.
struct RawRecord {
  static constexpr size_t kHeaderSize = 8;

  uint32_t type = 0;  // a RecordType, or one that is newer than this library
  uint16_t misc = 0;
  uint16_t size = 0;  // bytes, the header among them
  const std::byte* data = nullptr;

  Bytes bytes() const noexcept { return {data, size}; }
  // What follows the header.
  Bytes body() const noexcept { return {data + kHeaderSize, size_t{size} - kHeaderSize}; }
};

// Accounting of a drain, or of all drains of a reader. Conservation: what the kernel wrote between two drains is
// `bytes` + malformed_bytes + overwritten_bytes + skipped_bytes, exactly.
struct DrainStats {
  uint64_t records = 0;            // visited
  uint64_t bytes = 0;              // of the records visited
  uint64_t malformed = 0;          // times that bytes were no record; the rest of the batch was dropped with them
  uint64_t malformed_bytes = 0;    // dropped so
  uint64_t overwritten_bytes = 0;  // kOverwrite: written and overwritten since the last drain
  uint64_t skipped_bytes = 0;      // kOverwrite: there, and left unvisited because the visitor had enough

  DrainStats& operator+=(const DrainStats& more) noexcept;
};

enum class RingMode : uint8_t { kStream, kOverwrite };

// Reads one ring. For one thread at a time, any thread. Moves, never copies; may be moved between batches.
//
// Two ways to read, one accounting. Push: Drain visits a batch. Pull: Next yields the records of a batch one by one,
// and Release ends it; until then all of them stay where they are, so that a merge can hold one of each ring.
class RingReader {
 public:
  RingReader() = default;  // reads nothing

  // A ring whose mapping is writable. `data` is the data area, a power of two; any other size reads nothing. Reading
  // begins at the page's data_tail. Both must outlive the reader.
  RingReader(UserPage* page, Bytes data) : RingReader(page, page, data, RingMode::kStream) {}

  // A ring of an event with write_backward whose mapping is read-only (of a writable one the kernel overwrites nothing,
  // it drops what is new); `page` is not written to. While it is read the kernel must not write: pause it
  // (PERF_EVENT_IOC_PAUSE_OUTPUT), or send its output elsewhere meanwhile.
  // Each drain visits, newest first, what came since the last one and was not overwritten.
  static RingReader Overwrite(const UserPage* page, Bytes data) { return {page, nullptr, data, RingMode::kOverwrite}; }

  RingReader(RingReader&&) noexcept = default;
  RingReader& operator=(RingReader&&) noexcept = default;

  // Calls visit(const RawRecord&) with each record that the ring has now, at most `max_records`, and gives their room
  // back to the kernel: all of it when the batch ends, and now and then before. The view dies when visit returns.
  // A visitor that returns bool ends the batch by false; the record that it was given counts as visited.
  // Never fails: what is no record ends the batch and is counted, and the next batch begins after it.
  // A visitor that throws ends the batch: the record that it was given counts as visited, the rest is for the next
  // batch (kOverwrite: skipped_bytes).
  // The visitor must not use this reader. A batch that Next has begun ends first.
  template <class Visitor>
  DrainStats Drain(Visitor&& visit, uint64_t max_records = UINT64_MAX);

  // The next record of the batch, which the first Next begins: what the ring had then. False when there is no more.
  // All records of a batch stay valid until Release.
  bool Next(RawRecord& record) noexcept;
  // Ends the batch: gives back the room of what Next has yielded; what it has not is the next batch's (in kStream).
  // Accounting of the batch; all 0 without one.
  DrainStats Release() noexcept;
  // Within a batch of kStream: gives back the room of all records so far but the last `kept` bytes of them, whose views
  // live on.
  void GiveBack(uint64_t kept = 0) noexcept {
    if (in_batch_ && stream()) PublishTail(NextAt() - kept);
  }
  // Takes back the last Next: its record is the next one again, of this batch or, after Release, of another.
  void PutBack(const RawRecord& last) noexcept;

  // Whether the ring has anything to read. Ask before every wait: polling a ring's descriptor tells of new records
  // only, not of those that are there.
  bool has_records() const noexcept { return usable() && Head() != (rewound_ ? 0 : stream() ? tail_ : seen_); }

  // kOverwrite: lets the next drain visit all that is still there, also what was visited before: a snapshot that may
  // overlap the last one. What has been overwritten by then is not counted.
  void Rewind() noexcept { rewound_ = !stream(); }

  bool usable() const noexcept { return page_ != nullptr; }
  RingMode mode() const noexcept { return mode_; }
  size_t size_bytes() const noexcept { return data_.size(); }
  // All batches so far.
  const DrainStats& stats() const noexcept { return stats_; }

 private:
  RingReader(const UserPage* page, UserPage* writable, Bytes data, RingMode mode);

  bool stream() const noexcept { return mode_ == RingMode::kStream; }
  // Acquire pairs with the kernel's barrier between the records and data_head (perf_output_put_handle).
  uint64_t Head() const noexcept { return LoadShared(page_->data_head); }
  // Finds what can be read now: [at_, to_). False when it is nothing, or nothing that makes sense.
  bool Begin(DrainStats& stats) noexcept;
  // Next at the beginning and the end of a batch, and where the ring turns.
  bool NextTurn(RawRecord& record) noexcept;
  void GoTo(uint64_t at) noexcept;
  uint64_t NextAt() const noexcept { return turn_ + static_cast<uint64_t>(next_ - data_.data()); }
  bool BeginStream(DrainStats& stats) noexcept;
  bool BeginOverwrite(DrainStats& stats) noexcept;
  // Ends a batch that was read up to `at`: counts what was left because it could not be read (`broken`) or was not
  // wanted, and gives back the rest.
  void End(uint64_t at, bool broken, DrainStats& stats) noexcept;
  // Drops all of [at, to): the positions make no sense.
  bool DropAll(uint64_t bytes, uint64_t head, DrainStats& stats) noexcept;
  void PublishTail(uint64_t tail) noexcept;
  // A part of the batch that is contiguous in memory, at most a quarter of the ring: a slow visitor must not hold all
  // of it until its room is given back. The first record is whole. Null when there is no record at `at`.
  struct Stretch {
    const std::byte *begin, *end;
  };
  static constexpr size_t kPrefetchRecords = 4;
  Stretch NextStretch(uint64_t at) noexcept;
  // Where Drain is. Ends the batch when the visitor throws.
  struct Progress {
    RingReader* reader;  // null: has ended
    uint64_t from, max_records;
    uint64_t budget = max_records;
    uint64_t at = from;  // of the stretch, whose records lie before `reached` as far as they have been visited
    const std::byte *begin = nullptr, *reached = nullptr;

    uint64_t Position() const { return at + static_cast<uint64_t>(reached - begin); }
    void End(bool broken, DrainStats& stats) {
      stats.records = max_records - budget;
      stats.bytes = Position() - from;
      std::exchange(reader, nullptr)->End(Position(), broken, stats);
    }
    ~Progress() {
      DrainStats stats;
      if (reader != nullptr) End(false, stats);
    }
  };
  template <class Visitor>
  static void VisitSpan(const Stretch& stretch, Visitor& visit, Progress& progress, bool& more);
  bool RecordAt(uint64_t at, uint64_t left, RawRecord& record) noexcept;
  const std::byte* Linearised(size_t at, size_t size) noexcept;

  const UserPage* page_ = nullptr;
  UserPage* writable_ = nullptr;  // kStream: where data_tail is
  Bytes data_;
  RingMode mode_ = RingMode::kStream;
  bool in_batch_ = false;  // of Next
  bool broken_ = false;    // Next has met what is no record
  bool clipped_ = false;   // kOverwrite: the batch ends where the ring does, maybe within a record
  bool rewound_ = false;
  uint64_t tail_ = 0;         // kStream: read up to here
  uint64_t seen_ = 0;         // kOverwrite: the head at the last drain
  uint64_t head_ = 0;         // when the batch began
  uint64_t at_ = 0, to_ = 0;  // the batch
  // Of Next: where the next record is, how far the ring goes on from there without a turn, and the position of the
  // ring's first byte in this turn. Between batches and after what is no record it goes nowhere.
  const std::byte *next_ = nullptr, *end_ = nullptr;
  uint64_t turn_ = 0;
  DrainStats batch_;
  // A record that wraps is copied here: one a batch at most, since a batch is no longer than the ring.
  std::unique_ptr<std::byte[]> scratch_;
  DrainStats stats_;
};

// Walks records that lie one after the other in memory: a snapshot, the data section of a file. Stops for good at
// bytes that are no record.
class LinearReader {
 public:
  LinearReader() = default;
  explicit LinearReader(Bytes records) : left_(records) {}

  bool Next(RawRecord& record) noexcept;
  // Bytes that were not walked: none when all were records.
  Bytes rest() const noexcept { return left_; }

 private:
  Bytes left_;
};

namespace detail {

// The header at `from`, which lies before `end`; false when it is none of a record that ends there or before.
inline bool ReadHeader(const std::byte* from, const std::byte* end, RawRecord& record) noexcept {
  static_assert(std::endian::native == std::endian::little, "perfkit knows little-endian machines only");
  const uint64_t word = Load<uint64_t>(from);  // u32 type, u16 misc, u16 size: one load
  record.type = static_cast<uint32_t>(word);
  record.misc = static_cast<uint16_t>(word >> 32);
  record.size = static_cast<uint16_t>(word >> 48);
  record.data = from;
  // A multiple of 8 from 8 on, in one comparison: what is none becomes huge.
  constexpr uint64_t kMax = (1 << 16) / 8;
  return std::rotr(uint64_t{record.size} - RawRecord::kHeaderSize, 3) < kMax &&
         record.size <= static_cast<uint64_t>(end - from);
}

template <class Visitor>
inline bool Visit(Visitor& visit, const RawRecord& record) {
  if constexpr (std::is_same_v<std::invoke_result_t<Visitor&, const RawRecord&>, bool>) {
    return visit(record);
  } else {
    visit(record);
    return true;
  }
}

}  // namespace detail

inline bool RingReader::RecordAt(uint64_t at, uint64_t left, RawRecord& record) noexcept {
  const size_t offset = at & (data_.size() - 1);
  if (!detail::ReadHeader(data_.data() + offset, data_.data() + offset + left, record)) [[unlikely]]
    return false;
  if (offset + record.size > data_.size()) [[unlikely]]
    record.data = Linearised(offset, record.size);
  return true;
}

inline bool RingReader::Next(RawRecord& record) noexcept {
  if (next_ == end_ || !detail::ReadHeader(next_, end_, record)) [[unlikely]] {
    return NextTurn(record);
  }
  next_ += record.size;
  batch_.records += 1;
  return true;
}

// Ends at the first record that is not all in the stretch: it goes on after it, wraps, or is none.
template <class Visitor>
inline void RingReader::VisitSpan(const Stretch& stretch, Visitor& visit, Progress& progress, bool& more) {
  const std::byte*& at = progress.reached;
  RawRecord record;
  while (at != stretch.end && more && progress.budget != 0 && detail::ReadHeader(at, stretch.end, record)) {
    // Most records are as long as those before them: a step that the hardware does not foresee.
    __builtin_prefetch(at + kPrefetchRecords * record.size);
    at += record.size;
    --progress.budget;
    more = detail::Visit(visit, record);
  }
}

// One place where the visitor is called, so that it becomes a part of the loop.
template <class Visitor>
DrainStats RingReader::Drain(Visitor&& visit, uint64_t max_records) {
  Release();
  DrainStats stats;
  if (!Begin(stats)) return stats;
  Progress progress{.reader = this, .from = at_, .max_records = max_records};
  bool more = true, broken = false;
  while (progress.at != to_ && more && progress.budget != 0) {
    const Stretch stretch = NextStretch(progress.at);
    broken = stretch.begin == nullptr;
    if (broken) break;
    progress.begin = progress.reached = stretch.begin;
    VisitSpan(stretch, visit, progress, more);
    progress.at = progress.Position();
    progress.begin = progress.reached;
    if (stream()) PublishTail(progress.at);
  }
  progress.End(broken, stats);
  return stats;
}

}  // namespace perfkit
