// Rings of threads: a thread that was born unseen is found nevertheless, and one that was never sampled is counted.
#include <errno.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

using testing::FreshPages;

// Touches its pages on request.
class LateWorker {
 public:
  static constexpr size_t kPages = 40;

  LateWorker() : thread_([this] { Run(); }) {
    while (!ready_) std::this_thread::yield();
  }
  ~LateWorker() { Finish(); }
  LateWorker(const LateWorker&) = delete;
  LateWorker& operator=(const LateWorker&) = delete;

  void Finish() {
    go_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Returns how many of its pages a drain reports.
  size_t SeenBy(Sampler& sampler) const {
    size_t seen = 0;
    testing::ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
      seen += *sample.address() - reinterpret_cast<uint64_t>(memory_.data()) < kPages * 4096;
    });
    return seen;
  }

 private:
  void Run() {
    ready_ = true;
    while (!go_) testing::Sleep(100'000);
    memory_.Touch(0, kPages);
  }

  FreshPages memory_{kPages};
  std::atomic<bool> ready_{false}, go_{false};
  std::thread thread_;
};

SamplerOptions RingsOfThreads(size_t ring_bytes = 512 << 10, RingMode mode = RingMode::kStream) {
  SamplerOptions options = testing::FaultOptions(ring_bytes);
  options.rings = SamplerOptions::Rings::kPerThread;
  options.mode = mode;
  return options;
}

void ShortThreads(int count) {
  for (int i = 0; i < count; ++i) {
    pid_t tid = 0;
    std::thread([&tid] { tid = gettid(); }).join();
    testing::AwaitEnd(tid);
  }
}

// A worker that starts at the point `birth`, for a sampler that is left started and not paused.
void CheckSeen(const SamplerOptions& options,
               const std::function<void(Sampler&, std::unique_ptr<LateWorker>& worker)>& birth) {
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  std::unique_ptr<LateWorker> worker;
  birth(*sampler, worker);
  worker->Finish();
  REQUIRE(sampler->Stop().ok());
  CHECK(worker->SeenBy(*sampler) == LateWorker::kPages);
  testing::DrainAll(*sampler);
  testing::CheckAccountingBalances(sampler->stats());
}

TEST_CASE("a thread is sampled that was born before the start, while stopped, or in a pause", "[threads][law]") {
  for (const RingMode mode : {RingMode::kStream, RingMode::kOverwrite}) {
    const SamplerOptions options = RingsOfThreads(64 << 10, mode);
    CheckSeen(options, [](Sampler& sampler, auto& worker) {
      worker = std::make_unique<LateWorker>();
      REQUIRE(sampler.Start().ok());
    });
    CheckSeen(options, [](Sampler& sampler, auto& worker) {
      REQUIRE(sampler.Start().ok());
      REQUIRE(sampler.Stop().ok());
      worker = std::make_unique<LateWorker>();
      REQUIRE(sampler.Start().ok());
    });
    CheckSeen(options, [](Sampler& sampler, auto& worker) {
      REQUIRE(sampler.Start().ok());
      REQUIRE(sampler.Pause().ok());
      worker = std::make_unique<LateWorker>();
      const size_t before = sampler.rings();
      while (sampler.rings() == before) testing::DrainAll(sampler);
      REQUIRE(sampler.Resume().ok());
    });
  }
}

TEST_CASE("a thread is sampled whose FORK record was lost", "[threads][law]") {
  CheckSeen(RingsOfThreads(4096), [](Sampler& sampler, auto& worker) {
    REQUIRE(sampler.Start().ok());
    ShortThreads(200);  // more records than fit
    worker = std::make_unique<LateWorker>();
    const size_t before = sampler.rings();
    testing::DrainAll(sampler);
    CHECK(sampler.stats().side_band_lost > 0);
    CHECK(sampler.rings() == before + 1);
  });
}

TEST_CASE("a thread that got no ring gets one when others end", "[threads][law]") {
  testing::FakeKernel fake;
  CheckSeen(RingsOfThreads(), [&](Sampler& sampler, auto& worker) {
    REQUIRE(sampler.Start().ok());
    const size_t before = sampler.rings();
    worker = std::make_unique<LateWorker>();
    fake.FailAll(testing::Call::kPerfEventOpen, EMFILE);
    while (sampler.stats().threads_missed == 0) testing::DrainAll(sampler);
    CHECK(sampler.rings() == before);
    fake.Forgive();
    ShortThreads(1);
    while (sampler.rings() == before) testing::DrainAll(sampler);
    CHECK(sampler.stats().threads_missed == 2);  // the short one, too
  });
  CHECK(fake.Leaks() == "");
}

TEST_CASE("threads that come and go between two drains are counted as missed", "[threads][law]") {
  auto sampler = Sampler::Open(RingsOfThreads(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const size_t before = sampler->rings();
  ShortThreads(10);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().threads_missed == 10);
  CHECK(sampler->rings() == before);
}

}  // namespace
}  // namespace perfkit
