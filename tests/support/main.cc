// The main of every test program: returns 0 if it passed, 1 if it failed, 77 if all test cases were skipped.
//
// Catch2 v2 returns the number of failures and has no skip, so both are done here. SKIP_TEST (support/skip.h) prints a
// line "SKIPPED: test: reason" that the last test of the suite collects.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/support/skip.h"

namespace {

// Counts the test cases that begin, to tell "all were skipped" from "some were skipped", and names those that failed in
// one line each, also if a signal ended them.
struct CaseListener : Catch::TestEventListenerBase {
  using Catch::TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override { ++perfkit::testing::Skips().started; }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.allOk()) return;
    const Catch::TestCaseInfo& test = InfoOf(stats.testInfo);
    std::printf("FAILED: %s %s\n", test.name.c_str(), test.tagsAsString().c_str());
    std::fflush(stdout);
  }

 private:
  // Of Catch2 v2 and v3.
  static const Catch::TestCaseInfo& InfoOf(const Catch::TestCaseInfo& test) { return test; }
  static const Catch::TestCaseInfo& InfoOf(const Catch::TestCaseInfo* test) { return *test; }
};
CATCH_REGISTER_LISTENER(CaseListener)

}  // namespace

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0) return 1;
  const perfkit::testing::SkipTally& tally = perfkit::testing::Skips();
  return tally.skipped > 0 && tally.skipped == tally.started ? 77 : 0;
}
