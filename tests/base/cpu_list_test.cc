// CPU lists as the kernel writes them, and as it never would.
#include "src/base/cpu_list.h"

#include <catch2/catch.hpp>
#include <string>

namespace perfkit::base {
namespace {

using Cpus = std::vector<int>;

TEST_CASE("CPU lists are numbers and ranges", "[cpu_list]") {
  CHECK(ParseCpuList("0") == Cpus{0});
  CHECK(ParseCpuList("0-3,8\n") == Cpus{0, 1, 2, 3, 8});
  CHECK(ParseCpuList("4,2-2") == Cpus{4, 2});
  CHECK(ParseCpuList("") == Cpus{});
  CHECK(ParseCpuList("\n") == Cpus{});
  CHECK(ParseCpuList("0-8191")->size() == 8192);
}

TEST_CASE("what the kernel never writes is refused", "[cpu_list]") {
  for (const char* text : {"-1", "1-", "-", "a", "3-1", "0,", ",0", "0,,1", "0 1", "0-4294967295", "65536", "0x1",
                           "0-65535,0-65535", "1-2-3", "99999999999999999999"}) {
    INFO(text);
    CHECK(ParseCpuList(text) == std::nullopt);
  }
}

}  // namespace
}  // namespace perfkit::base
