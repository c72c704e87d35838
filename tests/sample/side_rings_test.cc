// The side band has rings of its own: no pause, overwriting or flood of samples removes a name or a thread.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FreshPages;

// Addresses that were never touched: what a sampler's Start allocates and frees would be mapped as code after it.
constexpr size_t kReserved = 64 << 20;
char* const g_reserved =
    static_cast<char*>(mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

// MappedCode is mapped there as dlopen maps it, and faults as it runs.
class MappedCode {
 public:
  static constexpr size_t kPages = 16, kBytes = kPages * 4096;

  MappedCode() : at_(Map(Next(), PROT_READ | PROT_EXEC)) { madvise(at_, kBytes, MADV_NOHUGEPAGE); }
  ~MappedCode() { Map(at_, PROT_NONE); }
  MappedCode(const MappedCode&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;

  __attribute__((noinline, no_sanitize("thread", "address"))) void Touch() const {
    for (size_t i = 0; i < kPages; ++i) (void)*(static_cast<const volatile char*>(at_) + i * 4096);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }
  bool Has(uint64_t address) const { return address - this->address() < kBytes; }

 private:
  static void* Next() {
    static size_t next = 0;
    return g_reserved + (next += kBytes) % kReserved;
  }
  static void* Map(void* at, int protection) {
    return mmap(at, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  void* at_;
};

// The records of drains, in their order.
struct Heard {
  size_t named = 0, nameless = 0;  // samples in `code`, after its MMAP record and before it
  bool mapped = false;
  std::set<uint32_t> born, ended;

  void Listen(Sampler& sampler, const MappedCode& code) {
    sampler.Drain([&](const SamplerRecord& record) {
      Dispatch(record, sampler.layout(),
               Overloaded{[&](const Sample& sample) {
                            if (code.Has(*sample.address())) ++(mapped ? named : nameless);
                          },
                          [&](const MmapRecord& map) { mapped |= map.address == code.address(); },
                          [&](const ForkRecord& fork) { born.insert(fork.tid); },
                          [&](const ExitRecord& exit) { ended.insert(exit.tid); }});
    });
  }
};

SamplerOptions WithSideBand(RingMode mode, size_t ring_bytes) {
  SamplerOptions options = testing::FaultOptions(ring_bytes);
  options.side_band = true;
  options.mode = mode;
  return options;
}

void CheckPauseKeepsNames(RingMode mode, SamplerOptions::Rings rings, const Target& target) {
  SamplerOptions options = WithSideBand(mode, 64 << 10);
  options.rings = rings;
  auto sampler = Sampler::Open(options, target);
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  REQUIRE(sampler->Pause().ok());
  const MappedCode code;
  pid_t tid = 0;
  std::thread([&] { tid = gettid(); }).join();
  testing::AwaitEnd(tid);
  REQUIRE(sampler->Resume().ok());
  code.Touch();
  REQUIRE(sampler->Stop().ok());
  Heard heard;
  heard.Listen(*sampler, code);
  // A sanitizer's own faults, on its shadow of our memory, may fill the ring.
  const SamplerStats stats = sampler->stats();
  const bool is_whole = stats.events[0].lost == 0 && stats.overwritten_bytes == 0;
  if (is_whole || !testing::kSanitized) CHECK(heard.named == MappedCode::kPages);
  CHECK(heard.nameless == 0);
  CHECK(heard.born.contains(static_cast<uint32_t>(tid)));
  // The end of a thread is its own to tell, and a ring of its own it has none.
  const bool tells_ends = target.kind == Target::Kind::kAllThreads && rings == SamplerOptions::Rings::kPerCpu;
  CHECK(heard.ended.contains(static_cast<uint32_t>(tid)) == tells_ends);
  CHECK(sampler->stats().side_band_lost == 0);
}

TEST_CASE("what is mapped and who starts during a pause is told, before the samples after it", "[side_band][law]") {
  for (const RingMode mode : {RingMode::kStream, RingMode::kOverwrite}) {
    for (const auto rings : {SamplerOptions::Rings::kPerCpu, SamplerOptions::Rings::kPerThread}) {
      CheckPauseKeepsNames(mode, rings, Target::AllThreads());
    }
    CheckPauseKeepsNames(mode, SamplerOptions::Rings::kPerCpu, Target::ThisThread());
  }
}

TEST_CASE("what is mapped is told however much is overwritten", "[side_band][snapshot]") {
  FreshPages memory(2000);
  auto sampler = Sampler::Open(WithSideBand(RingMode::kOverwrite, 8192), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  const MappedCode code;
  memory.Touch(0, memory.pages());
  code.Touch();
  REQUIRE(sampler->Snapshot().ok());
  Heard heard;
  heard.Listen(*sampler, code);
  CHECK(heard.mapped);
  CHECK(heard.nameless == 0);
  CHECK(heard.named > 0);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CHECK(sampler->stats().overwritten_bytes > 0);
  CHECK(sampler->stats().side_band_lost == 0);
}

// In the order of time: what is mapped after a snapshot is not told before its samples.
TEST_CASE("what is mapped after a snapshot is told after its samples", "[side_band][snapshot]") {
  FreshPages memory(10);
  auto sampler = Sampler::Open(WithSideBand(RingMode::kOverwrite, 64 << 10), Target::ThisThread());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 10);
  REQUIRE(sampler->Snapshot().ok());
  const MappedCode code;
  REQUIRE(sampler->Stop().ok());
  bool mapped = false;
  size_t before = 0, after = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             Overloaded{[&](const Sample& sample) {
                          const uint64_t at = *sample.address() - reinterpret_cast<uint64_t>(memory.data());
                          if (at < memory.pages() * 4096) ++(mapped ? after : before);
                        },
                        [&](const MmapRecord& map) { mapped |= map.address == code.address(); }});
  });
  CHECK(before == 10);
  CHECK(after == 0);
  CHECK(mapped);
}

TEST_CASE("rings full of samples lose nothing of the side band", "[side_band][law]") {
  FreshPages memory(1000);
  auto sampler = Sampler::Open(WithSideBand(RingMode::kStream, 16 << 10), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::set<uint32_t> tids;
  for (int i = 0; i < 10; ++i) {
    memory.Forget();
    memory.Touch(0, memory.pages());  // more than fit
    pid_t tid = 0;
    std::thread([&] { tid = gettid(); }).join();
    testing::AwaitEnd(tid);
    tids.insert(static_cast<uint32_t>(tid));
  }
  const MappedCode code;
  REQUIRE(sampler->Stop().ok());
  Heard heard;
  heard.Listen(*sampler, code);
  CHECK(heard.mapped);
  for (const uint32_t tid : tids) CHECK((heard.born.contains(tid) && heard.ended.contains(tid)));
  const SamplerStats stats = sampler->stats();
  CHECK(stats.events[0].lost > 0);
  CHECK(stats.side_band_lost == 0);
  testing::CheckAccountingBalances(stats);
}

TEST_CASE("poll_fd wakes for a side band that fills up, and what is lost of it is counted", "[side_band][law]") {
  for (const RingMode mode : {RingMode::kStream, RingMode::kOverwrite}) {
    auto sampler = Sampler::Open(WithSideBand(mode, 4096), Target::ThisThread());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    const MappedCode none;
    Heard heard;
    heard.Listen(*sampler, none);
    constexpr int kMaps = 200;  // of more than 64 bytes each
    for (int i = 0; i < kMaps; ++i) const MappedCode map;
    REQUIRE(sampler->Stop().ok());
    pollfd ready{.fd = sampler->poll_fd(), .events = POLLIN, .revents = 0};
    CHECK(poll(&ready, 1, 0) == 1);
    uint64_t told = 0;
    sampler->Drain([&](const SamplerRecord& record) {
      told += !record.synthesized && record.type == static_cast<uint32_t>(RecordType::kMmap2);
    });
    CHECK(told > 0);
    CHECK(told < kMaps);
    CHECK(told + sampler->stats().side_band_lost >= kMaps);
  }
}

TEST_CASE("an ordinary user's small limit takes the samples' rings first", "[side_band]") {
  CHECK(testing::AsOrdinaryUser([] {
    SamplerOptions options = WithSideBand(RingMode::kStream, 4 << 20);
    auto sampler = Sampler::Open(options, Target::AllThreads());
    if (!sampler.ok() || !sampler->Start().ok()) return absl::IsResourceExhausted(sampler.status());
    const MappedCode code;
    code.Touch();
    if (!sampler->Stop().ok()) return false;
    Heard heard;
    heard.Listen(*sampler, code);
    return heard.named == MappedCode::kPages && heard.nameless == 0;
  }));
}

void MoveToCpu(size_t cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

// Runs `body` in a thread with the number `tid`, which has ended. False if that could not be had.
template <class Body>
bool InThreadOfNumber(pid_t tid, Body&& body) {
  bool ran = false;
  for (int attempt = 0; attempt < 200 && !ran; ++attempt) {
    const int last = ::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (last < 0) return false;
    const std::string before = std::to_string(tid - 1);
    const bool set = write(last, before.data(), before.size()) > 0;
    close(last);
    if (!set) return false;
    std::thread([&] {
      if (gettid() == tid) ran = true, body();
    }).join();
  }
  return ran;
}

// Between the events of P's first CPU and those of its second P starts N, which has two of a kind on the first CPU.
std::atomic<pid_t> g_bearer{0}, g_borne{0};

int OpenAndLetBearOne(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  const int fd = sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  if (pid != 0 && pid == g_bearer && cpu == 0 && attr->config == sys::kSwPageFaults) {
    g_bearer = -pid;
    while (g_borne == 0) std::this_thread::yield();
  }
  return fd;
}

TEST_CASE("a number that is given out again belongs to its new thread, although rings were full", "[threads][law]") {
  const size_t cpus = std::thread::hardware_concurrency();
  if (cpus < 2) SKIP_TEST("this takes two CPUs");
  g_bearer = g_borne = 0;
  std::atomic<bool> end{false};
  FreshPages flood(500), fresh(50);
  std::thread parent([&] {
    g_bearer = gettid();
    while (g_bearer > 0) std::this_thread::yield();
    std::thread([&] {
      g_borne = gettid();
      while (!end) std::this_thread::yield();
    }).join();
  });
  while (g_bearer == 0) std::this_thread::yield();
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenAndLetBearOne;
  auto sampler = Sampler::Open(testing::FaultOptions(8192), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  for (size_t cpu = 0; cpu < cpus; ++cpu) {
    MoveToCpu(cpu);
    flood.Forget();
    flood.Touch(0, flood.pages());  // more than fit
  }
  sched_setaffinity(0, sizeof(all), &all);
  end = true;
  parent.join();
  testing::AwaitEnd(g_borne);
  const bool reused = InThreadOfNumber(g_borne, [&] {
    testing::DrainAll(*sampler);  // only now: its own start fell into the full rings, too
    fresh.Touch(0, fresh.pages());
  });
  REQUIRE(sampler->Stop().ok());
  uint64_t seen = 0;
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    seen += *sample.address() - reinterpret_cast<uint64_t>(fresh.data()) < fresh.pages() * 4096;
  });
  testing::CheckAccountingBalances(sampler->stats());
  if (!reused) SKIP_TEST("this user may not say which number a thread has");
  CHECK(seen == fresh.pages());
}

}  // namespace
}  // namespace perfkit
