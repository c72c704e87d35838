// Forks while samplers are opened, closed and drained on other threads.
#include <catch2/catch.hpp>

#include "tests/sample/live_support.h"
#include "tests/support/fork_storm.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::Forked;
using testing::ForkWhile;

void CheckForks(const Forked& forked) {
  CHECK(forked.failed == 0);
  CHECK(forked.holding == 0);
  CHECK(forked.rounds > 10);
}

TEST_CASE("children that are born while samplers come and go hold nothing of them", "[threads][fork][many][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  testing::Spinners spinners(4);
  SamplerOptions options = testing::LiveOptions(1000);
  options.events.push_back({.event = "page-faults:u", .rate = Period{1}});
  CheckForks(ForkWhile(
      [&] {
        auto sampler = Sampler::Open(options, Target::AllThreads());
        if (sampler.ok()) (void)sampler->Start();
      },
      300));
}

TEST_CASE("children that are born while a sampler follows threads hold nothing of it", "[threads][fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.rings = SamplerOptions::Rings::kPerThread;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  CheckForks(ForkWhile(
      [&] {
        std::thread([] { testing::Spin(10'000); }).join();
        sampler->Drain([](const SamplerRecord&) {});
      },
      300));
}

}  // namespace
}  // namespace perfkit
