// Overwriting rings: snapshots have the latest records, and taking one stops nothing.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::FreshPages;

SamplerOptions Overwriting(size_t ring_bytes) {
  SamplerOptions options = testing::FaultOptions(ring_bytes);
  options.mode = RingMode::kOverwrite;
  return options;
}

uint64_t PageOf(const FreshPages& memory, size_t i) { return (reinterpret_cast<uint64_t>(memory.data()) >> 12) + i; }

std::vector<uint64_t> Pages(Sampler& sampler) {
  std::vector<uint64_t> pages;
  testing::ForEachSample(sampler,
                         [&](const Sample& sample, const SamplerRecord&) { pages.push_back(*sample.address() >> 12); });
  return pages;
}

TEST_CASE("a snapshot holds the newest records first, and the next one begins after it", "[snapshot]") {
  FreshPages memory(660);
  auto sampler = Sampler::Open(Overwriting(64 << 10));
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  CHECK(absl::IsFailedPrecondition(sampler->Snapshot().status()));
  REQUIRE(sampler->Start().ok());
  std::multiset<uint64_t> seen;
  for (size_t part = 0; part < 6; ++part) {
    memory.Touch(100 * part, 100);
    REQUIRE(sampler->Snapshot().ok());
    const std::vector<uint64_t> pages = Pages(*sampler);
    CHECK(pages.size() >= 100);
    CHECK(std::find(pages.begin(), pages.end(), PageOf(memory, 100 * part)) >
          std::find(pages.begin(), pages.end(), PageOf(memory, 100 * part + 99)));
    seen.insert(pages.begin(), pages.end());
    memory.Touch(600 + 10 * part, 10);  // The next snapshot has them, and counts them.
    const SamplerStats stats = sampler->stats();
    if (stats.overwritten_bytes == 0) CHECK(stats.events[0].accounted() == stats.events[0].counted);
  }
  for (size_t i = 0; i < 650; ++i) CHECK(seen.count(PageOf(memory, i)) == 1);  // none missed, none twice
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  // A sanitizer's runtime now and then takes a thousand faults of its own, after the last snapshot, too.
  if (testing::kSanitized && stats.overwritten_bytes > 0) return;
  testing::CheckAccountingBalances(stats);
  CHECK(stats.overwritten_bytes == 0);
}

// Each change of the rate may leave out a part of a period.
TEST_CASE("samples of a flight recorder keep their weight when the rate changes", "[snapshot]") {
  for (const size_t snapshots : {0, 1, 2}) {
    INFO(snapshots << " snapshots");
    FreshPages memory(300);
    auto sampler = Sampler::Open(Overwriting(512 << 10));
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    std::multiset<uint64_t> seen;
    const auto take = [&] {
      const std::vector<uint64_t> pages = Pages(*sampler);
      seen.insert(pages.begin(), pages.end());
    };
    for (size_t part = 0; part < 3; ++part) {
      memory.Touch(100 * part, 100);
      if (part < snapshots) {
        REQUIRE(sampler->Snapshot().ok());
        take();
      }
      if (part < 2) REQUIRE(sampler->SetRate(0, Period{part == 0 ? 10u : 25u}).ok());
    }
    REQUIRE(sampler->Stop().ok());
    take();
    const SamplerStats stats = sampler->stats();
    const EventAccounting& event = stats.events[0];
    INFO("counted " << event.counted << ", delivered " << event.delivered << ", represented " << event.represented);
    if (testing::kSanitized && stats.overwritten_bytes > 0) return;  // its runtime's own faults
    REQUIRE(stats.overwritten_bytes == 0);
    for (size_t i = 0; i < 300; ++i) CHECK(seen.count(PageOf(memory, i)) <= 1);
    for (size_t i = 0; i < 100; ++i) CHECK(seen.count(PageOf(memory, i)) == 1);
    CHECK(event.represented <= event.counted);
    CHECK(event.counted - event.represented < 1 + 10 + 25);
    CHECK(event.delivered >= 100 + 9 + 3);
  }
}

TEST_CASE("a flight recorder keeps the latest, and says how much it has overwritten", "[snapshot]") {
  FreshPages memory(3000);
  auto sampler = Sampler::Open(Overwriting(8192));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 3000);
  REQUIRE(sampler->Stop().ok());
  const std::vector<uint64_t> pages = Pages(*sampler);
  REQUIRE(pages.size() > 100);
  CHECK(std::count(pages.begin(), pages.begin() + 20, PageOf(memory, 2999)) == 1);
  CHECK(sampler->stats().overwritten_bytes > 3000 * 40 - 8192);
  CHECK(sampler->stats().malformed_bytes == 0);
  CHECK(sampler->stats().events[0].lost == 0);
}

TEST_CASE("other threads' records are missed by no snapshot", "[snapshot][law]") {
  FreshPages memory(20'000);
  std::atomic<bool> go{false}, done{false};
  std::thread worker([&] {
    while (!go) std::this_thread::yield();
    memory.Touch(0, memory.pages());
    done = true;
  });
  auto sampler = Sampler::Open(Overwriting(1 << 20), Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  go = true;
  std::set<uint64_t> seen;
  const auto take = [&] {
    const std::vector<uint64_t> pages = Pages(*sampler);
    seen.insert(pages.begin(), pages.end());
  };
  while (!done) {
    const auto takeover = sampler->Snapshot();
    REQUIRE(takeover.ok());
    CHECK(takeover->from_ns < takeover->to_ns);
    take();
    testing::Sleep(500'000);
  }
  worker.join();
  REQUIRE(sampler->Stop().ok());
  take();
  size_t missed = 0;
  for (size_t i = 0; i < memory.pages(); ++i) missed += seen.count(PageOf(memory, i)) == 0;
  const SamplerStats stats = sampler->stats();
  if (stats.overwritten_bytes == 0) CHECK(missed == 0);
}

// Two snapshots make the rings with its records the active ones again.
TEST_CASE("what an ended thread wrote is read although two snapshots follow each other", "[snapshot][law]") {
  FreshPages memory(20);
  std::atomic<int> turn = 0;
  std::thread thread([&] {
    turn.wait(0);
    memory.Touch(0, 20);
  });
  SamplerOptions options = Overwriting(64 << 10);
  options.rings = SamplerOptions::Rings::kPerThread;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  if (sampler.ok()) sampler->Start().IgnoreError();
  turn = 1;
  turn.notify_all();
  thread.join();
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  for (int i = 0; i < 20; ++i) {  // It is joined before its EXIT record is written.
    testing::Sleep(1'000'000);
    testing::DrainAll(*sampler);
  }
  REQUIRE(sampler->Snapshot().ok());
  REQUIRE(sampler->Snapshot().ok());
  std::vector<uint64_t> pages = Pages(*sampler);
  for (int i = 0; i < 3; ++i) testing::DrainAll(*sampler);
  REQUIRE(sampler->Stop().ok());
  for (const uint64_t page : Pages(*sampler)) pages.push_back(page);
  for (size_t i = 0; i < 20; ++i) CHECK(std::ranges::count(pages, PageOf(memory, i)) == 1);
  testing::CheckAccountingBalances(sampler->stats());
}

}  // namespace
}  // namespace perfkit
