// Shared by the parsers of records: reads the fixed fields from front to back, and the trailer at the end.
#pragma once

#include <optional>
#include <string_view>

#include "perfkit/record.h"
#include "perfkit/sample.h"
#include "src/base/cursor.h"

namespace perfkit::ring {

// Reads the fields of a record before its trailer, from front to back. If one does not fit, the parse has failed: ok()
// is false, and all later fields stay as they are.
class RecordFields {
 public:
  RecordFields(const RawRecord& record, const SampleLayout& layout) : left_(record.body()) {
    ok_ = left_.size() >= layout.trailer_bytes();
    if (ok_) left_ = left_.first(left_.size() - layout.trailer_bytes());
  }

  template <class T>
  void Take(T& value) {
    const std::optional<T> read = base::ReadAt<T>(left_, 0);
    ok_ = ok_ && read.has_value();
    if (!ok_) return;
    value = *read;
    left_ = left_.subspan(sizeof(T));
  }
  template <class... T>
  void TakeAll(T&... values) {
    (Take(values), ...);
  }
  void TakeBytes(Bytes& bytes, uint64_t size) {
    const std::optional<Bytes> slice = base::Slice(left_, 0, size);
    ok_ = ok_ && slice.has_value();
    if (!ok_) return;
    bytes = *slice;
    left_ = left_.subspan(size);
  }
  // Takes `count` items of `item` bytes each.
  void TakeList(Bytes& bytes, uint64_t count, size_t item) {
    ok_ = ok_ && count <= left_.size() / item;
    if (ok_) TakeBytes(bytes, count * item);
  }
  // Takes the rest up to its first NUL as a text; the bytes after that are padding.
  void TakeText(std::string_view& text) {
    const std::optional<std::string_view> read = base::TextAt(left_, 0);
    ok_ = ok_ && read.has_value();
    if (ok_) text = *read;
  }
  // Returns the rest as words.
  Words LeftWords() const { return {left_.data(), left_.size() / 8}; }
  // Returns true if all fields so far fitted.
  bool ok() const { return ok_; }

 private:
  Bytes left_;
  bool ok_ = false;
};

inline bool Is(const RawRecord& record, RecordType type) { return record.type == static_cast<uint32_t>(type); }

// Returns the trailer, which is at the end of the record. Requires that a RecordFields of the record is ok: then it
// fits.
inline SampleId TrailerOf(const RawRecord& record, const SampleLayout& layout) {
  const auto word = [&](Field field) -> std::optional<uint64_t> {
    const size_t back = layout.trailer_offset(field);
    if (back == 0) return std::nullopt;
    return detail::Load<uint64_t>(record.data + record.size - back);
  };
  SampleId id;
  if (const auto task = word(Field::kTid)) {
    id.pid = static_cast<uint32_t>(*task);
    id.tid = static_cast<uint32_t>(*task >> 32);
  }
  id.time_ns = word(Field::kTime);
  id.id = word(Field::kId);
  id.stream_id = word(Field::kStreamId);
  if (const auto cpu = word(Field::kCpu)) id.cpu = static_cast<uint32_t>(*cpu);
  id.identifier = word(Field::kIdentifier);
  return id;
}

// Returns `parsed` with its trailer, or nullopt if its fields did not fit.
template <class Record>
std::optional<Record> Finish(Record& parsed, const RecordFields& fields, const RawRecord& record,
                             const SampleLayout& layout) {
  if (!fields.ok()) return std::nullopt;
  parsed.who = TrailerOf(record, layout);
  return parsed;
}

}  // namespace perfkit::ring
