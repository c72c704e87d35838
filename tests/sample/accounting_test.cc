// The accounting: whatever the reader does, each event that the kernel counted is delivered, lost or paused.
#include <random>

#include "tests/sample/support.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FreshPages;

// Touches, drains and pauses at random, through a ring that is sometimes much too small.
class StalledRun {
 public:
  explicit StalledRun(uint32_t seed) : random_(seed) {}

  void Go() {
    SamplerOptions options = testing::FaultOptions(size_t{4096} << Below(4));
    if (Below(2) == 0) options.events.push_back({.event = "minor-faults:u", .rate = Period{1}});
    if (Below(4) == 0) options.stack = CallStack::UserDump(8 * (1 + Below(200)));
    options.side_band = Below(3) == 0;
    options.switches = Below(3) == 0;
    auto sampler = Sampler::Open(options, Below(2) == 0 ? Target::ThisThread() : Target::AllThreads());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    for (uint32_t steps = 5 + Below(20); steps > 0; --steps) Step(*sampler);
    REQUIRE(sampler->Resume().ok());
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    Check(sampler->stats());
  }

  uint64_t lost = 0, paused = 0, uncertain = 0;

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void Step(Sampler& sampler) {
    switch (Below(6)) {
      case 0: REQUIRE(sampler.Pause().ok()); break;
      case 1: REQUIRE(sampler.Resume().ok()); break;
      case 2: testing::CountSamples(sampler); break;
      default: memory_.Forget(); memory_.Touch(0, 1 + Below(static_cast<uint32_t>(memory_.pages())));
    }
  }

  void Check(const SamplerStats& stats) {
    testing::CheckAccountingBalances(stats);
    CHECK_FALSE(stats.lost_is_lower_bound);
    CHECK(stats.malformed_bytes == 0);
    std::map<uint32_t, uint64_t> last;
    for (const LossInterval& loss : stats.losses) {
      CHECK(loss.lost > 0);
      CHECK(loss.from_ns <= loss.to_ns);
      CHECK(loss.from_ns >= last[loss.ring]);
      last[loss.ring] = loss.to_ns;
    }
    for (const EventAccounting& event : stats.events) lost += event.lost, paused += event.paused;
    uncertain += stats.paused_is_lower_bound;
  }

  std::mt19937 random_;
  FreshPages memory_{300};
};

void RunMany(uint32_t runs) {
  uint64_t with_losses = 0, with_pauses = 0, uncertain = 0;
  for (uint32_t seed = 1; seed <= runs; ++seed) {
    INFO("run " << seed);
    StalledRun run(seed);
    run.Go();
    with_losses += run.lost > 0;
    with_pauses += run.paused > 0;
    uncertain += run.uncertain;
  }
  INFO(with_losses << " with losses, " << with_pauses << " with pauses, " << uncertain << " uncertain");
  CHECK(with_losses > runs / 5);  // the runs are of the kind that they are meant to be
  CHECK(with_pauses > runs / 5);
  CHECK(uncertain < runs * 2 / 3);
}

TEST_CASE("the accounting balances, however the reader stalls", "[accounting]") { RunMany(60); }

TEST_CASE("the accounting balances in a thousand runs of stalled readers", "[.heavy]") { RunMany(1000); }

TEST_CASE("a loss has the interval in which it was", "[accounting][law]") {
  FreshPages memory(600);
  auto sampler = Sampler::Open(testing::FaultOptions(4096));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const uint64_t before = testing::NowNs();
  memory.Touch(0, 500);
  const uint64_t full = testing::NowNs();
  testing::DrainAll(*sampler);
  memory.Touch(500, 10);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  REQUIRE(stats.losses.size() == 1);
  CHECK(stats.losses[0].lost == stats.events[0].lost);
  CHECK(stats.losses[0].from_ns >= before);
  CHECK(stats.losses[0].from_ns <= full);
  CHECK(stats.losses[0].to_ns >= full);
}

TEST_CASE("records are lost only before a drain that finds a full ring", "[accounting]") {
  FreshPages memory(2000);
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  for (size_t i = 0; i < 1000; i += 10) {
    memory.Touch(i, 10);
    testing::DrainAll(*sampler);
  }
  CHECK(sampler->stats().events[0].lost == 0);
  CHECK(sampler->stats().drains_of_full_rings == 0);
  memory.Touch(1000, 1000);  // more than fit
  CHECK(sampler->stats().drains_of_full_rings == 0);
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().events[0].lost > 0);
  CHECK(sampler->stats().drains_of_full_rings == 1);
}

TEST_CASE("what a full ring lost and what a pause hid are told apart", "[accounting]") {
  FreshPages memory(600);
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 500);  // more than fit
  REQUIRE(sampler->Pause().ok());
  memory.Touch(500, 50);
  REQUIRE(sampler->Resume().ok());
  memory.Touch(550, 50);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  CHECK(testing::AreFaultsOf(stats.events[0].paused, 50));
  CHECK(stats.events[0].lost > 50);
  CHECK_FALSE(stats.paused_is_lower_bound);
}

TEST_CASE("losses of a full ring are not said to be a pause's, if a pause came before", "[accounting]") {
  FreshPages memory(600);
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  REQUIRE(sampler->Pause().ok());
  REQUIRE(sampler->Resume().ok());
  memory.Touch(0, 600);  // more than fit
  REQUIRE(sampler->Pause().ok());
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].lost > 50);
  CHECK((stats.events[0].paused == 0 || stats.paused_is_lower_bound));
}

// Threads that inherit events with followers: the kernel counts losses in LOST records only.
absl::StatusOr<Sampler> OpenWithFollower(size_t ring_bytes) {
  SamplerOptions options = testing::FaultOptions(ring_bytes);
  options.events[0].followers = {"task-clock"};
  return Sampler::Open(options, Target::AllThreads());
}

TEST_CASE("losses of a pause are told from others by LOST records, too", "[accounting]") {
  FreshPages memory(600);
  auto sampler = OpenWithFollower(1 << 20);
  if (absl::IsUnavailable(sampler.status())) SKIP_TEST(sampler.status().ToString());  // Before Linux 6.12.
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 10);
  REQUIRE(sampler->Pause().ok());
  memory.Touch(10, 500);
  REQUIRE(sampler->Resume().ok());
  for (size_t i = 510; i < 600; ++i) memory.Touch(i, 1);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  // A thread that has moved to another CPU during the pause leaves losses untold in that CPU's ring.
  CHECK(stats.events[0].lost == 0);
  CHECK_FALSE(stats.paused_is_lower_bound);
  uint64_t told = 0;
  for (const LossInterval& loss : stats.losses) told += loss.lost;
  CHECK(stats.events[0].paused == told);
}

TEST_CASE("losses before a pause that are told after it count as lost", "[accounting]") {
  FreshPages memory(1000);
  auto sampler = OpenWithFollower(16 << 10);
  if (absl::IsUnavailable(sampler.status())) SKIP_TEST(sampler.status().ToString());  // Before Linux 6.12.
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 900);  // more than fit
  REQUIRE(sampler->Pause().ok());
  REQUIRE(sampler->Resume().ok());
  testing::DrainAll(*sampler);
  memory.Touch(900, 100);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].paused == 0);
}

TEST_CASE("what a pause hides is not lost from the side band", "[accounting][law]") {
  SamplerOptions options = testing::FaultOptions(1 << 20);
  options.switches = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  REQUIRE(sampler->Pause().ok());
  for (int i = 0; i < 100; ++i) testing::Sleep(10'000);
  REQUIRE(sampler->Resume().ok());
  testing::DrainAll(*sampler);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().side_band_lost == 0);
}

TEST_CASE("losses of both overwriting sets have the numbers of rings of samples", "[accounting]") {
  FreshPages memory(100);
  SamplerOptions options = testing::FaultOptions();
  options.mode = RingMode::kOverwrite;
  options.side_band = true;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 10);
  REQUIRE(sampler->Pause().ok());
  memory.Touch(10, 50);
  REQUIRE(sampler->Resume().ok());
  memory.Touch(60, 10);
  REQUIRE(sampler->Snapshot().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  REQUIRE(stats.losses.size() == 1);
  CHECK(stats.losses[0].ring < sampler->rings());
  CHECK(stats.side_band_lost == 0);
}

}  // namespace
}  // namespace perfkit
