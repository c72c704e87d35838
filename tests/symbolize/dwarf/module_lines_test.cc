// Units that are read one after the other, within the limit of the cache.
#include "src/symbolize/dwarf/module_lines.h"

#include <catch2/catch.hpp>
#include <span>
#include <string>

namespace perfkit {
namespace {

// A compilation unit of DWARF 4 whose root entry has no attributes: length, version, abbreviations, size of addresses,
// entry.
const std::string kSmallUnit("\x08\0\0\0\x04\0\0\0\0\0\x08\x01", 12);
// Abbreviation 1: DW_TAG_compile_unit without children and attributes.
const std::string kSmallAbbrevs("\x01\x11\0\0\0\0", 6);

TEST_CASE("a search for split units holds no more units than fit into the cache", "[module_lines]") {
  constexpr size_t kUnits = 40;
  std::string info;
  for (size_t i = 0; i < kUnits; ++i) info += kSmallUnit;
  const std::string addresses(8, '\0');
  const auto section = [](const char* name, const std::string& bytes) {
    return symbolize::DebugSection{name, std::as_bytes(std::span(bytes)), false};
  };
  for (const bool fits : {false, true}) {
    symbolize::dwarf::UnitCache cache(fits ? 1 << 20 : 1);
    symbolize::dwarf::Texts texts;
    symbolize::dwarf::ModuleLines lines(
        {section(".debug_info", info), section(".debug_abbrev", kSmallAbbrevs), section(".debug_addr", addresses)}, {},
        cache, texts);
    CHECK(lines.FindSplitUnits().ok());
    CHECK((fits ? cache.units() == kUnits : cache.units() <= 2));
  }
}

}  // namespace
}  // namespace perfkit
