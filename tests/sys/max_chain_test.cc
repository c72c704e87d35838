// The depth of the kernel's call chains.
#include "src/sys/max_chain.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

TEST_CASE("the depth of chains is the sysctl's, or else the kernel's default", "[sys]") {
  CHECK(MaxCallChain() > 0);
  const testing::TempFolder proc;
  CHECK(MaxCallChain(proc.path()) == 127);
  const auto of = [&](const std::string& text) {
    proc.Write("/sys/kernel/perf_event_max_stack", text);
    return MaxCallChain(proc.path());
  };
  CHECK(of("40\n") == 40);
  CHECK(of("0\n") == 0);
  CHECK(of("many\n") == 127);
}

}  // namespace
}  // namespace perfkit::sys
