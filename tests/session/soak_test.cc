// A short soak, of a few thousand threads.
#include "tests/session/soak.h"

namespace perfkit::session {
namespace {

TEST_CASE("threads, libraries and children that come and go leave no more than their sums", "[session][soak][law]") {
  Soak(0);
}

}  // namespace
}  // namespace perfkit::session
