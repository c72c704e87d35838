// The destination of the bits of a PMU term: "config:0-7,32-35" of a format file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::event {

constexpr int kConfigWords = 4;  // config, config1, config2, config3

struct BitField {
  uint8_t word = 0;   // 0 for config, n for config<n>
  uint64_t mask = 0;  // Its bits; the lowest bit of a value goes to the lowest of them.

  int width() const;
  uint64_t largest() const;  // The largest value that fits.

  friend bool operator==(const BitField&, const BitField&) = default;
};

// Parses a format file's text, with or without its newline. Returns nullopt if it is malformed: another word, a bit
// beyond 63, a range that runs backwards, a bit named twice, no bit at all.
std::optional<BitField> ParseBitField(std::string_view text);

// Returns `value` spread over the field's bits; nullopt if it has more bits than the field.
std::optional<uint64_t> Spread(const BitField& field, uint64_t value);

}  // namespace perfkit::event
