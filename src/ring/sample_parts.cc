// The parts of samples that are too seldom asked for to be inline.
#include "perfkit/sample.h"

namespace perfkit {
namespace {

// The words before the first value.
size_t WordsBefore(uint64_t read_format) {
  return ((read_format & kReadGroup) != 0 ? 1 : 0) + detail::ReadTimeWords(read_format);
}

}  // namespace

Words CallChain::part(ChainContext context) const noexcept {
  for (const ChainPart& part : *this) {
    if (part.context == context) return part.pcs;
  }
  return {};
}

// The layout of struct read_format (include/uapi/linux/perf_event.h); of a group the count comes first.
std::optional<ReadValues> ReadValues::Parse(Words words, uint64_t read_format) noexcept {
  const bool group = (read_format & kReadGroup) != 0;
  if (group && words.empty()) return std::nullopt;
  const size_t before = WordsBefore(read_format);
  const size_t each = detail::ReadValueWords(read_format);
  const uint64_t count = group ? words[0] : 1;
  if (before > words.size() || count > (words.size() - before) / each) return std::nullopt;
  ReadValues values;
  values.words_ = words.subspan(0, before + count * each);
  values.format_ = read_format;
  values.size_ = count;
  return values;
}

std::optional<uint64_t> ReadValues::time_enabled_ns() const noexcept {
  if ((format_ & kReadTimeEnabled) == 0) return std::nullopt;
  return words_[WordsBefore(format_) - detail::ReadTimeWords(format_)];
}

std::optional<uint64_t> ReadValues::time_running_ns() const noexcept {
  if ((format_ & kReadTimeRunning) == 0) return std::nullopt;
  return words_[WordsBefore(format_) - 1];
}

ReadValues::Value ReadValues::operator[](size_t i) const noexcept {
  size_t at = WordsBefore(format_) + i * detail::ReadValueWords(format_);
  Value value;
  value.value = words_[at];
  if ((format_ & kReadId) != 0) value.id = words_[++at];
  if ((format_ & kReadLost) != 0) value.lost = words_[++at];
  return value;
}

}  // namespace perfkit
