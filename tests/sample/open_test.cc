// Opening a sampler: refusals and their texts, limits, faults at each system call, forks.
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/sample/support.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FaultOptions;

std::string Refused(const SamplerOptions& options) {
  const auto sampler = Sampler::Open(options);
  INFO(sampler.status());
  CHECK(absl::IsInvalidArgument(sampler.status()));
  return std::string(sampler.status().message());
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// As arm64's does: a group that is too large by its first event is refused only when that one is switched on.
TEST_CASE("a group is tried switched on, so that one that can never run is refused", "[sampler_open]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    static bool leader_is_on = false;
    if (group < 0) leader_is_on = attr->disabled == 0 && attr->read_format != kReadLost;
    const int fd = sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
    if (fd < 0 || group < 0 || !leader_is_on) return fd;  // rights are checked first
    sys::kLinux.close(fd);
    errno = EINVAL;
    return -1;
  };
  SamplerOptions options = FaultOptions();
  CHECK(Sampler::Open(options).ok());
  options.events[0].followers = {"cpu-clock"};
  CHECK(Has(Refused(options), "too many events for one group"));
}

TEST_CASE("options that make no sense are refused with the reason", "[sampler_open]") {
  SamplerOptions options;
  CHECK(Has(Refused(options), "at least one event"));
  options.events = {{.event = "cpu-clock"}};
  options.cpu_budget = -1;
  CHECK(Refused(options) ==
        "SamplerOptions::cpu_budget is -1. Remedy: a share of one CPU, such as 0.02, or 0 for none.");
  options.cpu_budget = std::numeric_limits<double>::infinity();
  CHECK(Has(Refused(options), "SamplerOptions::cpu_budget is inf"));
  options.cpu_budget = 0;
  options.events = {{.event = "no-such-event"}};
  CHECK(Has(Refused(options), "no-such-event"));
  options.events = {{.event = "cpu-clock", .rate = Frequency{0}}};
  CHECK(Has(Refused(options), "rate of 0"));
  options.events = {{.event = "context-switches:u"}};
  CHECK(Has(Refused(options), "never give a sample"));
  options.events = {{.event = "cpu-clock:u", .rate = Period{1'000'000}}};
  options.stack = CallStack::UserDump(12);
  CHECK(Has(Refused(options), "multiple of 8"));
  options.stack = CallStack::UserDump(1 << 20);
  CHECK(Has(Refused(options), "at most"));
  options.stack = {};
  options.fields = kSampleCallchain;
  CHECK(Has(Refused(options), "options of their own"));
  options.fields = 0;
  options.events.push_back({.event = "page-faults:u"});
  options.events.push_back({.event = "faults", .rate = Period{5}});
  CHECK(Has(Refused(options), "twice"));
  options.events[0].followers = {"nothing-like-it"};
  CHECK(Has(Refused(options), "nothing-like-it"));
}

TEST_CASE("what only hardware events give is refused without one, not given as 0", "[sampler_open]") {
  SamplerOptions options = FaultOptions();
  options.branches = BranchFilter::Parse("any,u").value();
  CHECK(Has(Refused(options), "branch stacks come from hardware events"));
  options.branches.reset();
  for (const uint64_t field : {kSampleWeight, kSampleWeightStruct, kSampleDataSrc, kSampleTransaction}) {
    options.fields = field;
    CHECK(Has(Refused(options), "they would all be 0"));
  }
  options.fields = kSampleAddr | kSampleCpu;
  CHECK(Sampler::Open(options).ok());
}

// Each clock that the kernel supports for records; it refuses others, and the message has the requested one.
TEST_CASE("clocks are those of the kernel, others are refused", "[sampler_open][law]") {
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI}) {
    SamplerOptions options = FaultOptions(8192);
    options.clock_id = clock;
    auto sampler = Sampler::Open(options);
    INFO(sampler.status());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    testing::FreshPages memory(4);
    const uint64_t before = testing::NowNs(clock);
    memory.Touch(0, 4);
    const uint64_t after = testing::NowNs(clock);
    REQUIRE(sampler->Stop().ok());
    int inside = 0;
    testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
      inside += *sample.time_ns() >= before && *sample.time_ns() <= after;
    });
    CHECK(inside >= 4);
  }
  SamplerOptions options = FaultOptions(8192);
  options.clock_id = CLOCK_THREAD_CPUTIME_ID;
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
}

// All rings together, those of threads that are born later too.
TEST_CASE("the ceiling on memory holds for rings of threads, late ones too", "[sampler_open][law]") {
  SamplerOptions options = FaultOptions(16 << 10);
  options.rings = SamplerOptions::Rings::kPerThread;
  options.memory_bytes = 40 << 10;  // two rings, half a one, and then none
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i)
    threads.emplace_back([&] {
      while (!end) testing::Sleep(200'000);
    });
  // What was written a moment ago, a drain leaves to the next: records of birth as well.
  while (sampler->stats().threads_missed == 0) {
    testing::DrainAll(*sampler);
    REQUIRE(sampler->rings() <= 3);
  }
  CHECK(sampler->rings() >= 2);
  end = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  testing::CheckAccountingBalances(sampler->stats());
}

TEST_CASE("a target that may not be sampled is told with the events that were asked for", "[sampler_open]") {
  SamplerOptions options = FaultOptions();
  options.events.push_back({.event = "cpu-clock:u"});
  testing::FakeKernel fake;
  const auto refused = [&](const Target& target) {
    return std::string(Sampler::Open(options, target).status().message());
  };
  options.side_band = true;
  // Refuses all but Explain's dummy on this thread.
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    if (pid == 0) return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
    return errno = EACCES, -1;
  };
  const std::string process = refused(Target::Process(1)), system = refused(Target::System());
  CAPTURE(process, system);
  CHECK(process.starts_with("samples of events 'page-faults:u', 'cpu-clock:u' on process 1 ("));
  CHECK(system.starts_with("samples of events 'page-faults:u', 'cpu-clock:u' on the whole system ("));
  options.events.pop_back();
  CHECK(refused(Target::Process(1)).starts_with("samples of event 'page-faults:u' on process 1 ("));
  options.events.clear();
  CHECK(refused(Target::Process(1)).find(" of process 1: perf_event_open said") != std::string::npos);
}

TEST_CASE("a thread that does not exist cannot be sampled", "[sampler_open]") {
  CHECK(absl::IsNotFound(Sampler::Open(FaultOptions(), Target::Thread(0x3ffffffe)).status()));
}

TEST_CASE("without locked memory rings shrink, and say why", "[sampler_open]") {
  testing::FakeKernel fake;
  fake.below().mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && size > 9 * 4096) return errno = EPERM, MAP_FAILED;
    return mmap(at, size, protection, flags, fd, offset);
  };
  {
    const auto sampler = Sampler::Open(FaultOptions());
    INFO(sampler.status());
    REQUIRE(sampler.ok());
    CHECK(sampler->ring_bytes() == 8 * 4096);
    CHECK(absl::IsResourceExhausted(sampler->ring_status()));
    CHECK(Has(std::string(sampler->ring_status().message()), "perf_event_mlock_kb"));
    fake.FailAll(testing::Call::kMmap, EPERM);
    CHECK(absl::IsResourceExhausted(Sampler::Open(FaultOptions()).status()));
  }
  CHECK(fake.Leaks() == "");
}

TEST_CASE("a ceiling on memory holds for all rings together", "[sampler_open]") {
  SamplerOptions options = FaultOptions();
  options.memory_bytes = 64 << 10;
  const auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  CHECK(sampler->ring_bytes() == 64 << 10);
  CHECK(Has(std::string(sampler->ring_status().message()), "memory_bytes"));
  options.memory_bytes = 100;
  for (const auto rings : {SamplerOptions::Rings::kPerThread, SamplerOptions::Rings::kPerCpu}) {
    options.rings = rings;
    CHECK(absl::IsResourceExhausted(Sampler::Open(options).status()));
    const absl::Status refused = Sampler::Open(options, Target::AllThreads()).status();
    CHECK(absl::IsResourceExhausted(refused));
    const bool may_have_fewer = rings == SamplerOptions::Rings::kPerThread;
    CHECK(Has(std::string(refused.message()), "Rings::kPerCpu") == may_have_fewer);
  }
  const auto odd = Sampler::Open(FaultOptions(5000));  // rounded up
  REQUIRE(odd.ok());
  CHECK(odd->ring_bytes() == 8192);
  CHECK(odd->ring_status().ok());
}

TEST_CASE("without descriptors the message says how many are needed", "[sampler_open]") {
  testing::FakeKernel fake;
  SamplerOptions options = FaultOptions();
  options.rings = SamplerOptions::Rings::kPerCpu;
  // The last descriptor that Open needs, on a machine of any size. The first Open in a process also finds out about the
  // kernel, and threads of other tests may still be ending: it is tried until that one is needed.
  const auto refusal = [&] {
    for (;;) {
      fake.Forgive();
      const uint64_t before = fake.calls(testing::Call::kPerfEventOpen);
      REQUIRE(Sampler::Open(options, Target::AllThreads()).ok());
      fake.FailNth(fake.calls(testing::Call::kPerfEventOpen) - before, EMFILE, testing::Call::kPerfEventOpen);
      const auto sampler = Sampler::Open(options, Target::AllThreads());
      if (!sampler.ok()) return sampler.status();
    }
  };
  const absl::Status status = refusal();
  INFO(status);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(Has(std::string(status.message()), "descriptors"));
  fake.below().getrlimit = [](int resource, rlimit* out) {
    CHECK(resource == RLIMIT_NOFILE);
    *out = {123, 456};
    return 0;
  };
  const std::string text(refusal().message());
  CHECK(Has(text, " besides those that are open; the limit is 123 (ulimit -n)."));
  for (const char* const wrong : {" 1 threads", " 1 CPUs", " 1 events", " 1 rings"}) CHECK_FALSE(Has(text, wrong));
}

TEST_CASE("without descriptors for each thread on each CPU, rings of threads do, unless those of CPUs were asked for",
          "[sampler_open]") {
  SamplerOptions options = FaultOptions();
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    if (cpu >= 0) return errno = EMFILE, -1;
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  };
  {
    auto sampler = Sampler::Open(options, Target::AllThreads());
    REQUIRE(sampler.ok());
    CHECK(absl::IsResourceExhausted(sampler->ring_status()));
    const std::string status(sampler->ring_status().message());
    INFO(status);
    CHECK((Has(status, "(Rings::kPerThread)") && Has(status, "ulimit -n")));
    REQUIRE(sampler->Start().ok());
    testing::FreshPages memory(50);
    memory.Touch(0, 50);
    REQUIRE(sampler->Stop().ok());
    CHECK(testing::CountSamples(*sampler)[0] >= 50);
    testing::CheckAccountingBalances(sampler->stats());
  }
  CHECK(fake.Leaks() == "");
  options.rings = SamplerOptions::Rings::kPerCpu;
  CHECK(absl::IsResourceExhausted(Sampler::Open(options, Target::AllThreads()).status()));
  options.rings = SamplerOptions::Rings::kPerThread;
  CHECK(Sampler::Open(options, Target::AllThreads())->ring_status().ok());
  // If they can't be opened either, the error is that of the rings of CPUs.
  options.rings = SamplerOptions::Rings::kAuto;
  fake.FailAll(testing::Call::kPerfEventOpen, EMFILE);
  CHECK(absl::IsResourceExhausted(Sampler::Open(options, Target::AllThreads()).status()));
}

TEST_CASE("rings of CPUs that were not asked for leave descriptors for what is opened next", "[sampler_open]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  bool by_cpu = false;
  for (rlim_t most = 4; most < 2000 && !by_cpu; ++most) {
    const rlimit few{most, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto sampler = Sampler::Open(FaultOptions(16 << 10), Target::AllThreads());
    by_cpu = sampler.ok() && sampler->ring_status().ok();
    int ends[2] = {-1, -1};
    const bool has_pipe = pipe(ends) == 0;
    for (const int end : ends) close(end);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(has_pipe >= by_cpu);
  }
  CHECK(by_cpu);
}

TEST_CASE("without a descriptor for a ring or an event, rings do not shrink, and the remedy is more descriptors",
          "[sampler_open]") {
  const auto rings = GENERATE(SamplerOptions::Rings::kPerCpu, SamplerOptions::Rings::kPerThread);
  const bool whole_machine = GENERATE(false, true);
  CAPTURE(rings, whole_machine);
  SamplerOptions options = FaultOptions(128 << 10);
  options.rings = rings;
  const Target target = whole_machine ? Target::System() : Target::AllThreads();
  testing::FakeKernel fake;
  const absl::Status permitted = Sampler::Open(options, target).status();
  if (whole_machine && absl::IsPermissionDenied(permitted)) SKIP_TEST("this user may not watch CPUs");
  REQUIRE(permitted.ok());
  for (const auto& [error, remedy] : {std::pair(EMFILE, "ulimit -n"), std::pair(ENFILE, "fs.file-max")}) {
    for (uint64_t n = 1; n < 10'000; ++n) {
      CAPTURE(error, n);
      fake.FailNth(n, error, testing::Call::kPerfEventOpen);
      const auto sampler = Sampler::Open(options, target);
      if (fake.struck() == testing::Call::kAny) break;  // Open needs fewer
      if (sampler.ok()) {                               // it did without
        CHECK_FALSE(Has(std::string(sampler->ring_status().message()), "descriptor"));
      } else {
        CHECK(absl::IsResourceExhausted(sampler.status()));
        CHECK(Has(std::string(sampler.status().message()), remedy));
      }
    }
  }
}

TEST_CASE("a kernel that counts no losses gives lower bounds", "[sampler_open]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    if ((attr->read_format & kReadLost) != 0) return errno = EINVAL, -1;
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  };
  testing::FreshPages memory(1000);
  auto sampler = Sampler::Open(FaultOptions(4096));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 990);
  testing::DrainAll(*sampler);
  memory.Touch(990, 10);  // The first fault brings the LOST record.
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const SamplerStats stats = sampler->stats();
  CHECK(stats.lost_is_lower_bound);
  CHECK(stats.events[0].lost > 0);
  CHECK(stats.events[0].accounted() <= stats.events[0].counted);
}

TEST_CASE("the child of a fork holds nothing and may have its own", "[sampler_open]") {
  auto sampler = Sampler::Open(FaultOptions(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::FreshPages memory(20);
  memory.Touch(0, 10);
  CHECK(testing::AsOrdinaryUser([&] {
    bool fine = sampler->Drain([](const SamplerRecord&) {}) == 0;
    fine = fine && absl::IsFailedPrecondition(sampler->Start()) && absl::IsFailedPrecondition(sampler->Stop());
    fine = fine && absl::IsFailedPrecondition(sampler->Pause()) && sampler->stats().events.empty();
    const Sampler dead = *std::move(sampler);  // and dies here
    auto own = Sampler::Open(FaultOptions(8192), Target::AllThreads());
    if (!own.ok() || !own->Start().ok()) return false;
    testing::FreshPages more(30);
    more.Touch(0, 30);
    return fine && own->Stop().ok() && testing::CountSamples(*own)[0] >= 30;
  }));
  memory.Touch(10, 10);
  REQUIRE(sampler->Stop().ok());
  CHECK(testing::CountSamples(*sampler)[0] >= 20);
  testing::CheckAccountingBalances(sampler->stats());  // without what the child did
}

}  // namespace
}  // namespace perfkit
