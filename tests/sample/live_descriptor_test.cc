// Live stacks on kernels before Linux 5.13, where each thread's event sends the signal by its descriptor. The tests use
// this kernel, with everything that came with 5.13 disabled.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <thread>

#include "src/sys/sample_signals.h"
#include "tests/sample/live_support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/sys/in_child.h"

namespace perfkit {
namespace {

using testing::CheckStackAccounting;
using testing::DrainInto;
using testing::FakeKernel;
using testing::FrameWalker;
using testing::LiveOptions;
using testing::LiveTally;

class OldKernel {
 public:
  OldKernel() {
    fake_.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                       unsigned long flags) {
      const bool known = attr->sigtrap == 0 && attr->remove_on_exec == 0 && attr->inherit_thread == 0;
      if (known) return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
      errno = EINVAL;
      return -1;
    };
  }
  FakeKernel& fake() { return fake_; }

 private:
  FakeKernel fake_;
};

std::vector<int> g_signalling;

void Print(const char* what, const LiveTally& tally, const EventAccounting& accounting) {
  std::printf("%s: %llu samples, %llu stacks, %llu paired; stale %llu, coalesced %llu, walk limit %llu\n", what,
              static_cast<unsigned long long>(tally.samples), static_cast<unsigned long long>(tally.stacks),
              static_cast<unsigned long long>(tally.paired), static_cast<unsigned long long>(accounting.stacks.stale),
              static_cast<unsigned long long>(accounting.stacks.coalesced),
              static_cast<unsigned long long>(accounting.stacks.walk_limit));
}

TEST_CASE("without sigtrap each sample signals its thread by its descriptor", "[live][descriptor][law]") {
  OldKernel old;
  testing::Spinners spinners(4);
  auto sampler = Sampler::Open(LiveOptions(1000, FrameWalker::Make), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  testing::DrainUntil(*sampler, tally, 400'000'000, [&] { return tally.samples > 20; });
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = CheckStackAccounting(*sampler);
  Print("by descriptor", tally, accounting);
  CHECK(tally.paired == tally.stacks);
  CHECK(tally.stacks >= tally.samples * 9 / 10);
  CHECK(accounting.stacks.no_ring == 0);
}

TEST_CASE("without sigtrap threads that start later are attached", "[live][descriptor][law]") {
  OldKernel old;
  auto sampler = Sampler::Open(LiveOptions(1000), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  {
    testing::Spinners spinners(3);
    testing::DrainUntil(*sampler, tally, 300'000'000,
                        [&] { return tally.by_thread.size() >= 3 && tally.stacks >= 20; });
  }
  REQUIRE(sampler->Stop().ok());
  testing::DrainRest(*sampler, tally);
  CheckStackAccounting(*sampler);
}

TEST_CASE("without sigtrap a stack of a thread that has gone on is stale", "[live][descriptor][law]") {
  OldKernel old;
  auto sampler = Sampler::Open(LiveOptions(1000));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  for (int i = 0; i < 10; ++i) {
    pthread_sigmask(SIG_BLOCK, &trap, nullptr);
    testing::Spin(5'000'000);
    pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
  }
  REQUIRE(sampler->Stop().ok());
  LiveTally tally;
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = CheckStackAccounting(*sampler);
  Print("blocked", tally, accounting);
  CHECK(accounting.stacks.stale >= 3);
  CHECK(tally.paired == tally.stacks);
  CHECK(accounting.stacks.coalesced >= 3);
}

TEST_CASE("without sigtrap threads that come and go make no stack of another stale", "[live][descriptor][law]") {
  OldKernel old;
  testing::Spinners spinners(2);
  auto sampler = Sampler::Open(LiveOptions(1000), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    while (!stop) std::thread([] { testing::Spin(300'000); }).join();
  });
  for (int i = 0; i < (testing::kSanitized ? 200 : 2000) || tally.stacks <= 20; ++i) {
    DrainInto(*sampler, tally);
    testing::Sleep(100'000);
  }
  stop = true;
  churn.join();
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = CheckStackAccounting(*sampler);
  Print("churn", tally, accounting);
  CHECK(accounting.stacks.stale <= tally.stacks / 100);  // a thread that starts blocks its signals
}

// The signal is pending when its event's descriptor is closed. The next sampler's event gets the same descriptor.
TEST_CASE("without sigtrap a signal of an ended sampler is none of the next one", "[live][descriptor][law]") {
  OldKernel old;
  old.fake().below().fcntl = [](int fd, int command, unsigned long argument) {
    if (command == F_SETSIG) g_signalling.push_back(fd);
    return sys::kLinux.fcntl(fd, command, argument);
  };
  g_signalling.clear();
  sigset_t trap, pending;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  {
    auto ended = Sampler::Open(LiveOptions(1000));
    REQUIRE(ended.ok());
    pthread_sigmask(SIG_BLOCK, &trap, nullptr);
    REQUIRE(ended->Start().ok());
    do {
      testing::Spin(1'000'000);
      sigpending(&pending);
    } while (sigismember(&pending, SIGTRAP) == 0);
  }
  auto sampler = Sampler::Open(LiveOptions(1000));
  REQUIRE(sampler.ok());
  const uint64_t dropped = sys::LateSampleSignals();
  pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
  REQUIRE(g_signalling.size() == 2);
  if (g_signalling[0] != g_signalling[1]) SKIP_TEST("the descriptor was not used again");
  CHECK(sys::LateSampleSignals() == dropped);
  LiveTally tally;
  testing::DrainRest(*sampler, tally);
  CHECK(tally.stacks == 0);
  CHECK(CheckStackAccounting(*sampler).stacks.accounted() == 0);
}

TEST_CASE("without sigtrap, and without room for what a signal says, the process lives on", "[live][descriptor][law]") {
  const int ended = testing::InChild([] {
    OldKernel old;
    auto sampler = Sampler::Open(LiveOptions(1000));
    const rlimit none{0, 0};
    if (!sampler.ok() || setrlimit(RLIMIT_SIGPENDING, &none) != 0 || !sampler->Start().ok()) return false;
    testing::Spin(50'000'000);
    if (!sampler->Stop().ok()) return false;
    sampler->Drain([](const SamplerRecord&) {});
    const EventAccounting accounting = sampler->stats().events[0];
    return accounting.delivered > 0 && accounting.stacks.delivered == 0 &&
           accounting.stacks.coalesced == accounting.delivered;
  });
  CHECK(ended == 0);
}

TEST_CASE("without sigtrap samples in the kernel have no live stacks, which Open says", "[live][descriptor]") {
  OldKernel old;
  SamplerOptions options = LiveOptions(1000);
  options.user_only = false;
  const absl::Status status = Sampler::Open(options).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find("Linux 5.13") != std::string::npos);
  options.events = {{.event = "cpu-clock:u", .rate = Frequency{1000}}};
  CHECK(Sampler::Open(options).ok());
}

TEST_CASE("without sigtrap, whatever call fails, Open leaves nothing open", "[live][descriptor]") {
  OldKernel old;
  const uint64_t calls = old.fake().calls(testing::Call::kFcntl);
  REQUIRE(Sampler::Open(LiveOptions(1000)).ok());
  const uint64_t each = old.fake().calls(testing::Call::kFcntl) - calls;
  CHECK(each == 3);
  for (uint64_t n = 1; n <= each; ++n) {
    old.fake().FailNth(n, EBADF, testing::Call::kFcntl);
    const absl::Status status = Sampler::Open(LiveOptions(1000)).status();
    CHECK(std::string(status.message()).find("F_SETSIG") != std::string::npos);
  }
  CHECK(old.fake().Leaks() == "");
}

}  // namespace
}  // namespace perfkit
