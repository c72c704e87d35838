// Where the bits of a PMU term go: "config:0-7,32-35" of a format file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::event {

constexpr int kConfigWords = 4;  // config, config1, config2, config3

struct BitField {
  uint8_t word = 0;   // 0 for config, n for config<n>
  uint64_t mask = 0;  // its bits; a value's lowest bit goes to the lowest

  int width() const;
  uint64_t largest() const;  // the largest value that fits

  friend bool operator==(const BitField&, const BitField&) = default;
};

// Parses a format file's text, with or without its newline. Nothing when it is malformed: another word, a bit above
// 63, a range that runs backwards, a bit named twice, no bit at all.
std::optional<BitField> ParseBitField(std::string_view text);

// `value` spread over the field's bits; nothing when it has more bits than the field.
std::optional<uint64_t> Spread(const BitField& field, uint64_t value);

}  // namespace perfkit::event
