// Names whose demangled form is huge are left as they are: the C++ runtime has no bound.
#include "src/symbolize/demangle.h"

#include <catch2/catch.hpp>
#include <string>

namespace perfkit::symbolize {
namespace {

std::string Repeated(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// A template of `arguments` types, with `depth` nested expansions of its pack.
std::string Expansions(int arguments, int depth) {
  return "_Z1fIJ" + Repeated("i", arguments) + "EEv" + Repeated("DpFvT_", depth) + "i" + Repeated("E", depth);
}

TEST_CASE("expansions of packs that would fill the memory are not demangled", "[demangle]") {
  CHECK(Demangle(Expansions(3, 1)) != Expansions(3, 1));
  for (const int depth : {4, 5, 50}) CHECK(Demangle(Expansions(100, depth)) == Expansions(100, depth));
}

TEST_CASE("references that double a name again and again are not demangled", "[demangle]") {
  std::string name = "_Z1f1AI" + Repeated("y", 200) + "E";
  for (int level = 0; level < 11; ++level) name += "1BIS0_S0_S0_E";
  CHECK(Demangle(name) == name);
}

TEST_CASE("usual names are demangled, with what follows them", "[demangle]") {
  CHECK(Demangle("_Z1fyy") == "f(unsigned long long, unsigned long long)");
  CHECK(Demangle("_ZNSt6vectorIiSaIiEE9push_backERKi@plt") ==
        "std::vector<int, std::allocator<int> >::push_back(int const&)@plt");
  CHECK(Demangle("puts") == "puts");
}

}  // namespace
}  // namespace perfkit::symbolize
