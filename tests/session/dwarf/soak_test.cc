// The soak for long, with whole stacks: PERFKIT_SOAK_SECONDS, or ten minutes.
#include "tests/session/soak.h"

#include <cstdlib>

namespace perfkit::session {
namespace {

TEST_CASE("threads, libraries and children come and go for long", "[.heavy][long_soak][law]") {
  const char* const seconds = std::getenv("PERFKIT_SOAK_SECONDS");
  Soak(seconds != nullptr ? std::strtod(seconds, nullptr) : 600);
}

}  // namespace
}  // namespace perfkit::session
