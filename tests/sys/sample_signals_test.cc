// Signals of sampled events, which this test sends to itself as the kernel would: each in a child process, as the
// handler stays for ever.
#include "src/sys/sample_signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "src/sys/perf_abi.h"
#include "src/sys/signals.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

namespace perfkit::sys {
namespace {

using testing::InChild;

// To this thread. A process may send itself what else the kernel alone sends.
bool SendSample(uint64_t data, uint32_t flags = 0) {
  siginfo_t info{};
  auto* const fields = reinterpret_cast<SampleSignal*>(&info);
  fields->signal = SIGTRAP;
  fields->code = kTrapPerf;
  fields->data = data;
  fields->flags = flags;
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP, &info) == 0;
}

// What a claim was told.
struct SampleTally {
  std::atomic<int> seen{0}, stale{0};
  std::atomic<uint32_t> number{0};

  static void Take(void* self, uint32_t number, bool stale, const ucontext_t&) {
    auto& tally = *static_cast<SampleTally*>(self);
    ++tally.seen;
    tally.stale += stale;
    tally.number = number;
    errno = 77;
  }
};

TEST_CASE("a sample's signal goes to the claim that its event names, on any thread", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally one, two;
          auto first = SampleClaim::OfProcess(SampleTally::Take, &one);
          auto second = SampleClaim::OfProcess(SampleTally::Take, &two);
          if (!first.ok() || !second.ok()) return false;
          errno = 5;
          if (!SendSample(first->SigData(0xffffffff)) || errno != 5) return false;
          std::thread([&] { SendSample(second->SigData(7)); }).join();
          SendSample(second->SigData(8), kTrapPerfAsync);
          return one.seen == 1 && one.number == 0xffffffff && one.stale == 0 && two.seen == 2 && two.number == 8 &&
                 two.stale == 1 && LateSampleSignals() == 0;
        }) == 0);
}

TEST_CASE("the cost of a signal is the shortest time of eight that the handler gets as stale ones",
          "[signals][live][law]") {
  CHECK(InChild([] {
          SampleTally tally;
          auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
          if (!claim.ok()) return false;
          const uint64_t from_ns = testing::NowNs();
          const uint64_t cost_ns = claim->MeasureCostNs(7);
          const uint64_t all_ns = testing::NowNs() - from_ns;
          return cost_ns > 0 && 8 * cost_ns <= all_ns && tally.seen == 8 && tally.stale == 8 && tally.number == 7;
        }) == 0);
}

TEST_CASE("a thread that blocks SIGTRAP learns no cost, and no signal waits for it", "[signals][live][law]") {
  CHECK(InChild([] {
          SampleTally tally;
          auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
          sigset_t trap, pending;
          sigemptyset(&trap);
          sigaddset(&trap, SIGTRAP);
          pthread_sigmask(SIG_BLOCK, &trap, nullptr);
          return claim.ok() && claim->MeasureCostNs(7) == 0 && sigpending(&pending) == 0 &&
                 sigismember(&pending, SIGTRAP) == 0 && tally.seen == 0;
        }) == 0);
}

TEST_CASE("a sample's signal for a claim that has ended is dropped, and counted", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally tally, next;
          uint64_t data = 0;
          {
            auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
            data = claim->SigData(3);
          }
          SendSample(data);
          // Nor does it go to the claim that has the slot now.
          auto other = SampleClaim::OfProcess(SampleTally::Take, &next);
          SendSample(data);
          if (!other->End()) return false;
          SendSample(other->SigData(0));
          return tally.seen == 0 && next.seen == 0 && LateSampleSignals() == 3;
        }) == 0);
}

TEST_CASE("a sample that was blocked while its sampler went is dropped when it comes", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally tally;
          sigset_t trap;
          sigemptyset(&trap);
          sigaddset(&trap, SIGTRAP);
          {
            auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
            pthread_sigmask(SIG_BLOCK, &trap, nullptr);
            SendSample(claim->SigData(3), kTrapPerfAsync);
          }
          pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
          return tally.seen == 0 && LateSampleSignals() == 1;
        }) == 0);
}

volatile int g_foreign = 0;
void Foreign(int, siginfo_t* info, void*) { g_foreign = g_foreign + (info->si_code == kTrapPerf ? 1 : 100); }

TEST_CASE("samples of others go to the handler that was there, and so do all other traps", "[signals][live]") {
  CHECK(InChild([] {
          struct sigaction act {};
          act.sa_sigaction = Foreign;
          act.sa_flags = SA_SIGINFO;
          sigaction(SIGTRAP, &act, nullptr);
          SampleTally tally;
          auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
          SendSample(0x7fff'1234'5678);                       // a pointer of other code
          SendSample(claim->SigData(0) ^ uint64_t{1} << 50);  // another copy's
          raise(SIGTRAP);
          SendSample(claim->SigData(0));
          return g_foreign == 102 && tally.seen == 1;
        }) == 0);
}

// A step that both want: the thread's claim is asked only for traps that are no samples.
bool Refuse(void* self, const siginfo_t&, ucontext_t&) {
  ++*static_cast<int*>(self);
  return true;
}

TEST_CASE("a thread's claim of traps does not see samples", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally tally;
          int traps = 0;
          auto thread = TrapClaim::OfThisThread(Refuse, &traps);
          auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
          SendSample(claim->SigData(0));
          raise(SIGTRAP);
          return traps == 1 && tally.seen == 1;
        }) == 0);
}

// What can be blocked at all. Of libc's own only x86-64's door to the kernel (sys::kernel) has them blocked.
#if defined(__x86_64__)
constexpr uint64_t kExempt = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
#else
constexpr uint64_t kExempt = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 7ull << 31;
#endif

TEST_CASE("the handler has all signals blocked, those of libc too", "[signals][live]") {
  CHECK(InChild([] {
          uint64_t blocked = 0;
          auto look = [](void* self, uint32_t, bool, const ucontext_t&) {
            syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, self, sizeof(uint64_t));
          };
          auto claim = SampleClaim::OfProcess(look, &blocked);
          SendSample(claim->SigData(0));
          return (blocked | kExempt) == ~0ull;
        }) == 0);
}

// A handler that is under way when its claim ends.
struct Slow {
  std::atomic<bool> in{false}, go{false};
  std::atomic<bool> gone{false}, used_after{false};

  static void Take(void* self, uint32_t, bool, const ucontext_t&) {
    auto& slow = *static_cast<Slow*>(self);
    slow.in = true;
    while (!slow.go) {
    }
    slow.used_after = slow.gone.load();
  }
};

TEST_CASE("the end of a claim waits for running handlers", "[signals][live][law]") {
  CHECK(InChild([] {
          Slow slow;
          std::optional<SampleClaim> claim = *SampleClaim::OfProcess(Slow::Take, &slow);
          std::thread sampled([&] { SendSample(claim->SigData(0)); });
          while (!slow.in) testing::Sleep(100'000);
          std::thread release([&] {
            testing::Sleep(20'000'000);
            slow.go = true;
          });
          const bool ended = claim->End();
          slow.gone = true;
          sampled.join();
          release.join();
          return ended && !slow.used_after;
        }) == 0);
}

TEST_CASE("the end of a claim does not wait for ever, and the place is not taken again", "[signals][live][law]") {
  CHECK(InChild([] {
          static Slow slow;
          std::optional<SampleClaim> claim = *SampleClaim::OfProcess(Slow::Take, &slow);
          std::thread sampled([&] { SendSample(claim->SigData(0)); });
          while (!slow.in) testing::Sleep(100'000);
          if (claim->End()) return false;
          std::vector<SampleClaim> claims;
          while (true) {
            auto next = SampleClaim::OfProcess(Slow::Take, &slow);
            if (!next.ok()) break;
            claims.push_back(*std::move(next));
          }
          slow.go = true;
          sampled.join();
          return claims.size() == 15;
        }) == 0);
}

TEST_CASE("the 17th claim of samples is refused, and a place that was left is taken", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally tally;
          std::vector<SampleClaim> claims;
          for (int i = 0; i < 16; ++i) claims.push_back(*SampleClaim::OfProcess(SampleTally::Take, &tally));
          const absl::Status refused = SampleClaim::OfProcess(SampleTally::Take, &tally).status();
          if (refused.code() != absl::StatusCode::kResourceExhausted) return false;
          claims[3] = std::move(claims.back());
          claims.pop_back();
          // Each time the place has another epoch.
          uint64_t before = 0;
          for (int i = 0; i < 10'000; ++i) {
            auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
            if (!claim.ok() || claim->SigData(0) == before) return false;
            before = claim->SigData(0);
            SendSample(before);
          }
          return tally.seen == 10'000;
        }) == 0);
}

TEST_CASE("a child of a fork has ended what its parent claimed, and can claim anew", "[signals][live]") {
  CHECK(InChild([] {
          SampleTally tally, own;
          auto claim = SampleClaim::OfProcess(SampleTally::Take, &tally);
          const uint64_t data = claim->SigData(0);
          const int child = InChild([&] {
            claim->OnForkedChild();
            auto mine = SampleClaim::OfProcess(SampleTally::Take, &own);
            SendSample(data);
            SendSample(mine->SigData(1));
            return tally.seen == 0 && own.seen == 1 && LateSampleSignals() == 1 && claim->End();
          });
          SendSample(data);
          return child == 0 && tally.seen == 1;
        }) == 0);
}

TEST_CASE("claims come and go while samples arrive on many threads", "[signals][live]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see how code of handlers synchronizes");
  CHECK(InChild([] {
          std::atomic<uint64_t> data{0};
          std::atomic<bool> stop{false};
          std::atomic<uint64_t> sent{0};
          std::vector<std::thread> threads;
          for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
              while (!stop) {
                const uint64_t now = data;
                if (now != 0) sent += SendSample(now);
              }
            });
          }
          uint64_t seen = 0;
          // 500 claims take less than a millisecond where no thread has begun yet.
          for (int i = 0; i < 500 || (sent < 1'000 && i < 1'000'000); ++i) {
            auto tally = std::make_unique<SampleTally>();
            auto claim = SampleClaim::OfProcess(SampleTally::Take, tally.get());
            data = claim->SigData(0);
            std::this_thread::yield();
            if (!claim->End()) return false;
            seen += static_cast<uint64_t>(tally->seen.load());
          }
          stop = true;
          for (std::thread& thread : threads) thread.join();
          const uint64_t late = LateSampleSignals();
          if (seen + late == sent && sent > 0) return true;
          return dprintf(STDERR_FILENO, "%lu seen and %lu late of %lu\n", seen, late, sent.load()) < 0;
        }) == 0);
}

TEST_CASE("a claim of samples returns the error of sigaction", "[signals][live]") {
  CHECK(InChild([] {
          testing::FakeKernel fake;
          fake.FailAll(testing::Call::kSigaction, EPERM);
          return SampleClaim::OfProcess(SampleTally::Take, nullptr).status().code() ==
                 absl::StatusCode::kPermissionDenied;
        }) == 0);
}

}  // namespace
}  // namespace perfkit::sys
