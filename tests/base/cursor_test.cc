// Reads at any offset, of any size, from bytes that have an end.
#include "src/base/cursor.h"

#include <array>
#include <catch2/catch.hpp>

namespace perfkit::base {
namespace {

TEST_CASE("cursor: a slice lies within the bytes, whatever offset and size") {
  constexpr std::array<std::byte, 16> kBytes{};
  constexpr uint64_t kMax = ~uint64_t{0};
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, kMax - 7, kMax}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, kMax - 7, kMax}) {
      const bool within = offset <= kBytes.size() && size <= kBytes.size() && offset + size <= kBytes.size();
      INFO(offset << " + " << size);
      const std::optional<Bytes> slice = Slice(kBytes, offset, size);
      REQUIRE(slice.has_value() == within);
      if (within) CHECK(slice->size() == size);
      if (within) CHECK(slice->data() == kBytes.data() + offset);
    }
  }
}

}  // namespace
}  // namespace perfkit::base
