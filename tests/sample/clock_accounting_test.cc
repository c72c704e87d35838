// Two numbers of the accounting that only accidents change: a clock's time in lost samples, and times that the kernel
// throttled.
#include <sys/mman.h>

#include <array>
#include <cstring>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

constexpr uint64_t kShortNs = 20'000, kLongNs = 50'000;

// So many that a sample more or less for each thread and CPU makes no difference.
constexpr uint64_t kLosses = 300, kUncertain = 64;

// Until the ring has overflowed; kernels before 6.0 tell only when there is room again.
void SpinUntilLost(const Sampler& sampler) {
  const uint64_t before = sampler.stats().events[0].lost;
  for (SamplerStats now; now.events.empty() || now.events[0].lost < before + kLosses;) {
    testing::Spin(1'000'000);
    now = sampler.stats();
    if (now.lost_is_lower_bound) return;
  }
}

// The law: the time that samples represent, delivered or lost, plus unsampled_ns is all of the time. One sample too
// many is allowed, if it was taken when the clock was read.
TEST_CASE("a clock's time in lost samples is neither represented nor unsampled", "[clock_accounting][law]") {
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    SamplerOptions options;
    options.events = {{.event = "task-clock", .rate = Period{kShortNs}}};
    options.ring_bytes = 4096;
    auto sampler = Sampler::Open(options, target);
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    SpinUntilLost(*sampler);
    REQUIRE(sampler->Stop().ok());
    testing::DrainAll(*sampler);
    const SamplerStats stats = sampler->stats();
    const EventAccounting& accounting = stats.events[0];
    if (stats.lost_is_lower_bound) continue;  // a kernel before 6.0
    INFO("counted " << accounting.counted << ", represented " << accounting.represented << ", lost "
                    << accounting.lost);
    CHECK(accounting.lost >= kLosses);
    CHECK(accounting.represented == kShortNs * accounting.delivered);
    const uint64_t all = accounting.represented + kShortNs * accounting.lost + accounting.unsampled_ns;
    CHECK(all >= accounting.counted);
    CHECK(all <= accounting.counted + kUncertain * kShortNs);
  }
}

TEST_CASE("samples that were lost before a change of the rate stand for the old one", "[clock_accounting][law]") {
  SamplerOptions options;
  options.events = {{.event = "task-clock", .rate = Period{kShortNs}}};
  options.ring_bytes = 4096;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  SpinUntilLost(*sampler);
  testing::Spin(20'000'000);  // these losses have not been read yet
  REQUIRE(sampler->Stop().ok());
  REQUIRE(sampler->SetRate(0, Period{kLongNs}).ok());
  const EventAccounting before = sampler->stats().events[0];
  testing::DrainAll(*sampler);
  REQUIRE(sampler->Start().ok());
  SpinUntilLost(*sampler);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  const EventAccounting& accounting = stats.events[0];
  if (stats.lost_is_lower_bound) return;
  const uint64_t lost_ns = kShortNs * before.lost + kLongNs * (accounting.lost - before.lost);
  CHECK(accounting.represented + lost_ns + accounting.unsampled_ns >= accounting.counted);
  CHECK(accounting.represented + lost_ns + accounting.unsampled_ns <= accounting.counted + kUncertain * kLongNs);
}

// A ring of ordinary memory, which the test writes to.
struct WrittenRing {
  static constexpr uint64_t kId = 4711;
  std::byte* page = nullptr;

  void Put(RecordType type, uint64_t id) {
    constexpr uint64_t kBytes = 56;
    auto* const user = reinterpret_cast<UserPage*>(page);
    const std::array<uint64_t, 7> words = {static_cast<uint64_t>(type) | kBytes << 48,
                                           testing::NowNs(),  // time, id, stream_id
                                           id,
                                           id,
                                           uint64_t{1} << 32 | 1,  // trailer: TID, TIME, IDENTIFIER
                                           testing::NowNs(),
                                           id};
    std::memcpy(page + getpagesize() + user->data_head % 4096, words.data(), kBytes);
    user->data_head += kBytes;
  }
};
WrittenRing g_ring;

TEST_CASE("times that the kernel throttled an event are counted and told", "[clock_accounting][law]") {
  testing::FakeKernel fake;
  fake.below().mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd < 0) return sys::kLinux.mmap(at, size, protection, flags, fd, offset);
    void* const memory = sys::kLinux.mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_ring.page = static_cast<std::byte*>(memory);
    return memory;
  };
  fake.below().ioctl = [](int fd, unsigned long request, unsigned long argument) {
    if (request == sys::kIocSetOutput) return 0;
    if (request != sys::kIocId) return sys::kLinux.ioctl(fd, request, argument);
    *reinterpret_cast<uint64_t*>(argument) = WrittenRing::kId;
    return 0;
  };
  SamplerOptions options;
  options.events = {{.event = "task-clock:u", .rate = Period{1'000'000}}};
  options.ring_bytes = static_cast<size_t>(getpagesize());
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(g_ring.page != nullptr);
  g_ring.Put(RecordType::kThrottle, WrittenRing::kId);
  g_ring.Put(RecordType::kUnthrottle, WrittenRing::kId);
  g_ring.Put(RecordType::kThrottle, WrittenRing::kId);
  g_ring.Put(RecordType::kThrottle, WrittenRing::kId + 1);
  uint64_t told = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    told += record.type == static_cast<uint32_t>(RecordType::kThrottle) && record.event == 0;
  });
  CHECK(told == 2);
  CHECK(sampler->stats().events[0].throttled == 2);
}

}  // namespace
}  // namespace perfkit
