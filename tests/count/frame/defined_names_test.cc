// Zones that are named at run time.
#include "src/count/frame/defined_names.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::count {
namespace {

TEST_CASE("defined names: one id for each name, which stays, and at most kMaxZones", "[frames]") {
  DefinedNames names(8);
  std::vector<const char*> ids;
  for (size_t i = 0; i < DefinedNames::kMaxZones; ++i) {
    ids.push_back(names.DefineZone("zone " + std::to_string(i)).name);
  }
  CHECK(std::set<const char*>(ids.begin(), ids.end()).size() == DefinedNames::kMaxZones);
  const char* const more = names.DefineZone("one more").name;
  CHECK(more == std::string_view("(more names)"));
  CHECK(names.DefineZone("another").name == more);
  size_t wrong = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string name = "zone " + std::to_string(i);
    wrong += names.DefineZone(name).name == ids[i] && ids[i] == name ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace perfkit::count
