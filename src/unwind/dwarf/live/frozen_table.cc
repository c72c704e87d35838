// Searches frozen tables. A search looks up the index, searches a few lines' first addresses, and then walks over the
// codes of one line: about five lines of the cache. Nothing is allocated or called, as signal handlers search.
#include "src/unwind/dwarf/live/frozen_table.h"

#include <algorithm>
#include <limits>

#include "src/base/last_at.h"
#include "src/unwind/dwarf/live/frozen_builder.h"

namespace perfkit::unwind {
namespace {

// Reads a little-endian number of 1, 2 or 4 bytes. Does not use memcpy: with a variable size it is a call, and the
// first call of a shared library's function resolves its address, which is not async-signal-safe.
uint32_t ReadLow(const uint8_t* from, size_t size) {
  uint32_t value = from[0];
  if (size > 1) value |= uint32_t{from[1]} << 8;
  if (size > 2) value |= uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24;
  return value;
}

}  // namespace

FrozenTable::FrozenTable(Cfi& cfi, Cfi::SlowRule slow, absl::FunctionRef<void(uint64_t)> on_landing_jump) {
  std::vector<RuleChange> rows = cfi.Changes(slow);
  for (const auto& [begin, rule] : rows) {
    if (rule.kind == RuleKind::kInstalls) on_landing_jump(begin);
  }
  FrozenBuilder(std::move(rows)).Build(*this);
}

Rule FrozenTable::At(uint64_t address) const {
  const uint64_t wanted = address - base_;
  if (address < base_ || wanted > std::numeric_limits<uint32_t>::max()) return {};
  if (starts_.empty()) return {};
  const size_t last = index_.size() - 1, bucket = std::min<size_t>(wanted >> shift_, last);
  const size_t begin = index_[bucket], end = bucket == last ? starts_.size() : index_[bucket + 1] + size_t{1};
  const uint32_t* const first =
      base::LastAt(starts_.data() + begin, end - begin, wanted, [](uint32_t start) { return start; });
  return RuleIn(lines_[static_cast<size_t>(first - starts_.data())], wanted - *first);
}

void FrozenTable::MakeIndex() {
  constexpr size_t kLines = 4;  // For each element of the index, on average.
  if (starts_.empty()) return;
  const uint64_t last = starts_.back(), wanted = starts_.size() / kLines;
  while (last >> shift_ > wanted) ++shift_;
  index_.reserve((last >> shift_) + 1);
  for (uint32_t line = 0; line < starts_.size(); ++line) {
    // A line that begins in the middle of a bucket is not the last one before the bucket's first offset.
    while (uint64_t{index_.size()} << shift_ < starts_[line]) index_.push_back(line == 0 ? 0 : line - 1);
    if (uint64_t{index_.size()} << shift_ == starts_[line]) index_.push_back(line);
  }
}

// Adds up deltas to find the row. Then takes the last rule that is given by its number, and applies the relative steps
// after it.
Rule FrozenTable::RuleIn(const Line& line, uint64_t wanted) const {
  uint64_t at = 0;
  size_t i = 0, done = 0, number_at = kLineCodes, number_size = 0;
  while (i < kLineCodes) {
    const unsigned code = line.codes[i];
    size_t next = i + 1, escaped = 0;
    if (code < kEscapes) {
      at += steps_[code].delta;
    } else {
      if (code == kEnd) break;
      const size_t delta_size = size_t{1} << ((code - kEscapes) / 2);
      escaped = 1 + (code - kEscapes) % 2;
      at += ReadLow(line.codes + i + 1, delta_size);
      next += delta_size + escaped;
    }
    if (at > wanted) break;
    const bool is_number = code >= relative_;
    number_at = is_number ? next - escaped : number_at;
    number_size = is_number ? escaped : number_size;
    done = is_number ? next : done;
    i = next;
  }
  uint32_t number = line.rule;
  if (done != 0) {
    number = number_size == 0 ? steps_[line.codes[number_at - 1]].what : ReadLow(line.codes + number_at, number_size);
  }
  Rule rule = rules_[number];
  auto offset = static_cast<uint32_t>(rule.offset);  // Unsigned, because hostile offsets may wrap.
  for (; done < i; ++done) offset += static_cast<uint32_t>(static_cast<int16_t>(steps_[line.codes[done]].what));
  rule.offset = static_cast<int32_t>(offset);
  return rule;
}

size_t FrozenTable::heap_bytes() const {
  return (starts_.capacity() + index_.capacity()) * sizeof(uint32_t) + lines_.capacity() * sizeof(Line) +
         steps_.capacity() * sizeof(Step) + rules_.capacity() * sizeof(Rule);
}

}  // namespace perfkit::unwind
