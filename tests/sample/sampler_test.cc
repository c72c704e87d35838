// A sampler of one thread: the contents of its samples, and one sample for each event.
#include "perfkit/sampler.h"

#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::FaultOptions;
using testing::ForEachSample;
using testing::FreshPages;

bool IsReadable(int fd, int timeout_ms = 0) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, timeout_ms) == 1;
}

// So that the code of starting and stopping is mapped: its own first faults would count.
void StartAndStopOnce() {
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  REQUIRE(sampler->Stop().ok());
}

TEST_CASE("each page fault gives a sample with its address, in order", "[sampler][law]") {
  StartAndStopOnce();
  FreshPages memory(100);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  const testing::OtherFaults others;
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->Stop().ok());
  const uint64_t beside = others.Beside(100);
  memory.Forget();
  memory.Touch(0, 100);  // stopped: these are not sampled
  uint64_t next = reinterpret_cast<uint64_t>(memory.data()), time = 0;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord& record) {
    CHECK(record.event == 0);
    CHECK(sample.task()->tid == static_cast<uint32_t>(gettid()));
    CHECK(*sample.time_ns() >= time);
    CHECK(*sample.time_ns() <= testing::NowNs());
    time = *sample.time_ns();
    if (*sample.address() >> 12 == next >> 12) next += 4096;
  });
  CHECK(next == reinterpret_cast<uint64_t>(memory.data()) + 100 * 4096);
  const SamplerStats stats = sampler->stats();
  CAPTURE(stats.events[0].counted);
  CHECK(testing::AreFaultsOf(stats.events[0].counted, 100, beside));
  testing::CheckAccountingBalances(stats);
  CHECK(stats.events[0].lost == 0);
  CHECK(stats.losses.empty());
  CHECK(stats.own_cpu_ns > 0);
}

TEST_CASE("a clock gives a sample every N nanoseconds of its thread's time", "[sampler][law]") {
  SamplerOptions options;
  options.events = {{.event = "cpu-clock:u", .rate = Period{200'000}}};
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::Spin(60'000'000);
  REQUIRE(sampler->Stop().ok());
  const uint64_t samples = testing::CountSamples(*sampler)[0];
  const EventAccounting accounting = sampler->stats().events[0];
  CHECK(samples == accounting.delivered);
  CHECK(samples > 20);
  CHECK(samples <= accounting.counted / 200'000 + 1);
  CHECK(accounting.unsampled_ns <= accounting.counted);
  // What the samples stand for and what none stands for are all of the time.
  CHECK(accounting.unsampled_ns + samples * 200'000 >= accounting.counted);
}

TEST_CASE("the kernel follows frame pointers as deep as it was asked to", "[sampler]") {
  FreshPages memory(20);
  SamplerOptions options = FaultOptions();
  options.stack = CallStack::FramePointers(2);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 20);
  REQUIRE(sampler->Stop().ok());
  size_t samples = 0;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    ++samples;
    const Words pcs = sample.chain().part(ChainContext::kUser);
    REQUIRE(pcs.size() >= 1);
    CHECK(pcs.size() <= 2);
    CHECK(pcs[0] == *sample.ip());
  });
  CHECK(samples >= 20);
}

// Touches a page while a unique pattern lies on the stack.
__attribute__((noinline, no_sanitize("address", "thread"))) void TouchWithPattern(FreshPages& memory) {
  volatile uint64_t pattern[4] = {0x1badb002feedface, 2, 0x1badb002feedface, 4};
  memory.Touch(0, 1);
  (void)pattern[0];
  asm volatile("" : : "r"(pattern) : "memory");
}

TEST_CASE("a dump holds the registers and the stack as they were", "[sampler]") {
  FreshPages memory(1);
  SamplerOptions options = FaultOptions();
  options.stack = CallStack::UserDump(4096);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  TouchWithPattern(memory);
  REQUIRE(sampler->Stop().ok());
  bool found = false;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    if (*sample.address() >> 12 != reinterpret_cast<uint64_t>(memory.data()) >> 12) return;
    const UserStack stack = sample.user_stack();
    CHECK(stack.reserved == 4096);
    CHECK(stack.bytes.size() <= 4096);
    size_t seen = 0;
    for (size_t at = 0; at + 8 <= stack.bytes.size(); at += 8) {
      seen += detail::Load<uint64_t>(stack.bytes.data() + at) == 0x1badb002feedface;
    }
    found = seen >= 2;
#if defined(__x86_64__)
    CHECK(sample.user_registers()[8] == sample.ip());
    const std::optional<uint64_t> sp = sample.user_registers()[7];
    REQUIRE(sp.has_value());
    CHECK(reinterpret_cast<uint64_t>(__builtin_frame_address(0)) - *sp + (1 << 20) < (2 << 20));
#endif
  });
  CHECK(found);
}

TEST_CASE("followers' values come with each sample", "[sampler]") {
  FreshPages memory(50);
  SamplerOptions options = FaultOptions();
  options.events[0].followers = {"minor-faults:u", "major-faults:u"};
  options.events.push_back({.event = "minor-faults:u", .rate = Period{10}});  // alone, in the same layout
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 50);
  REQUIRE(sampler->Stop().ok());
  uint64_t leaders = 0, alone = 0;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord& record) {
    const std::optional<ReadValues> values = sample.read();
    REQUIRE(values.has_value());
    if (record.event == 1) {
      ++alone;
      CHECK(values->size() == 1);
      CHECK((*values)[0].value % 10 == 0);
      return;
    }
    ++leaders;
    REQUIRE(values->size() == 3);
    CHECK((*values)[0].value == leaders);
    CHECK((*values)[1].value + (*values)[2].value + 1 >= leaders);  // counted before or after the leader
    CHECK((*values)[1].value + (*values)[2].value <= leaders);
  });
  CHECK(leaders >= 50);
  CHECK(alone == leaders / 10);
}

TEST_CASE("another thread's samples wake a thread that polls, and its end does not", "[sampler][law]") {
  std::atomic<pid_t> tid{0};
  std::atomic<int> step{0};
  std::thread worker([&] {
    FreshPages memory(200);
    const auto nap = [] { testing::Sleep(50'000); };
    nap();
    tid = gettid();  // from here on it takes no faults of its own
    while (step < 1) nap();
    memory.Touch(0, 200);
    step = 2;
    while (step < 3) nap();
  });
  while (tid == 0) std::this_thread::yield();
  SamplerOptions options = FaultOptions(16 << 10);
  options.watermark_bytes = 1024;
  auto sampler = Sampler::Open(options, Target::Thread(tid));
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  CHECK_FALSE(IsReadable(sampler->poll_fd()));
  step = 1;
  CHECK(IsReadable(sampler->poll_fd(), 10'000));
  while (step < 2) std::this_thread::yield();
  uint64_t samples = 0;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    ++samples;
    CHECK(sample.task()->tid == static_cast<uint32_t>(tid.load()));
  });
  CHECK(samples >= 200);
  step = 3;
  worker.join();
  testing::AwaitEnd(tid);
  testing::DrainAll(*sampler);
  CHECK_FALSE(IsReadable(sampler->poll_fd(), 20));
  REQUIRE(sampler->Stop().ok());
  testing::CheckAccountingBalances(sampler->stats());
}

TEST_CASE("the rate of a running event can be changed", "[sampler]") {
  FreshPages memory(1000);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->SetRate(0, Period{10}).ok());
  const uint64_t before = testing::CountSamples(*sampler)[0];
  memory.Touch(100, 900);
  REQUIRE(sampler->Stop().ok());
  const uint64_t after = testing::CountSamples(*sampler)[0];
  CHECK(before >= 100);
  CHECK(after >= 85);
  CHECK(after <= (testing::kSanitized ? 110u : 95u));
  CHECK(absl::IsInvalidArgument(sampler->SetRate(0, Frequency{10})));
  CHECK(absl::IsInvalidArgument(sampler->SetRate(0, Period{0})));
  CHECK(absl::IsInvalidArgument(sampler->SetRate(1, Period{1})));
}

TEST_CASE("pausing gates the ring; what it hides is in the accounting", "[sampler]") {
  FreshPages memory(300);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->Pause().ok());
  REQUIRE(sampler->Pause().ok());
  memory.Touch(100, 100);
  REQUIRE(sampler->Resume().ok());
  REQUIRE(sampler->Resume().ok());
  memory.Touch(200, 100);
  REQUIRE(sampler->Stop().ok());
  CHECK(testing::AreFaultsOf(testing::CountSamples(*sampler)[0], 200));
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  CHECK(testing::AreFaultsOf(stats.events[0].paused, 100));
  CHECK(stats.events[0].lost == 0);
  CHECK_FALSE(stats.paused_is_lower_bound);
}

TEST_CASE("stopped and started again, a sampler goes on", "[sampler]") {
  FreshPages memory(300);
  auto sampler = Sampler::Open(FaultOptions());
  REQUIRE(sampler.ok());
  memory.Touch(0, 100);
  REQUIRE(sampler->Start().ok());
  memory.Touch(100, 50);
  REQUIRE(sampler->Stop().ok());
  memory.Touch(150, 100);
  REQUIRE(sampler->Start().ok());
  memory.Touch(250, 50);
  Sampler moved = *std::move(sampler);
  REQUIRE(moved.Stop().ok());
  CHECK(testing::AreFaultsOf(testing::CountSamples(moved)[0], 100));
  testing::CheckAccountingBalances(moved.stats());
}

TEST_CASE("two samplers of one event on one thread do not disturb each other", "[sampler]") {
  FreshPages memory(100);
  auto first = Sampler::Open(FaultOptions()), second = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE((first.ok() && second.ok()));
  REQUIRE(first->Start().ok());
  REQUIRE(second->Start().ok());
  memory.Touch(0, 100);
  for (auto* const sampler : {&first, &second}) {
    REQUIRE((*sampler)->Stop().ok());
    CHECK(testing::CountSamples(**sampler)[0] >= 100);
    testing::CheckAccountingBalances((*sampler)->stats());
  }
}

TEST_CASE("times are by the clock that was asked for", "[sampler][law]") {
  FreshPages memory(1);
  SamplerOptions options = FaultOptions();
  options.clock_id = CLOCK_MONOTONIC_RAW;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const uint64_t before = testing::NowNs(CLOCK_MONOTONIC_RAW);
  memory.Touch(0, 1);
  const uint64_t after = testing::NowNs(CLOCK_MONOTONIC_RAW);
  REQUIRE(sampler->Stop().ok());
  bool found = false;
  ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    found = found || (*sample.time_ns() >= before && *sample.time_ns() <= after);
  });
  CHECK(found);
}

}  // namespace
}  // namespace perfkit
