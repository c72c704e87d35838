// Visitors that throw, and drains that end early: each record is delivered once, and all are in the accounting.
#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/sample/support.h"
#include "tests/support/skip.h"

#if defined(__cpp_exceptions) && !defined(PERFKIT_NO_EXCEPTIONS)

namespace perfkit {
namespace {

using testing::FaultOptions;
using testing::FreshPages;

struct Thrown {};

// How often each page of `memory` was sampled.
class PageTally {
 public:
  explicit PageTally(const FreshPages& memory) : memory_(memory), seen_(memory.pages()) {}

  void Take(const SamplerRecord& record, const SampleLayout& layout) {
    if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
    ++samples;
    const uint64_t address = *Sample::Parse(record, layout)->address();
    const uint64_t page = (address - reinterpret_cast<uint64_t>(memory_.data())) >> 12;
    if (page < seen_.size()) ++seen_[page];
  }
  void CheckEachOnce() const {
    for (const uint64_t times : seen_) CHECK(times == 1);
  }
  uint64_t samples = 0;

 private:
  const FreshPages& memory_;
  std::vector<uint64_t> seen_;
};

// Drains until nothing is left; each `each`-th record makes the visitor throw.
void DrainThrowing(Sampler& sampler, PageTally& pages, uint64_t each) {
  uint64_t visited = 0;
  for (bool more = true; more;) {
    try {
      more = sampler.Drain([&](const SamplerRecord& record) {
        pages.Take(record, sampler.layout());
        if (++visited % each == 0) throw Thrown();
      }) != 0;
    } catch (const Thrown&) {
    }
  }
}

TEST_CASE("a visitor that throws has been given its record, and the rest comes later", "[visitor]") {
  constexpr size_t kPages = 200;
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    for (const uint64_t each : {1, 2, 7, 200}) {
      FreshPages memory(kPages);
      SamplerOptions options = FaultOptions();
      options.side_band = each == 7;
      auto sampler = Sampler::Open(options, target);
      REQUIRE(sampler.ok());
      REQUIRE(sampler->Start().ok());
      memory.Touch(0, kPages);
      REQUIRE(sampler->Stop().ok());
      PageTally pages(memory);
      DrainThrowing(*sampler, pages, each);
      pages.CheckEachOnce();
      const SamplerStats stats = sampler->stats();
      CHECK(stats.events[0].delivered == pages.samples);
      CHECK(stats.malformed_bytes == 0);
      testing::CheckAccountingBalances(stats);
    }
  }
}

TEST_CASE("a visitor that throws while events are changed does not stop them", "[visitor]") {
  constexpr size_t kRounds = 10, kEach = 10;
  FreshPages memory(kRounds * kEach), first(kRounds);
  SamplerOptions options = FaultOptions();
  options.stack = CallStack::UserDump(1024);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  PageTally pages(memory);
  uint64_t thrown = 0;
  for (size_t i = 0; i < kRounds; ++i) {
    REQUIRE(sampler->SetStackBytes(i % 2 == 0 ? 512 : 1024).ok());
    first.Touch(i, 1);
    bool touched = false;
    try {
      // What the first visit adds is not of this batch: the change gives it out, with all events off.
      sampler->Drain([&](const SamplerRecord& record) {
        pages.Take(record, sampler->layout());
        if (touched) throw Thrown();
        touched = true;
        memory.Touch(i * kEach, kEach);
      });
    } catch (const Thrown&) {
      ++thrown;
    }
  }
  REQUIRE(sampler->Stop().ok());
  DrainThrowing(*sampler, pages, 3);
  pages.CheckEachOnce();
  CHECK(thrown == kRounds);
  testing::CheckAccountingBalances(sampler->stats());
  CHECK(sampler->stats().events[0].delivered == pages.samples);
}

// Threads that inherit overwriting events: the change of a rate drains the side band. Returns the number of samples of
// `pages` pages after a visitor has thrown there; nullopt if the record at which it throws came too late.
std::optional<uint64_t> SamplesAfterThrow(size_t pages) {
  SamplerOptions options = FaultOptions();
  options.mode = RingMode::kOverwrite;
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::DrainAll(*sampler);
  REQUIRE(sampler->SetRate(0, Period{100}).ok());
  std::thread([] {}).join();  // Its records are visited before the change.
  bool started = false, thrown = false;
  pid_t during = 0;
  try {
    sampler->Drain([&](const SamplerRecord& record) {
      if (!std::exchange(started, true)) std::thread([&] { during = gettid(); }).join();
      const auto fork = ForkRecord::Parse(record, sampler->layout());
      if (fork && fork->tid == static_cast<uint32_t>(during)) throw Thrown();
    });
  } catch (const Thrown&) {
    thrown = true;
  }
  if (!thrown) return std::nullopt;
  testing::DrainAll(*sampler);
  REQUIRE(sampler->Snapshot().ok());
  testing::DrainAll(*sampler);
  FreshPages memory(pages);
  memory.Touch(0, pages);
  REQUIRE(sampler->Snapshot().ok());
  return testing::CountSamples(*sampler)[0];
}

TEST_CASE("a rate that is set is not forgotten if a visitor throws during the change", "[visitor]") {
  constexpr size_t kPages = 600;
  std::optional<uint64_t> samples;
  for (int i = 0; i < 20 && !samples; ++i) samples = SamplesAfterThrow(kPages);
  if (!samples) SKIP_TEST("no record came during the change");
  CHECK(*samples < kPages / 2);
}

TEST_CASE("what visitors do while events are about to be changed is sampled, too", "[visitor]") {
  constexpr size_t kRounds = 10, kEach = 10;
  FreshPages memory(kRounds * kEach), first(kRounds);
  SamplerOptions options = FaultOptions();
  options.stack = CallStack::UserDump(1024);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  PageTally pages(memory);
  for (size_t i = 0; i < kRounds; ++i) {
    REQUIRE(sampler->SetStackBytes(i % 2 == 0 ? 512 : 1024).ok());
    first.Touch(i, 1);
    bool touched = false;
    sampler->Drain([&](const SamplerRecord& record) {
      pages.Take(record, sampler->layout());
      if (!std::exchange(touched, true)) memory.Touch(i * kEach, kEach);
    });
  }
  REQUIRE(sampler->Stop().ok());
  DrainThrowing(*sampler, pages, 3);
  pages.CheckEachOnce();
  testing::CheckAccountingBalances(sampler->stats());
  CHECK(sampler->stats().events[0].delivered == pages.samples);
}

TEST_CASE("a drain reads no more records than it may, and the next ones go on there", "[visitor]") {
  constexpr size_t kPages = 200;
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    for (const size_t most : {size_t{1}, size_t{7}, size_t{1000}}) {
      FreshPages memory(kPages);
      SamplerOptions options = FaultOptions();
      options.side_band = true;
      auto sampler = Sampler::Open(options, target);
      REQUIRE(sampler.ok());
      REQUIRE(sampler->Start().ok());
      memory.Touch(0, kPages);
      PageTally pages(memory);
      uint64_t last_ns = 0;
      const auto visit = [&](const SamplerRecord& record) {
        pages.Take(record, sampler->layout());
        const uint64_t time_ns = sampler->layout().TimeOf(record).value_or(last_ns);
        CHECK((time_ns >= last_ns || record.synthesized));
        if (!record.synthesized) last_ns = time_ns;
      };
      CHECK(sampler->Drain(visit, 0) == 0);
      CHECK(sampler->Drain(visit, most) <= most);
      REQUIRE(sampler->Stop().ok());
      for (size_t given = 1; given != 0;) {
        given = sampler->Drain(visit, most);
        CHECK(given <= most);
      }
      pages.CheckEachOnce();
      testing::CheckAccountingBalances(sampler->stats());
    }
  }
}

}  // namespace
}  // namespace perfkit

#endif
