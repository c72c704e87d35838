// Reads the rings into which perf events write records: without copies, allocations or system calls.
//
//   data_tail ──────────────> data_head             kStream: the reader follows the kernel and publishes in data_tail
//   |#### read ####|-- to read --|   free   |       how far it has read
//
//   data_head ──────────────> older and older       kOverwrite (attr.write_backward): the newest record is at
//   | newest |   |      |  oldest  | over-          data_head; the kernel never waits for the reader
//                                   written
//
// A reader owns neither the page nor the data. Both may be ordinary memory, as in tests and for files. The contents of
// a ring may be hostile: whatever its bytes are, nothing outside of the ring is read.
#pragma once

#include "perfkit/detail/library_only.h"

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

// Returns a T from bytes of any alignment.
template <class T>
inline T Load(const std::byte* from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace detail

// A record in a ring: struct perf_event_header and what follows it. A view: valid as long as its bytes. Only `size` is
// checked: it is at least the header's, and all bytes are present. record.h has the types.
struct RawRecord {
  static constexpr size_t kHeaderSize = 8;

  uint32_t type = 0;  // A RecordType, or a newer value.
  uint16_t misc = 0;
  uint16_t size = 0;  // Bytes, including the header.
  const std::byte* data = nullptr;

  Bytes bytes() const noexcept { return {data, size}; }
  // Returns what follows the header.
  Bytes body() const noexcept { return {data + kHeaderSize, size_t{size} - kHeaderSize}; }
};

// Accounting of one drain, or of all drains of a reader. If two successive drains read all records, the second one
// accounts for each byte that the kernel wrote between them: bytes + malformed_bytes + overwritten_bytes +
// skipped_bytes (not after Rewind).
struct DrainStats {
  uint64_t records = 0;            // Records visited.
  uint64_t bytes = 0;              // Bytes of the visited records.
  uint64_t malformed = 0;          // Batches that ended at bytes that were not a record; their rest was dropped.
  uint64_t malformed_bytes = 0;    // Bytes dropped with them.
  uint64_t overwritten_bytes = 0;  // kOverwrite: bytes overwritten since the last drain.
  uint64_t skipped_bytes = 0;      // kOverwrite: bytes not visited because the visitor ended the batch.

  DrainStats& operator+=(const DrainStats& more) noexcept;
};

// kStream: the ring stops when it is full, and the kernel counts what it drops. kOverwrite: the newest records
// overwrite the oldest.
enum class RingMode : uint8_t { kStream, kOverwrite };

// Reads one ring. Movable between batches, not copyable: a moved-from one may only be assigned to or destroyed. Not
// thread-safe: any thread may call it, one at a time. The constructor allocates up to 64 KiB, for a record that wraps
// around the end of the ring; nothing else allocates, locks or makes system calls.
//
// Drain visits a batch of records. Alternatively, Next returns the records of a batch one by one, and Release ends the
// batch; until then all its records stay valid, so that a merge can hold one record of each ring.
class RingReader {
 public:
  RingReader() = default;  // Has no ring: reads nothing.

  // A ring with a writable mapping (kStream), read from the page's data_tail on. `data` is the data area; a size that
  // is not a power of two reads nothing. `page` and `data` must outlive the reader.
  RingReader(UserPage* page, Bytes data) : RingReader(page, page, data, RingMode::kStream) {}

  // A ring of an event with write_backward and a read-only mapping (kOverwrite). With a writable mapping the kernel
  // drops new records instead of overwriting old ones. Requires that the kernel does not write during a drain: pause
  // the ring (PERF_EVENT_IOC_PAUSE_OUTPUT), or redirect its output. Each drain visits the records since the last drain
  // that were not overwritten, newest first.
  static RingReader Overwrite(const UserPage* page, Bytes data) { return {page, nullptr, data, RingMode::kOverwrite}; }

  RingReader(RingReader&&) noexcept = default;
  RingReader& operator=(RingReader&&) noexcept = default;

  // Calls visit(const RawRecord&) for each record in the ring, at most `max_records`. Returns the records' room to the
  // kernel, a part of the ring at a time. A record is valid until visit returns. The visitor must not call this reader.
  //
  // A visitor that returns bool ends the batch with false; its record counts as visited. A visitor that throws ends the
  // batch, too; the next batch begins after its record (kOverwrite: the rest counts as skipped_bytes). Never fails:
  // bytes that are not a record end the batch, whose rest is dropped and counted as malformed. If a batch of Next is in
  // progress, ends that one first.
  template <class Visitor>
  DrainStats Drain(Visitor&& visit, uint64_t max_records = UINT64_MAX);

  // Writes the next record of the batch to its argument; the first call begins a batch of the records that the ring has
  // then. Returns false if the batch has no more records. All records of a batch are valid until Release.
  bool Next(RawRecord& record) noexcept;
  // Ends the batch and returns the room of its records to the kernel. Records that Next has not returned belong to the
  // next batch (kStream). Returns the accounting of the batch, all 0 if there was none.
  DrainStats Release() noexcept;
  // kStream, within a batch: returns the room of the records read so far to the kernel, except their last `kept_bytes`,
  // whose records stay valid. Does not end the batch.
  void ReleaseRead(uint64_t kept_bytes = 0) noexcept {
    if (in_batch_ && stream()) PublishTail(NextAt() - kept_bytes);
  }
  // Undoes the last Next, which returned `last`: the next Next returns that record again. Call it before Release. If
  // Release follows, the record is the first one of the next batch (kStream).
  void Unread(const RawRecord& last) noexcept;

  // Returns true if the ring has records. Call it before each wait: polling a ring's descriptor reports new records
  // only.
  bool has_records() const noexcept { return usable() && Head() != (rewound_ ? 0 : stream() ? tail_ : seen_); }

  // kOverwrite: makes the next drain visit all records in the ring, also those visited before. Of overwritten
  // bytes, only the rest of a record that was cut is counted then.
  void Rewind() noexcept { rewound_ = !stream(); }

  // Returns false if it has no ring, or one whose size is not a power of two.
  bool usable() const noexcept { return page_ != nullptr; }
  RingMode mode() const noexcept { return mode_; }
  size_t size_bytes() const noexcept { return data_.size(); }
  // Returns the accounting of all batches so far.
  const DrainStats& stats() const noexcept { return stats_; }

 private:
  RingReader(const UserPage* page, UserPage* writable, Bytes data, RingMode mode);

  bool stream() const noexcept { return mode_ == RingMode::kStream; }
  // Acquire pairs with the kernel's barrier between the records and data_head (perf_output_put_handle).
  uint64_t Head() const noexcept { return LoadShared(page_->data_head); }
  // Finds the positions to read now, [at_, to_). Returns false if there are none, or if the head is not plausible.
  bool Begin(DrainStats& stats) noexcept;
  // The rare cases of Next: the beginning and the end of a batch, and the end of the ring's memory.
  bool NextTurn(RawRecord& record) noexcept;
  // Sets next_, end_ and turn_ for position `at` of the batch.
  void GoTo(uint64_t at) noexcept;
  // Returns the position of the record that Next reads next.
  uint64_t NextAt() const noexcept { return turn_ + static_cast<uint64_t>(next_ - data_.data()); }
  bool BeginStream(DrainStats& stats) noexcept;
  bool BeginOverwrite(DrainStats& stats) noexcept;
  // Ends a batch that was read up to `at`, and returns its room to the kernel. Counts the bytes up to to_: as malformed
  // if `broken`, else, with kOverwrite, as skipped.
  void End(uint64_t at, bool broken, DrainStats& stats) noexcept;
  // Counts `bytes` bytes before `head` as malformed and goes on at `head`: the positions are not plausible.
  bool DropAll(uint64_t bytes, uint64_t head, DrainStats& stats) noexcept;
  void PublishTail(uint64_t tail) noexcept;
  // A part of the batch that is contiguous in memory, at most a quarter of the ring, so that room is returned to the
  // kernel while a slow visitor reads the rest. Its first record is whole. `begin` is null if there is no record at
  // `at`.
  struct Stretch {
    const std::byte *begin, *end;
  };
  static constexpr size_t kPrefetchRecords = 4;
  Stretch NextStretch(uint64_t at) noexcept;
  // The position of Drain. Its destructor ends the batch if the visitor throws.
  struct Progress {
    RingReader* reader;  // Null once the batch has ended.
    uint64_t from, max_records;
    uint64_t budget = max_records;
    uint64_t at = from;  // The position of `begin`; records before `reached` are visited.
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
  UserPage* writable_ = nullptr;  // kStream: the page, for its data_tail.
  Bytes data_;
  RingMode mode_ = RingMode::kStream;
  bool in_batch_ = false;     // Next has begun a batch.
  bool broken_ = false;       // Next has met bytes that are not a record.
  bool clipped_ = false;      // kOverwrite: the batch ends at the end of the ring, maybe within a record.
  bool rewound_ = false;      // kOverwrite: Rewind was called.
  uint64_t tail_ = 0;         // kStream: the position up to which records were read.
  uint64_t seen_ = 0;         // kOverwrite: the head at the last drain.
  uint64_t head_ = 0;         // The head when the batch began.
  uint64_t at_ = 0, to_ = 0;  // The positions of the batch.
  // For Next: the address of the next record, the end of the bytes that are contiguous with it, and the position of the
  // ring's first byte in this turn of the ring. Equal between batches and after bytes that are not a record.
  const std::byte *next_ = nullptr, *end_ = nullptr;
  uint64_t turn_ = 0;
  DrainStats batch_;
  // The copy of a record that wraps around the end of the ring. A batch is no longer than the ring, so at most one
  // does.
  std::unique_ptr<std::byte[]> scratch_;
  DrainStats stats_;
};

// Reads records that are contiguous in memory: a snapshot, the data section of a file. Stops at bytes that are not a
// record. The memory must outlive the reader and its records. Not thread-safe. Does not allocate, lock or throw.
class LinearReader {
 public:
  // An empty list of records.
  LinearReader() = default;
  // Reads `records`, which begin with a record's header.
  explicit LinearReader(Bytes records) : left_(records) {}

  // Writes the next record, a view of the memory, to `record`. Returns false at the end, and at bytes that are not a
  // record: then rest() is not empty, and `record` is unspecified.
  bool Next(RawRecord& record) noexcept;
  // Returns the bytes that were not read: empty if all were records.
  Bytes rest() const noexcept { return left_; }

 private:
  Bytes left_;
};

namespace detail {

// Reads the header at `from`, where 8 bytes are readable. Returns false if its size is not that of a record that
// ends at or before `end`.
inline bool ReadHeader(const std::byte* from, const std::byte* end, RawRecord& record) noexcept {
  static_assert(std::endian::native == std::endian::little, "perfkit supports little-endian machines only");
  const uint64_t word = Load<uint64_t>(from);  // u32 type, u16 misc, u16 size: one load
  record.type = static_cast<uint32_t>(word);
  record.misc = static_cast<uint16_t>(word >> 32);
  record.size = static_cast<uint16_t>(word >> 48);
  record.data = from;
  // One comparison accepts the multiples of 8 from 8 on: the rotation turns any other size into a huge number.
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

// Stops at the first record that is not wholly in the stretch: it wraps, exceeds the quarter, or is not a record.
template <class Visitor>
inline void RingReader::VisitSpan(const Stretch& stretch, Visitor& visit, Progress& progress, bool& more) {
  const std::byte*& at = progress.reached;
  RawRecord record;
  while (at != stretch.end && more && progress.budget != 0 && detail::ReadHeader(at, stretch.end, record)) {
    // Most records have the size of the record before, but the hardware's prefetcher does not detect this stride.
    __builtin_prefetch(at + kPrefetchRecords * record.size);
    at += record.size;
    --progress.budget;
    more = detail::Visit(visit, record);
  }
}

// Has one call of the visitor, so that the compiler inlines it into the loop.
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
