// The SIGTRAP dispatcher, with traps that this test raises itself: int3, raise, the trap flag; each in a child process
// that starts from the handler it wants, as the dispatcher never lets go of the signal.
#include "src/sys/signals.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/support/fake_kernel.h"
#include "tests/sys/in_child.h"

namespace perfkit::sys {
namespace {

using testing::InChild;

struct Tally {
  int seen = 0;
  bool mine = true;
};

bool Count(void* self, const siginfo_t&, ucontext_t&) {
  Tally& tally = *static_cast<Tally*>(self);
  ++tally.seen;
  return tally.mine;
}

volatile int g_before = 0;  // traps that the handler before us got
void Before(int) { g_before = g_before + 1; }
void BeforeWithInfo(int, siginfo_t* info, void* registers) {
  if (info->si_signo == SIGTRAP && registers != nullptr) g_before = g_before + 10;
}

void HandleBefore(bool with_info) {
  struct sigaction act {};
  if (with_info) {
    act.sa_sigaction = BeforeWithInfo;
    act.sa_flags = SA_SIGINFO;
  } else {
    act.sa_handler = Before;
  }
  sigaction(SIGTRAP, &act, nullptr);
}

TEST_CASE("a claim gets its thread's traps, until it ends", "[signals]") {
  CHECK(InChild([] {
          HandleBefore(false);
          Tally tally;
          {
            auto claim = TrapClaim::OfThisThread(Count, &tally);
            if (!claim.ok()) return false;
            raise(SIGTRAP);
            std::thread([] { raise(SIGTRAP); }).join();  // another thread's: not claimed
          }
          raise(SIGTRAP);
          return tally.seen == 1 && g_before == 2;
        }) == 0);
}

TEST_CASE("what a claim does not want goes to the handler that was there", "[signals]") {
  for (const bool with_info : {false, true}) {
    CHECK(InChild([&] {
            HandleBefore(with_info);
            Tally tally{.mine = false};
            auto claim = TrapClaim::OfThisThread(Count, &tally);
            raise(SIGTRAP);
            return claim.ok() && tally.seen == 1 && g_before == (with_info ? 10 : 1);
          }) == 0);
  }
}

TEST_CASE("without any handler a trap ends the process, as it would without us", "[signals]") {
  CHECK(InChild([] {
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          raise(SIGTRAP);
          return true;
        }) == 1000 + SIGTRAP);
#if defined(__x86_64__)
  CHECK(InChild([] {
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          asm volatile("int3");
          return true;
        }) == 1000 + SIGTRAP);
#endif
}

TEST_CASE("an ignored SIGTRAP stays ignored when it is sent", "[signals]") {
  CHECK(InChild([] {
          signal(SIGTRAP, SIG_IGN);
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          raise(SIGTRAP);
          return true;
        }) == 0);
}

#if defined(__x86_64__)
// Single steps without a claim. True when the first one ended the stepping.
bool EndsStepping() {
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | 0x100);
  asm volatile("nop\n nop");
  return (__builtin_ia32_readeflags_u64() & 0x100) == 0;
}

TEST_CASE("a step without a claim ends the stepping, not the process", "[signals]") {
  CHECK(InChild([] {
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          return EndsStepping();
        }) == 0);
}

TEST_CASE("a step without a claim is one too if it arrives as TRAP_BRKPT", "[signals]") {
  static struct sigaction ours;
  CHECK(InChild([] {
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          struct sigaction over {};  // what some hypervisors make of a step now and then
          over.sa_flags = SA_SIGINFO;
          over.sa_sigaction = [](int signal, siginfo_t* info, void* registers) {
            if (info->si_code == TRAP_TRACE) info->si_code = TRAP_BRKPT;
            ours.sa_sigaction(signal, info, registers);
          };
          sigaction(SIGTRAP, &over, &ours);
          return EndsStepping();
        }) == 0);
}

TEST_CASE("a breakpoint of icebp ends the process, as it would without us", "[signals]") {
  CHECK(InChild([] {
          { auto claim = TrapClaim::OfThisThread(Count, nullptr); }
          asm volatile(".byte 0xf1");
          return true;
        }) == 1000 + SIGTRAP);
}
#endif

TEST_CASE("a handler put over ours is handed on to, and two that hand on to each other end", "[signals]") {
  static struct sigaction ours;
  CHECK(InChild([] {
          Tally tally;
          auto claim = TrapClaim::OfThisThread(Count, &tally);
          // Another owner comes, which hands on to us; then we take over again.
          struct sigaction theirs {};
          theirs.sa_flags = SA_SIGINFO;
          theirs.sa_sigaction = [](int signal, siginfo_t* info, void* registers) {
            g_before = g_before + 1;
            if (g_before < 100) ours.sa_sigaction(signal, info, registers);
          };
          sigaction(SIGTRAP, &theirs, &ours);
          auto again = TrapClaim::OfThisThread(Count, &tally);
          raise(SIGTRAP);
          if (tally.seen != 1 || g_before != 0) return false;
          tally.mine = false;
          raise(SIGTRAP);  // ours, theirs, ours again: and no handler is left
          return true;
        }) == 1000 + SIGTRAP);
}

TEST_CASE("claims come and go on many threads", "[signals]") {
  CHECK(InChild([] {
          std::vector<std::thread> threads;
          std::atomic<int> right{0};
          for (int t = 0; t < 16; ++t) {
            threads.emplace_back([&right] {
              for (int i = 0; i < 200; ++i) {
                Tally tally;
                auto claim = TrapClaim::OfThisThread(Count, &tally);
                raise(SIGTRAP);
                right += claim.ok() && tally.seen == 1;
              }
            });
          }
          for (std::thread& thread : threads) thread.join();
          return right == 16 * 200;
        }) == 0);
}

TEST_CASE("the 65th claim is refused, and a place that was left is taken", "[signals]") {
  CHECK(InChild([] {
          std::vector<TrapClaim> claims;
          Tally tally;
          for (int i = 0; i < 64; ++i) claims.push_back(*TrapClaim::OfThisThread(Count, &tally));
          if (TrapClaim::OfThisThread(Count, &tally).status().code() != absl::StatusCode::kResourceExhausted)
            return false;
          claims.pop_back();
          return TrapClaim::OfThisThread(Count, &tally).ok();
        }) == 0);
}

TEST_CASE("a sigaction that fails is told", "[signals]") {
  CHECK(InChild([] {
          testing::FakeKernel fake;
          fake.FailAll(testing::Call::kSigaction, EPERM);
          return TrapClaim::OfThisThread(Count, nullptr).status().code() == absl::StatusCode::kPermissionDenied;
        }) == 0);
}

}  // namespace
}  // namespace perfkit::sys
