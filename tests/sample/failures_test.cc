// A sampler whose system calls fail: it reports what it could not read or switch, and continues with the rest.
#include <atomic>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FaultOptions;
using testing::FreshPages;

TEST_CASE("a read that a signal interrupts is made again", "[failures]") {
  testing::FakeKernel fake;
  FreshPages memory(100);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const uint64_t counted = sampler->stats().events[0].counted;
  CHECK(counted >= 100);
  for (uint64_t n = 1, reads = 1; n <= reads; ++n) {
    const uint64_t before = fake.calls(Call::kRead);
    fake.FailNth(n, EINTR, Call::kRead);
    const SamplerStats stats = sampler->stats();
    fake.Forgive();
    reads = fake.calls(Call::kRead) - before;
    CHECK(stats.events[0].counted == counted);
    CHECK_FALSE(stats.events[0].counted_is_lower_bound);
    CHECK_FALSE(stats.lost_is_lower_bound);
  }
}

ssize_t ReadNothing(int, void*, size_t) { return 0; }

// Of an event in error state the kernel gives 0 bytes.
TEST_CASE("a count that cannot be read is a lower bound, and says so", "[failures]") {
  testing::FakeKernel fake;
  FreshPages memory(200);
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  const uint64_t before = sampler->stats().events[0].counted;
  CHECK(before >= 100);
  memory.Touch(100, 100);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const auto read = fake.below().read;
  for (const bool nothing : {false, true}) {
    if (nothing) {
      fake.below().read = ReadNothing;
    } else {
      fake.FailAll(Call::kRead, EIO);
    }
    const SamplerStats failing = sampler->stats();
    fake.Forgive();
    fake.below().read = read;
    CHECK(failing.events[0].counted_is_lower_bound);
    CHECK(failing.lost_is_lower_bound);
    CHECK(failing.events[0].counted >= before);
    const SamplerStats stats = sampler->stats();
    CHECK_FALSE(stats.events[0].counted_is_lower_bound);
    CHECK_FALSE(stats.lost_is_lower_bound);
    CHECK(failing.events[0].counted <= stats.events[0].counted);
    testing::CheckAccountingBalances(stats);
  }
}

TEST_CASE("a count that could not be read when its event was closed stays a lower bound", "[failures]") {
  testing::FakeKernel fake;
  FreshPages memory(100);
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->SetRate(0, Period{2}).ok());
  fake.FailAll(Call::kRead, EIO);
  testing::DrainAll(*sampler);
  fake.Forgive();
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].delivered >= 100);
  CHECK(stats.events[0].counted_is_lower_bound);
  CHECK(stats.lost_is_lower_bound);
}

TEST_CASE("whichever call fails in a change of the stacks, all events go on", "[failures]") {
  testing::FakeKernel fake;
  FreshPages memory(50);
  SamplerOptions options = FaultOptions();
  options.events.push_back({.event = "minor-faults:u", .rate = Period{1}});
  options.stack = CallStack::UserDump(1024);
  for (const Call call : {Call::kIoctl, Call::kPerfEventOpen}) {
    for (uint64_t n = 1, calls = 1; n <= calls; ++n) {
      auto sampler = Sampler::Open(options);
      REQUIRE(sampler.ok());
      REQUIRE(sampler->Start().ok());
      REQUIRE(sampler->SetStackBytes(2048).ok());
      const uint64_t before = fake.calls(call);
      fake.FailNth(n, ENOMEM, call);
      testing::CountSamples(*sampler);
      calls = fake.calls(call) - before;
      fake.Forgive();
      testing::CountSamples(*sampler);
      memory.Forget();
      memory.Touch(0, 50);
      REQUIRE(sampler->Stop().ok());
      std::map<uint32_t, uint64_t> samples;
      testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord& record) {
        samples[record.event] += sample.user_stack().reserved == 2048;
      });
      INFO("call " << n << " of " << calls);
      CHECK((samples[0] >= 50 && samples[1] >= 50));
      CHECK(sampler->stats().events_stuck == 0);
      testing::CheckAccountingBalances(sampler->stats());
    }
  }
  CHECK(fake.Leaks() == "");
}

TEST_CASE("an event that could not be switched on is reported until it is", "[failures]") {
  testing::FakeKernel fake;
  SamplerOptions options = FaultOptions();
  options.stack = CallStack::UserDump(1024);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  REQUIRE(sampler->SetStackBytes(2048).ok());
  static std::atomic<bool> refuse{false};
  refuse = true;
  fake.below().ioctl = [](int fd, unsigned long request, unsigned long argument) {
    if (request == sys::kIocEnable && refuse) return errno = EIO, -1;
    return sys::kLinux.ioctl(fd, request, argument);
  };
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().events_stuck == 1);
  refuse = false;
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().events_stuck == 0);
}

TEST_CASE("a start that fails leaves all events off", "[failures]") {
  testing::FakeKernel fake;
  FreshPages memory(100);
  SamplerOptions options = FaultOptions();
  options.events.push_back({.event = "minor-faults:u", .rate = Period{1}});
  options.side_band = true;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  for (uint64_t n = 1; n <= 3; ++n) {
    fake.FailNth(n, ENOMEM, Call::kIoctl);
    CHECK_FALSE(sampler->Start().ok());
    fake.Forgive();
    const uint64_t before = sampler->stats().events[0].counted;
    memory.Forget();
    memory.Touch(0, 100);
    CHECK(sampler->stats().events[0].counted == before);
  }
  CHECK(sampler->Start().ok());
  memory.Forget();
  memory.Touch(0, 100);
  REQUIRE(sampler->Stop().ok());
  CHECK(testing::CountSamples(*sampler)[1] >= 100);
}

}  // namespace
}  // namespace perfkit
