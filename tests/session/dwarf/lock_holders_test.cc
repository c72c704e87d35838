// Holders of a lock that goes from hand to hand, in a session: each one that is named had the lock during the wait, and
// was where a thread is that has it.
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "src/profile/wait_text.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// A thread had the lock at some time between these.
struct Hold {
  uint64_t from_ns = 0, to_ns = 0;
};

struct Hand {
  uint32_t tid = 0;
  std::vector<Hold> holds;
};

std::mutex handed;

// Two ways to have a lock: asleep, and busy.
[[gnu::noinline]] void HoldAsleep(long us) {
  const timespec time{0, us * 1000};
  nanosleep(&time, nullptr);
  asm volatile("");
}
[[gnu::noinline]] void HoldBusy(long us) {
  Spin(std::chrono::microseconds(us));
  asm volatile("");
}
[[gnu::noinline]] void RestElsewhere(long us) {
  const timespec time{0, us * 1000};
  nanosleep(&time, nullptr);
  asm volatile("");
}

void HandAround(Hand& hand, unsigned seed, const std::atomic<bool>& stop) {
  std::mt19937 random(seed);
  hand.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  while (!stop) {
    const auto us = static_cast<long>(500 + random() % 6000);
    const uint64_t from_ns = sys::ClockNs(CLOCK_MONOTONIC);
    handed.lock();
    random() % 3 == 0 ? HoldBusy(us) : HoldAsleep(us);
    handed.unlock();
    hand.holds.push_back({from_ns, sys::ClockNs(CLOCK_MONOTONIC)});
    if (random() % 4 == 0) RestElsewhere(us);
  }
}

bool HadLock(const Hand& hand, const ProfileSample& wait) {
  return std::ranges::any_of(hand.holds, [&](const Hold& hold) {
    return hold.from_ns < wait.time_ns + wait.weight && hold.to_ns > wait.time_ns;
  });
}

TEST_CASE("each holder that a session names had the lock, and was where it said",
          "[session][wall][lock_holders][law]") {
  // So rare that stacks of holders are those of looks, which are taken while the holder has the lock.
  const SampledEvent rare{.event = "page-faults", .rate = Period{1'000'000'000}};
  absl::StatusOr<Session> session =
      Session::Start({.events = {rare}, .clock = SessionClock::kWall, .look_after = 1ms});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  std::atomic<bool> stop{false};
  std::array<Hand, 4> hands;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < hands.size(); ++i) {
    threads.emplace_back([&, i] { HandAround(hands[i], static_cast<unsigned>(i), stop); });
  }
  std::this_thread::sleep_for(1500ms);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  uint64_t named = 0, asleep = 0, waits = 0;
  for (const ProfileSample& sample : profile->samples) {
    if (sample.wait == ProfileSample::kNoWait) continue;
    const ProfileWait& wait = profile->waits[sample.wait];
    waits += wait.syscall == SYS_futex && wait.arguments[0] == reinterpret_cast<uint64_t>(&handed);
    if (wait.holder == ProfileWait::kNoHolder) continue;
    ++named;
    const ProfileThread& holder = profile->threads[wait.holder];
    const auto hand = std::ranges::find(hands, holder.tid, &Hand::tid);
    INFO(profile::WaitText(*profile, wait));
    CHECK(wait.arguments[0] == reinterpret_cast<uint64_t>(&handed));
    REQUIRE(hand != hands.end());
    CHECK(HadLock(*hand, sample));
    CHECK(wait.holder != sample.thread);
    if (wait.holder_quality == StackQuality::kNone) continue;
    CHECK_FALSE(HasFunction(*profile, wait.holder_stack, "RestElsewhere"));
    asleep += HasFunction(*profile, wait.holder_stack, "HoldAsleep");
  }
  CAPTURE(waits, named, asleep);
#if defined(__GLIBC__)
  constexpr uint64_t kEnough = 20;  // a lock may change hands during a look
  if (waits >= kEnough) CHECK(named > 0);
  if (named >= kEnough && !testing::kSanitized) CHECK(asleep > 0);
#endif
}

}  // namespace
}  // namespace perfkit::session
