// Skips for Catch2 v2: a test that cannot run here prints its reason, and is counted.
#pragma once

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace perfkit::testing {

struct SkipTally {
  int started = 0;  // Test cases that have begun.
  int skipped = 0;  // Of these, the number that ended with SKIP_TEST.
};

inline SkipTally& Skips() {
  static SkipTally tally;
  return tally;
}

inline void Skip(const std::string& reason) {
  ++Skips().skipped;
  std::printf("SKIPPED: %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(), reason.c_str());
  std::fflush(stdout);
}

}  // namespace perfkit::testing

// Leaves the test case. The reason must be a typed Status or a missing right, never a failure.
#define SKIP_TEST(reason)             \
  do {                                \
    ::perfkit::testing::Skip(reason); \
    return;                           \
  } while (false)
