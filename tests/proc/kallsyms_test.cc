// Lines of /proc/kallsyms, good and bad.
#include "src/proc/kallsyms.h"

#include <catch2/catch.hpp>

namespace perfkit::proc {
namespace {

TEST_CASE("a line has an address, a type, a name and perhaps a module", "[kallsyms]") {
  const auto plain = ParseKallsymsLine("ffffffff81000000 T _stext");
  REQUIRE(plain);
  CHECK(plain->address == 0xffffffff81000000);
  CHECK(plain->type == 'T');
  CHECK(plain->name == "_stext");
  CHECK(plain->module.empty());
  CHECK(plain->is_code());
  const auto module = ParseKallsymsLine("ffffffffc0000000 b x.y\t[nf_tables]");
  REQUIRE(module);
  CHECK(module->name == "x.y");
  CHECK(module->module == "[nf_tables]");
  CHECK_FALSE(module->is_code());
}

TEST_CASE("what is no such line is nothing", "[kallsyms]") {
  for (const char* line :
       {"", " ", "0", "0 T", "0 T ", "x T y", "0 TT y", "0  y", "0 T \t[m]", "-1 T y", "11112222333344445 T y"}) {
    INFO(line);
    CHECK_FALSE(ParseKallsymsLine(line));
  }
}

TEST_CASE("code of every binding is code", "[kallsyms]") {
  for (const char type : {'t', 'T', 'w', 'W'}) CHECK(KernelSymbol{.type = type}.is_code());
  for (const char type : {'d', 'D', 'b', 'r', 'A', 'V', '?'}) CHECK_FALSE(KernelSymbol{.type = type}.is_code());
}

}  // namespace
}  // namespace perfkit::proc
