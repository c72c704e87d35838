// Numbers of DWARF, against the examples of its standard; and bytes that end too early.
#include "src/base/dwarf_reader.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace perfkit::base {
namespace {

Bytes Of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_CASE("LEB128 is read as DWARF 5 writes it in 7.6", "[dwarf]") {
  const std::pair<uint64_t, std::string> unsigned_ones[] = {
      {2, "\x02"}, {127, "\x7f"}, {128, {'\x80', 1}}, {129, "\x81\x01"}, {12857, "\xb9\x64"}};
  for (const auto& [value, bytes] : unsigned_ones) {
    DwarfReader reader(Of(bytes));
    CHECK(reader.Uleb() == value);
    CHECK((reader.ok() && reader.done()));
  }
  const std::pair<int64_t, std::string> signed_ones[] = {
      {2, "\x02"},        {-2, "\x7e"},       {127, {'\xff', 0}}, {-127, {'\x81', '\x7f'}},
      {128, {'\x80', 1}}, {-128, "\x80\x7f"}, {129, "\x81\x01"},  {-129, "\xff\x7e"}};
  for (const auto& [value, bytes] : signed_ones) {
    DwarfReader reader(Of(bytes));
    CHECK(reader.Sleb() == value);
    CHECK((reader.ok() && reader.done()));
  }
}

// The shortest signed LEB128 of a number, by the pseudocode of DWARF 5, appendix C.
std::string SlebOf(int64_t value) {
  std::string bytes;
  for (;; value >>= 7) {
    const auto low = static_cast<char>(value & 0x7f);
    const bool is_last = value >= -64 && value < 64;
    bytes += is_last ? low : static_cast<char>(low | 0x80);
    if (is_last) return bytes;
  }
}

TEST_CASE("LEB128 gives each number at the edges of its lengths back", "[dwarf]") {
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    for (const int64_t value : {power - 1, power, -power, -power - 1}) {
      const std::string bytes = SlebOf(value);
      DwarfReader reader(Of(bytes));
      CHECK(reader.Sleb() == value);
      CHECK((reader.ok() && reader.done()));
    }
  }
}

TEST_CASE("LEB128 may be longer than its number, and than 64 bits", "[dwarf]") {
  const std::string padded = std::string(12, '\x80') + '\0', ones = std::string(12, '\xff') + '\x7f';
  CHECK(DwarfReader(Of(padded)).Uleb() == 0);
  CHECK(DwarfReader(Of(ones)).Uleb() == ~uint64_t{0});
  CHECK(DwarfReader(Of(ones)).Sleb() == -1);
  CHECK(DwarfReader(Of(padded)).Sleb() == 0);
}

TEST_CASE("a number that ends too early is 0, and nothing comes after it", "[dwarf]") {
  const std::string bytes = "\x81\xff\xff";
  for (const auto read :
       {+[](DwarfReader& reader) { return reader.Uleb(); },
        +[](DwarfReader& reader) { return static_cast<uint64_t>(reader.Sleb()); },
        +[](DwarfReader& reader) { return uint64_t{reader.U32()}; },
        +[](DwarfReader& reader) { return uint64_t{reader.Block(4).size()}; },
        +[](DwarfReader& reader) { return uint64_t{reader.Text().size()}; },
        +[](DwarfReader& reader) { return reader.Sized(8); }, +[](DwarfReader& reader) { return reader.Sized(5); }}) {
    DwarfReader reader(Of(bytes));
    CHECK(read(reader) == 0);
    CHECK_FALSE(reader.ok());
    CHECK(reader.done());
    CHECK(reader.rest().empty());
    CHECK(reader.U8() == 0);
    CHECK(reader.at() == bytes.size());
  }
  CHECK_FALSE(DwarfReader(Of(bytes), 4).ok());
  CHECK(DwarfReader(Of(bytes), 3).ok());
}

TEST_CASE("the end may come nearer, and never goes away", "[dwarf]") {
  const std::string bytes("\x05\0\0\0abcdef\0g", 12);
  DwarfReader reader(Of(bytes));
  uint32_t offset_bytes = 0;
  const uint64_t length = reader.InitialLength(&offset_bytes);
  CHECK((length == 5 && offset_bytes == 4));
  reader.EndAt(reader.at() + length);
  reader.EndAt(100);
  CHECK(reader.Sized(3) == 0x636261);
  CHECK(reader.rest().size() == 2);
  CHECK(reader.Text().empty());
  CHECK_FALSE(reader.ok());
  const std::string wide = "\xff\xff\xff\xff" + std::string(8, '\1');
  CHECK(DwarfReader(Of(wide)).InitialLength(&offset_bytes) == 0x0101010101010101);
  CHECK(offset_bytes == 8);
}

}  // namespace
}  // namespace perfkit::base
