// Bit fields of PMU formats.
#include "src/event/bit_field.h"

#include <bit>

#include "src/base/number.h"
#include "src/base/text.h"

namespace perfkit::event {
namespace {

// Returns the mask of "7" or "0-7".
std::optional<uint64_t> ParseRange(std::string_view text) {
  const bool is_range = text.find('-') != std::string_view::npos;
  const auto [low, high] = base::Cut(text, '-');
  const std::optional<unsigned> first = base::ParseNumber<unsigned>(low);
  const std::optional<unsigned> last = is_range ? base::ParseNumber<unsigned>(high) : first;
  if (!first || !last || *first > *last || *last > 63) return std::nullopt;
  return ~uint64_t{0} >> (63 - (*last - *first)) << *first;
}

// Returns the word's number. "config0" and "config4" are refused: kernels have no such words.
std::optional<uint8_t> ParseWord(std::string_view text) {
  if (!text.starts_with("config")) return std::nullopt;
  text.remove_prefix(6);
  if (text.empty()) return 0;
  const std::optional<unsigned> number = base::ParseNumber<unsigned>(text);
  if (text.size() != 1 || !number || *number == 0 || *number >= kConfigWords) return std::nullopt;
  return static_cast<uint8_t>(*number);
}

}  // namespace

int BitField::width() const { return std::popcount(mask); }

uint64_t BitField::largest() const { return mask == 0 ? 0 : ~uint64_t{0} >> (64 - width()); }

// Refuses a bit that is named twice, which perf accepts silently: a value's bit would have two destinations.
std::optional<BitField> ParseBitField(std::string_view text) {
  const auto [word_text, ranges] = base::Cut(base::Trim(text), ':');
  const std::optional<uint8_t> word = ParseWord(word_text);
  if (!word) return std::nullopt;
  BitField field{.word = *word, .mask = 0};
  bool good = !ranges.ends_with(',');
  base::ForEachPiece(ranges, ',', [&](std::string_view piece) {
    const std::optional<uint64_t> bits = ParseRange(piece);
    good = good && bits && (*bits & field.mask) == 0;
    if (good) field.mask |= *bits;
  });
  if (!good || field.mask == 0) return std::nullopt;
  return field;
}

// Works as the pdep instruction. Returns nullopt for a value that is too large, which perf truncates: the event would
// not be the one that was asked for.
std::optional<uint64_t> Spread(const BitField& field, uint64_t value) {
  if (value > field.largest()) return std::nullopt;
  uint64_t bits = 0;
  for (uint64_t left = field.mask; left != 0; left &= left - 1, value >>= 1) {
    if ((value & 1) != 0) bits |= left & (~left + 1);  // The lowest bit that is left.
  }
  return bits;
}

}  // namespace perfkit::event
