// The parts of samples that are too seldom asked for to be inline.
#include "perfkit/sample.h"

namespace perfkit {
namespace {

// struct read_format (include/uapi/linux/perf_event.h), in words: of a group the count, the times, and then value, id
// and lost of each; of one event its value, the times, id and lost.
constexpr size_t kFirstTime = 1;

size_t FirstTail(uint64_t read_format) { return kFirstTime + detail::ReadTimeWords(read_format); }

}  // namespace

Words CallChain::part(ChainContext context) const noexcept {
  for (const ChainPart& part : *this) {
    if (part.context == context) return part.pcs;
  }
  return {};
}

// The register is as the code left it, signed where return addresses are (pointer authentication), while the kernel has
// taken the signatures off its chain. User code lies below 2^48: more is given only to those who ask mmap for it.
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
