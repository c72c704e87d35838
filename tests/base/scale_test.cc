// Arithmetic of counters, against values worked out by hand.
#include "src/base/scale.h"

#include <catch2/catch.hpp>

namespace perfkit::base {
namespace {

TEST_CASE("scaling estimates what was not looked at, and only that", "[scale]") {
  CHECK(Scale(5, 0, 0) == 5);
  CHECK(Scale(5, 100, 0) == std::nullopt);
  CHECK(Scale(5, 100, 100) == 5);
  CHECK(Scale(5, 100, 101) == 5);
  CHECK(Scale(10, 100, 62) == 16);
  CHECK(Scale(0, 100, 1) == 0);
}

TEST_CASE("scaling does not overflow 64 bits on the way", "[scale]") {
  CHECK(Scale(1'000'000'000'000, 1'000'000'000'000, 500'000'000'000) == 2'000'000'000'000);
  CHECK(Scale(~0ull, 2, 1) == ~0ull);
}

}  // namespace
}  // namespace perfkit::base
