// Parses numbers, decimal or 0x-hexadecimal, that take up a whole text.
//
// Files of the kernel and event names of users mix both spellings; std::from_chars does not accept the prefix.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::base {

// Returns all of `text` as a number of `radix`; nullopt if it is empty, contains other characters, or does not fit.
template <std::integral T = uint64_t>
std::optional<T> ParseNumber(std::string_view text, int radix = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, radix);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// As ParseNumber, with the radix by prefix: 0x or 0X is hexadecimal, anything else decimal (a leading 0 is not octal).
inline std::optional<uint64_t> ParsePrefixed(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return ParseNumber(text.substr(2), 16);
  return ParseNumber(text);
}

}  // namespace perfkit::base
