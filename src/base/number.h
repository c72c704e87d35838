// Numbers in text: decimal or 0x-hexadecimal, the whole text or nothing.
//
// The kernel's files and people's event strings mix both spellings; std::from_chars reads neither prefix nor sign for us.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::base {

// All of `text` as a number of `radix`; nothing when it is empty, has other characters in it, or does not fit.
template <std::integral T = uint64_t>
std::optional<T> ParseNumber(std::string_view text, int radix = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, radix);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// As ParseNumber, with the radix by prefix: 0x or 0X is hexadecimal, all else decimal (a leading 0 is not octal).
inline std::optional<uint64_t> ParsePrefixed(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return ParseNumber(text.substr(2), 16);
  return ParseNumber(text);
}

}  // namespace perfkit::base
