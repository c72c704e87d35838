// The readers from npm are those that package.json names.
#include "tests/exporters/readers/readers.h"

namespace perfkit::testing {
namespace {

TEST_CASE("each reader of package.json is installed", "[readers][node]") {
  NEED_NODE_READERS();
  CHECK_THAT(OutputOf("cd " + NodeReaders() + " && npm ls --depth=0"), Catch::Contains("pprof-format@2.3.2"));
}

}  // namespace
}  // namespace perfkit::testing
