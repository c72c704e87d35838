// Bounded reads from bytes that may be damaged or hostile: ELF images, records, sysfs files.
//
// Each read checks its range first and returns nullopt if it exceeds the bytes. So a parser is a chain of `if (!x)
// return` with no arithmetic of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace perfkit::base {

using Bytes = std::span<const std::byte>;

// Returns [offset, offset + size) of `bytes`, or nullopt if any of it lies outside. Safe for every offset and size.
constexpr std::optional<Bytes> Slice(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// Returns a copy of the T at `offset`, which may be unaligned; nullopt if it would reach past the end.
template <class T>
std::optional<T> ReadAt(Bytes bytes, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::optional<Bytes> at = Slice(bytes, offset, sizeof(T));
  if (!at) return std::nullopt;
  T value;
  std::memcpy(&value, at->data(), sizeof(T));
  return value;
}

// Returns the NUL-terminated text at `offset`; nullopt if it starts outside or never ends.
inline std::optional<std::string_view> TextAt(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return std::nullopt;
  const char* const start = reinterpret_cast<const char*>(bytes.data()) + offset;
  const void* const end = std::memchr(start, 0, bytes.size() - offset);
  if (end == nullptr) return std::nullopt;
  return std::string_view(start, static_cast<const char*>(end) - start);
}

}  // namespace perfkit::base
