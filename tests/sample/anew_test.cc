// Events that are replaced while threads run: each event is counted once, by an old or a new one.
#include <atomic>
#include <map>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// Touches its pages one after the other, as many as it is let.
class SteadyToucher {
 public:
  explicit SteadyToucher(size_t pages) : memory_(pages), thread_([this] { Run(); }) {}
  ~SteadyToucher() { Finish(); }
  void Let(size_t pages) { let_ += pages; }
  void Finish() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
  }
  size_t touched() const { return touched_; }
  uint64_t first_page() const { return reinterpret_cast<uint64_t>(memory_.data()) >> 12; }

 private:
  void Run() {
    while (true) {
      const bool last = end_;
      for (; touched_ < let_; ++touched_) {
        memory_.Touch(touched_, 1);
        testing::Spin(5'000);
      }
      if (last) return;
      std::this_thread::yield();
    }
  }

  testing::FreshPages memory_;
  std::atomic<size_t> let_{0}, touched_{0};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

TEST_CASE("events that are opened anew leave no gap, and count nothing twice", "[threads][law]") {
  constexpr int kRounds = 20;
  constexpr size_t kPages = 200;
  SteadyToucher toucher(kRounds * kPages);
  auto sampler = Sampler::Open(testing::FaultOptions(4 << 20), Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::map<uint64_t, int> seen;
  const auto drain = [&] {
    sampler->Drain([&](const SamplerRecord& record) {
      if (record.event != 0) return;
      const std::optional<Sample> sample = Sample::Parse(record, sampler->layout());
      REQUIRE(sample.has_value());
      ++seen[*sample->address() >> 12];
      testing::Spin(10'000);  // a visitor that takes its time
    });
  };
  for (int round = 0; round < kRounds; ++round) {
    toucher.Let(kPages);
    while (toucher.touched() < kPages * static_cast<size_t>(round) + kPages / 4) std::this_thread::yield();
    REQUIRE(sampler->SetRate(0, Period{1}).ok());
    drain();  // opens them anew
  }
  toucher.Finish();
  REQUIRE(sampler->Stop().ok());
  drain();
  size_t missing = 0, twice = 0;
  for (size_t i = 0; i < kRounds * kPages; ++i) {
    const auto page = seen.find(toucher.first_page() + i);
    missing += page == seen.end();
    twice += page != seen.end() && page->second > 1;
  }
  const SamplerStats stats = sampler->stats();
  CAPTURE(stats.events[0].lost, stats.events[0].duplicates, stats.decisions_refused);
  CHECK(missing <= stats.events[0].lost);
  CHECK(twice == 0);
  testing::CheckAccountingBalances(stats);
}

}  // namespace
}  // namespace perfkit
