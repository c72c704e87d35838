// Weights and names as reports show them.
#include "src/profile/text_table.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

namespace perfkit::profile {
namespace {

size_t Digits(const std::string& text) {
  size_t digits = 0;
  for (const char c : text) digits += c >= '0' && c <= '9' ? 1 : 0;
  return digits;
}

TEST_CASE("a weight has four digits, at each power of its unit and beside it", "[profile][report]") {
  CHECK(WeightText(0, ProfileUnit::kNanoseconds) == "0 ns");
  CHECK(WeightText(999, ProfileUnit::kNanoseconds) == "999 ns");
  CHECK(WeightText(1000, ProfileUnit::kNanoseconds) == "1.000 us");
  CHECK(WeightText(999'949, ProfileUnit::kNanoseconds) == "999.9 us");
  CHECK(WeightText(999'960, ProfileUnit::kNanoseconds) == "1.000 ms");
  CHECK(WeightText(1023, ProfileUnit::kBytes) == "1023 B");
  CHECK(WeightText(1020 << 10, ProfileUnit::kBytes) == "0.996 MiB");
  CHECK(WeightText(5'000'000'000'000, ProfileUnit::kNanoseconds) == "5000.0 s");
  for (const double unit : {1e3, 1e6, 1e9}) {
    for (double factor = 1; factor < 999'999 && unit * factor < 9.9e11; factor *= 1.01) {
      const std::string text = WeightText(static_cast<uint64_t>(unit * factor), ProfileUnit::kNanoseconds);
      INFO(text);
      CHECK(Digits(text) == 4);
    }
  }
}

TEST_CASE("a name is one line of UTF-8 that controls no terminal", "[profile][report]") {
  CHECK(OneLine("a\tb\x1b[2J\x7f") == "a b [2J ");
  CHECK(OneLine("\xc2\x9b"
                "2J \xc2\x80 \xc2\x9f") == " 2J    ");  // C1 controls.
  CHECK(OneLine("\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") == "\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(OneLine("\xc0\xaf") == "??");  // Longer forms of '/'.
  CHECK(OneLine("\xe0\x80\xaf") == "???");
  CHECK(OneLine("\xf0\x80\x80\xaf") == "????");
  CHECK(OneLine("\xed\xa0\x80") == "???");                                   // A surrogate.
  CHECK(OneLine("\xf4\x90\x80\x80") == "????");                              // Beyond 0x10ffff.
  CHECK(OneLine("\xed\x9f\xbf\xee\x80\x80") == "\xed\x9f\xbf\xee\x80\x80");  // Beside the surrogates.
  CHECK(OneLine("\xe2\x82") == "??");
}

}  // namespace
}  // namespace perfkit::profile
