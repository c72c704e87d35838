// Bit fields: what format files say, and where values go.
#include "src/event/bit_field.h"

#include <bit>
#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace perfkit::event {
namespace {

TEST_CASE("formats name a word and its bits", "[bit_field]") {
  CHECK(ParseBitField("config:0-7") == BitField{0, 0xff});
  CHECK(ParseBitField("config:0-7,32-35\n") == BitField{0, 0xf000000ff});
  CHECK(ParseBitField("config1:0-63") == BitField{1, ~0ull});
  CHECK(ParseBitField("config2:63") == BitField{2, 1ull << 63});
  CHECK(ParseBitField("config3:5,3,1") == BitField{3, 0x2a});
}

TEST_CASE("formats that make no sense are refused", "[bit_field]") {
  for (const char* text : {"",
                           "config",
                           "config:",
                           "config:a",
                           "config:64",
                           "config:0-64",
                           "config:7-0",
                           "config:-1",
                           "config:0-",
                           "config:0,",
                           "config:,0",
                           "config:0-7,7",
                           "config:0-7,3-4",
                           "config4:0",
                           "config0:0",
                           "config11:0",
                           "confi:0",
                           "Config:0",
                           "config:0-99999999999999999999",
                           "config:0 - 7",
                           "config :0",
                           "config:0x1",
                           "config:0-3-5"}) {
    INFO(text);
    CHECK(ParseBitField(text) == std::nullopt);
  }
}

TEST_CASE("values are spread from the lowest bit up", "[bit_field]") {
  const BitField field{0, 0xf000000ff};
  CHECK(field.width() == 12);
  CHECK(field.largest() == 0xfff);
  CHECK(Spread(field, 0x107) == 0x100000007);
  CHECK(Spread(field, 0xfff) == field.mask);
  CHECK(Spread(field, 0x1000) == std::nullopt);
  CHECK(Spread({1, ~0ull}, ~0ull) == ~0ull);
  CHECK(Spread({0, 1ull << 63}, 1) == 1ull << 63);
  CHECK(Spread({0, 0}, 0) == 0);
  CHECK(Spread({0, 0}, 1) == std::nullopt);
}

TEST_CASE("spreading loses nothing and touches no other bit", "[bit_field]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const BitField field{0, random() & random()};
    if (field.mask == 0) continue;
    const uint64_t value = random() & field.largest();
    const uint64_t bits = Spread(field, value).value();
    CHECK((bits & ~field.mask) == 0);
    uint64_t gathered = 0;
    int at = 0;
    for (int bit = 0; bit < 64; ++bit) {
      if ((field.mask >> bit & 1) != 0) gathered |= (bits >> bit & 1) << at++;
    }
    CHECK(gathered == value);
  }
}

}  // namespace
}  // namespace perfkit::event
