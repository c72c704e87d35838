// After the first drains, draining does not allocate: not for a record, a drain or a loss.
#include <latch>
#include <string>
#include <thread>

#include "tests/sample/live_support.h"
#include "tests/sample/support.h"
#include "tests/support/counted_new.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::allocations_so_far;

// Returns what the drains of a sampler allocate after the first ones, while `pages` are touched between them; some
// samples get lost.
uint64_t AllocatedByDraining(const SamplerOptions& options, Target target, uint64_t& records) {
  auto sampler = Sampler::Open(options, target);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::FreshPages memory(400);
  uint64_t allocated = 0;
  for (int round = 0; round < 20; ++round) {
    memory.Forget();
    memory.Touch(0, memory.pages());
    testing::Sleep(200'000);
    const uint64_t before = allocations_so_far;
    const size_t given = sampler->Drain([](const SamplerRecord&) {});
    if (round < 3) continue;
    allocated += allocations_so_far - before;
    records += given;
  }
  REQUIRE(sampler->Stop().ok());
  return allocated;
}

TEST_CASE("a drain allocates nothing after the first", "[sampler][allocation][law]") {
  if (!testing::kCountsNew) SKIP_TEST("a sanitizer owns operator new");
  uint64_t records = 0;
  SamplerOptions options = testing::FaultOptions(64 << 10);
  options.switches = true;
  CHECK(AllocatedByDraining(options, Target::ThisThread(), records) == 0);
  CHECK(AllocatedByDraining(options, Target::AllThreads(), records) == 0);
  options.rings = SamplerOptions::Rings::kPerThread;
  std::latch drained(1);  // a thread that ends in between is news, and may cost memory
  std::thread other([&] { drained.wait(); });
  CHECK(AllocatedByDraining(options, Target::AllThreads(), records) == 0);
  drained.count_down();
  other.join();
  options = testing::LiveOptions(10'000);
  options.events.push_back({.event = "page-faults:u", .rate = Period{1}});
  CHECK(AllocatedByDraining(options, Target::ThisThread(), records) == 0);
  CHECK(AllocatedByDraining(options, Target::AllThreads(), records) == 0);
  options = testing::FaultOptions(4096);  // most of them lost
  CHECK(AllocatedByDraining(options, Target::ThisThread(), records) == 0);
  CHECK(records > 10'000);
  // The counter of allocations itself works.
  const uint64_t before = allocations_so_far;
  (void)std::string(1000, 'x');
  CHECK(allocations_so_far > before);
}

}  // namespace
}  // namespace perfkit
