// The soaks for long, with whole stacks: PERFKIT_SOAK_SECONDS, or ten minutes; PERFKIT_SOAK_FRAMES, or 100,000.
#include "tests/session/soak.h"

#include <cstdlib>

#include "tests/session/frame_soak.h"

namespace perfkit::session {
namespace {

TEST_CASE("threads, libraries and children come and go for long", "[.heavy][long_soak][law]") {
  const char* const seconds = std::getenv("PERFKIT_SOAK_SECONDS");
  Soak(seconds != nullptr ? std::strtod(seconds, nullptr) : 600);
}

TEST_CASE("100,000 frames with hitches leave memory flat, and no hitch is lost", "[.heavy][frame_soak][law]") {
  const char* const frames = std::getenv("PERFKIT_SOAK_FRAMES");
  SoakFrames(frames != nullptr ? std::strtoul(frames, nullptr, 10) : 100'000, true);
}

}  // namespace
}  // namespace perfkit::session
