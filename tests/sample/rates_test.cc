// Rates: a sample has the weight of its time, and a refused rate changes nothing.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"

namespace perfkit {
namespace {

using testing::FaultOptions;
using testing::FreshPages;

// The law of weights: samples never represent more than was counted; they represent less by a part of a period for each
// event and each change.
void CheckWeights(const EventAccounting& event, uint64_t periods) {
  INFO("counted " << event.counted << ", delivered " << event.delivered << ", represented " << event.represented);
  CHECK(event.lost + event.paused + event.malformed == 0);
  CHECK(event.represented <= event.counted);
  CHECK(event.counted - std::min(event.counted, event.represented) < periods);
}

TEST_CASE("samples that are in the ring when the rate changes keep their weight", "[rates]") {
  FreshPages memory(300);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->SetRate(0, Period{10}).ok());
  memory.Touch(100, 100);
  REQUIRE(sampler->SetRate(0, Period{25}).ok());
  REQUIRE(sampler->SetRate(0, Period{25}).ok());
  memory.Touch(200, 100);
  REQUIRE(sampler->Stop().ok());
  REQUIRE(sampler->SetRate(0, Period{1000}).ok());
  testing::DrainAll(*sampler);
  CheckWeights(sampler->stats().events[0], 1 + 10 + 25);
  CHECK(sampler->stats().events[0].delivered >= 100 + 9 + 3);
}

TEST_CASE("the same of threads that have inherited their events, before and after the change", "[rates][law]") {
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  FreshPages memory(400);
  std::atomic<int> step{0};
  const auto touch = [&](size_t first, int next) {
    memory.Touch(first, 100);
    ++step;
    while (step < next) testing::Sleep(100'000);
  };
  std::thread inheritor([&] {
    touch(0, 2);
    touch(100, 4);
    touch(200, 6);
  });
  while (step < 1) testing::Sleep(100'000);
  REQUIRE(sampler->SetRate(0, Period{10}).ok());
  ++step;
  while (step < 3) testing::Sleep(100'000);
  std::thread([&] { memory.Touch(300, 100); }).join();
  testing::Sleep(1'000'000);  // longer than the newest records are left to the next drain
  uint64_t samples = testing::CountSamples(*sampler)[0];
  CHECK(samples >= 300);
  ++step;
  while (step < 5) testing::Sleep(100'000);
  ++step;
  inheritor.join();
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  const auto cpus = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  CheckWeights(stats.events[0], 1 + 10 * cpus * 64);  // each thread has an event on each CPU; a sanitizer has its own
  CHECK(stats.decisions_refused == 0);
  CHECK(stats.events[0].delivered < stats.events[0].counted - 50);  // the last hundred were sampled at the new rate
}

TEST_CASE("a rate that is set before the start holds from the start, of inherited events too", "[rates]") {
  FreshPages memory(100);
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    memory.Forget();
    auto sampler = Sampler::Open(FaultOptions(), target);
    REQUIRE(sampler.ok());
    REQUIRE(sampler->SetRate(0, Period{10}).ok());
    REQUIRE(sampler->Start().ok());
    memory.Touch(0, 100);
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    const EventAccounting accounting = sampler->stats().events[0];
    CHECK(accounting.represented == 10 * accounting.delivered);
    CHECK(accounting.represented <= accounting.counted);
    CHECK(accounting.counted >= 100);
  }
}

TEST_CASE("a clock's samples that are in the ring keep their weight", "[rates][law]") {
  SamplerOptions options;
  options.events = {{.event = "task-clock:u", .rate = Period{100'000}}};
  options.ring_bytes = 4 << 20;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::Spin(30'000'000);
  REQUIRE(sampler->SetRate(0, Period{10'000'000}).ok());
  testing::Spin(30'000'000);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const EventAccounting accounting = sampler->stats().events[0];
  CHECK(accounting.delivered > 0);
  CHECK(accounting.represented <= accounting.counted + 10'000'000);
  CHECK(accounting.represented + accounting.unsampled_ns >= accounting.counted);
}

TEST_CASE("a rate that the kernel would not take is refused, and the event goes on as it was", "[rates]") {
  FreshPages memory(100);
  SamplerOptions options = FaultOptions();
  options.events.push_back({.event = "task-clock:u", .rate = Frequency{100}});
  options.events[0].rate = Frequency{1000};
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    auto clocks = Sampler::Open(options, target);
    REQUIRE(clocks.ok());
    CHECK(absl::IsInvalidArgument(clocks->SetRate(0, Frequency{1'000'000'000'000})));
    CHECK(absl::IsInvalidArgument(clocks->SetRate(1, Frequency{1'000'000'000'000})));
    auto sampler = Sampler::Open(FaultOptions(), target);
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    for (const uint64_t period : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
      CHECK(absl::IsInvalidArgument(sampler->SetRate(0, Period{period})));
    }
    memory.Forget();
    memory.Touch(0, 100);
    testing::DrainAll(*sampler);
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    const EventAccounting accounting = sampler->stats().events[0];
    testing::CheckAccountingBalances(sampler->stats());
    CHECK(accounting.represented == accounting.delivered);
  }
  options.events = {{.event = "page-faults:u", .rate = Period{uint64_t{1} << 63}}};
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
}

// Whichever of the kernel's calls fails.
TEST_CASE("a rate that could not be set is not in force, and the weights are true", "[rates]") {
  testing::FakeKernel fake;
  FreshPages memory(100);
  uint64_t failed = 0;
  for (uint64_t n = 1; n == failed + 1; ++n) {
    auto sampler = Sampler::Open(FaultOptions());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    fake.FailNth(n, ENOMEM, testing::Call::kIoctl);
    const absl::Status status = sampler->SetRate(0, Period{10});
    fake.Forgive();
    if (!status.ok()) ++failed;
    memory.Forget();
    memory.Touch(0, 100);
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    const EventAccounting accounting = sampler->stats().events[0];
    INFO("call " << n << ": " << status);
    CheckWeights(accounting, status.ok() ? 11 : 1);
    CHECK(accounting.delivered >= (status.ok() ? 10u : 100u));
  }
  CHECK(failed >= 1);
}

TEST_CASE("what could not be opened anew at its rate is tried again at the next drain", "[rates]") {
  testing::FakeKernel fake;
  FreshPages memory(300);
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->SetRate(0, Period{10}).ok());
  fake.FailAll(testing::Call::kPerfEventOpen, EMFILE);
  testing::DrainAll(*sampler);
  const uint64_t refused = sampler->stats().decisions_refused;
  CHECK(refused >= 1);
  memory.Touch(100, 100);
  fake.Forgive();
  testing::DrainAll(*sampler);
  memory.Touch(200, 100);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  const auto cpus = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  CheckWeights(stats.events[0], 1 + 10 * cpus * 64);
  CHECK(stats.decisions_refused == refused);
  CHECK(stats.events[0].delivered < stats.events[0].counted - 50);
}

// The kernel samples such an event each time that it happens.
TEST_CASE("a period beside samples that have their period is refused, where it would be ignored", "[rates]") {
  SamplerOptions options = FaultOptions();
  options.events[0].rate = Period{10};
  options.fields |= kSamplePeriod;
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
  options.fields = 0;
  options.events.push_back({.event = "alignment-faults", .rate = Frequency{10}});
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
  options.events[0].rate = Period{1};
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  CHECK(absl::IsInvalidArgument(sampler->SetRate(0, Period{10})));
  FreshPages memory(100);
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CheckWeights(sampler->stats().events[0], 1);
}

TEST_CASE("samples of events that count several at once have what they represent",
          "[rates][tracepoint_weight][root][law]") {
  const int result = testing::WithTracefs([] {
    SamplerOptions options;
    options.events = {{.event = "sched:sched_stat_runtime", .rate = Period{1}}};
    auto sampler = Sampler::Open(options);
    if (!sampler.ok() || !sampler->Start().ok()) return false;
    for (int i = 0; i < 10; ++i) {
      testing::Spin(5'000'000);
      testing::Sleep(100'000);
    }
    if (!sampler->Stop().ok()) return false;
    uint64_t weight = 0, samples = 0;
    sampler->Drain([&](const SamplerRecord& record) {
      weight += record.weight;
      ++samples;
    });
    const EventAccounting event = sampler->stats().events[0];
    return samples > 0 && event.represented == 0 && (event.lost != 0 || weight == event.counted);
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted");
  CHECK(result == 0);
}

}  // namespace
}  // namespace perfkit
