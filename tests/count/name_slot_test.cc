// Names below parents, spread over a table.
#include "src/count/name_slot.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

namespace perfkit::count {
namespace {

const char* At(uintptr_t address) { return reinterpret_cast<const char*>(address); }

// Random slots would leave 1/e of the table empty.
TEST_CASE("one name below many parents, and many names below one, take many slots", "[frame]") {
  for (const size_t entries : {size_t{64}, size_t{2048}, size_t{65'536}}) {
    const unsigned shift = NameShift(entries);
    std::set<size_t> by_parent, by_name;
    std::minstd_rand random(1);
    uintptr_t address = 0x7f12'3456'7890;
    for (size_t i = 0; i < entries; ++i) {
      address += 1 + random() % 40;
      by_parent.insert(NameSlot(static_cast<uint16_t>(i), At(0x7f12'3456'7890), shift));
      by_name.insert(NameSlot(7, At(address), shift));
    }
    INFO(entries);
    CHECK(*by_parent.rbegin() < entries);
    CHECK(*by_name.rbegin() < entries);
    CHECK(by_parent.size() > entries / 2);
    CHECK(by_name.size() > entries / 2);
  }
}

}  // namespace
}  // namespace perfkit::count
