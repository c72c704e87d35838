// The parts of samples that are too rarely used to be inline: values read with a sample, and parts of call chains. All
// of them are views of the record's words; ReadValues checks once that they are all there, and accessors rely on it.
#include "perfkit/sample.h"

namespace perfkit {
namespace {

// struct read_format (include/uapi/linux/perf_event.h) in words. With kReadGroup: the number of values, the times, then
// value, id and lost of each. Otherwise: the value, the times, id, lost.
constexpr size_t kFirstTime = 1;

size_t FirstTail(uint64_t read_format) { return kFirstTime + detail::ReadTimeWords(read_format); }

}  // namespace

Words CallChain::part(ChainContext context) const noexcept {
  for (const ChainPart& part : *this) {
    if (part.context == context) return part.pcs;
  }
  return {};
}

// The kernel removes the signatures of pointer authentication from the chain, but not from the register. User code lies
// below 2^48, unless a program explicitly asks mmap for higher addresses.
std::optional<uint64_t> detail::LeafCaller(Words pcs, uint64_t link) noexcept {
  constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;
  link &= kAddress;
  if (pcs.empty() || link == 0 || (pcs.size() > 1 && pcs[1] == link)) return std::nullopt;
  return link;
}

std::optional<ReadValues> ReadValues::Parse(Words words, uint64_t read_format) noexcept {
  const bool group = (read_format & kReadGroup) != 0;
  if (words.empty()) return std::nullopt;
  const size_t before = detail::ReadTimeWords(read_format) + (group ? 1 : 0);
  const size_t each = detail::ReadValueWords(read_format);
  const uint64_t count = group ? words[0] : 1;
  // Divided, not multiplied: `count` is any number, and a product could wrap around.
  if (before > words.size() || count > (words.size() - before) / each) return std::nullopt;
  ReadValues values;
  values.words_ = words.subspan(0, before + count * each);
  values.format_ = read_format;
  values.size_ = count;
  return values;
}

std::optional<uint64_t> ReadValues::time_enabled_ns() const noexcept {
  if ((format_ & kReadTimeEnabled) == 0) return std::nullopt;
  return words_[kFirstTime];
}

std::optional<uint64_t> ReadValues::time_running_ns() const noexcept {
  if ((format_ & kReadTimeRunning) == 0) return std::nullopt;
  return words_[FirstTail(format_) - 1];
}

ReadValues::Value ReadValues::operator[](size_t i) const noexcept {
  const bool group = (format_ & kReadGroup) != 0;
  size_t at = FirstTail(format_) + (group ? i * detail::ReadValueWords(format_) : 0);
  Value value;
  value.value = group ? words_[at++] : words_[0];
  if ((format_ & kReadId) != 0) value.id = words_[at++];
  if ((format_ & kReadLost) != 0) value.lost = words_[at];
  return value;
}

}  // namespace perfkit
