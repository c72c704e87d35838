// Short soaks: of a few thousand threads, and of frames.
#include "tests/session/soak.h"

#include "tests/session/frame_soak.h"

namespace perfkit::session {
namespace {

TEST_CASE("threads, libraries and children that come and go leave no more than their sums", "[session][soak][law]") {
  Soak(0);
}

TEST_CASE("no hitch is lost that there is room for", "[session][keep][soak][law]") { SoakFrames(3'000, false); }

}  // namespace
}  // namespace perfkit::session
