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

// A thing that is counted once a nanosecond, with a counter for one part in `share` of the time.
TEST_CASE("scaling gives the truth for as long as a machine runs", "[scale]") {
  for (uint64_t ns = 1'000'000; ns < uint64_t{1} << 62; ns *= 3) {
    for (const uint64_t share : {2, 3, 7, 1000}) {
      const uint64_t running = ns / share;
      CAPTURE(ns, share);
      CHECK(Scale(running, running * share, running) == running * share);
      CHECK(Scale(2 * running, running * share, running) == 2 * running * share);
      CHECK(Scale(running / 2, running * share, running) == running / 2 * share);
    }
  }
}

TEST_CASE("scaling saturates, and rounds to the nearest", "[scale]") {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  CHECK(Scale(kHalf - 1, 2, 1) == ~0ull - 1);
  CHECK(Scale(kHalf, 2, 1) == ~0ull);
  CHECK(Scale(~0ull, ~0ull, ~0ull - 1) == ~0ull);
  CHECK(Scale(~0ull - 1, ~0ull, ~0ull - 1) == ~0ull);
  CHECK(Scale(1, 3, 2) == 2);
  CHECK(Scale(1, 4, 3) == 1);
  CHECK(Scale(1, ~0ull, ~0ull - 1) == 1);
}

}  // namespace
}  // namespace perfkit::base
