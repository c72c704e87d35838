// Time off the CPU by looks, held against what most profilers of wall time do: signals to each thread at an interval,
// whose handler notes where the thread waits. Signals interrupt the calls that they find, which a session does not.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "src/sys/clock.h"
#include "tests/session/dwarf/shares.h"
#include "tests/session/support.h"
#include "tests/support/measurement.h"

namespace perfkit::session {
namespace {

constexpr size_t kPlannedKinds = 3;
using PlannedShares = std::array<double, kPlannedKinds>;  // of the time in all of them

// What the handler of a thread's signals knows, and what its waits have seen.
struct PlannedThread {
  std::atomic<pid_t> tid{0};
  std::atomic<size_t> waits_in{kPlannedKinds};  // kPlannedKinds: in none
  std::array<std::atomic<uint64_t>, kPlannedKinds> signals{};
  PlannedShares taken_ns{};
  uint64_t interrupted = 0;
};
thread_local PlannedThread* t_planned = nullptr;

// Calls that take the time that is left. The kernel's own, because the C library retries some.
[[gnu::noinline]] long PlannedSleep(const timespec& left) {
  const long result = syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, nullptr);
  asm volatile("");
  return result;
}
[[gnu::noinline]] long PlannedPoll(const timespec& left) {
  timespec time = left;
  const long result = syscall(SYS_ppoll, nullptr, 0, &time, nullptr, 0);
  asm volatile("");
  return result;
}
[[gnu::noinline]] long PlannedFutex(const timespec& left) {
  static uint32_t word = 0;
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &left, nullptr, 0);
  asm volatile("");
  return result;
}
constexpr std::array kPlannedCalls = {PlannedSleep, PlannedPoll, PlannedFutex};
constexpr std::array<std::string_view, kPlannedKinds> kPlannedNames = {"PlannedSleep", "PlannedPoll", "PlannedFutex"};

void WaitAsPlanned(PlannedThread& thread, size_t kind, uint64_t ns) {
  const uint64_t begun_ns = sys::ClockNs(CLOCK_MONOTONIC), end_ns = begun_ns + ns;
  thread.waits_in = kind;
  for (uint64_t now_ns = begun_ns; now_ns < end_ns; now_ns = sys::ClockNs(CLOCK_MONOTONIC)) {
    errno = 0;
    const timespec left{0, static_cast<long>(end_ns - now_ns)};
    if (kPlannedCalls[kind](left) == -1 && errno == EINTR) ++thread.interrupted;
  }
  thread.waits_in = kPlannedKinds;
  thread.taken_ns[kind] += static_cast<double>(sys::ClockNs(CLOCK_MONOTONIC) - begun_ns);
}

// Signals the calling thread at a wall interval.
class WallTimer {
 public:
  WallTimer() {
    struct sigaction action{};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      if (t_planned == nullptr || t_planned->waits_in == kPlannedKinds) return;
      // Intervals that ended before the thread got to handle the first one are in the overrun.
      const auto intervals = static_cast<uint64_t>(1 + std::max(info->si_overrun, 0));
      t_planned->signals[t_planned->waits_in].fetch_add(intervals, std::memory_order_relaxed);
    };
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGRTMIN + 3, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 3;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    is_there_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    constexpr timespec kInterval{0, 997'000};
    const itimerspec times{kInterval, kInterval};
    if (is_there_) timer_settime(timer_, 0, &times, nullptr);
  }
  ~WallTimer() {
    if (is_there_) timer_delete(timer_);
  }
  WallTimer(const WallTimer&) = delete;
  WallTimer& operator=(const WallTimer&) = delete;

 private:
  timer_t timer_{};
  bool is_there_ = false;
};

// Four threads that wait as planned: the same waits at each run, in other shares for each thread.
class PlannedRun {
 public:
  explicit PlannedRun(bool with_signals) {
    std::vector<std::thread> running;
    for (PlannedThread& thread : threads_) {
      const auto number = static_cast<size_t>(&thread - threads_.data());
      running.emplace_back([this, number, with_signals] { Run(number, with_signals); });
    }
    for (std::thread& thread : running) thread.join();
  }

  // By the threads' own clocks: the control.
  PlannedShares Taken() const {
    return Sum([](const PlannedThread& thread, size_t kind) { return thread.taken_ns[kind]; });
  }
  PlannedShares Signals() const {
    return Sum([](const PlannedThread& thread, size_t kind) { return static_cast<double>(thread.signals[kind]); });
  }
  PlannedShares OffCpu(const Profile& profile) const {
    const size_t off = profile.EventIndex(kOffCpuEvent);
    PlannedShares sums{};
    for (const ProfileSample& sample : profile.samples) {
      const uint32_t tid = profile.threads[sample.thread].tid;
      const bool is_ours = std::ranges::any_of(
          threads_, [&](const PlannedThread& thread) { return static_cast<uint32_t>(thread.tid) == tid; });
      if (sample.event != off || !is_ours) continue;
      for (size_t kind = 0; kind < kPlannedKinds; ++kind) {
        if (HasFunction(profile, sample.stack, kPlannedNames[kind])) sums[kind] += static_cast<double>(sample.weight);
      }
    }
    return sums;
  }
  uint64_t interrupted() const {
    return std::accumulate(threads_.begin(), threads_.end(), uint64_t{0},
                           [](uint64_t sum, const PlannedThread& thread) { return sum + thread.interrupted; });
  }

 private:
  static constexpr int kWaits = testing::kSanitized ? 4 : 24;

  void Run(size_t number, bool with_signals) {
    PlannedThread& thread = threads_[number];
    thread.tid = static_cast<pid_t>(syscall(SYS_gettid));
    t_planned = &thread;
    {
      std::optional<WallTimer> timer;
      if (with_signals) timer.emplace();
      std::mt19937 random(static_cast<uint32_t>(number + 1));
      for (int i = 0; i < kWaits; ++i) {
        const size_t kind = (number + random() % 3 % 2) % kPlannedKinds;
        WaitAsPlanned(thread, kind, (50 + random() % 100) * kMs);
      }
    }
    t_planned = nullptr;
  }

  template <class Of>
  PlannedShares Sum(const Of& of) const {
    PlannedShares sums{};
    for (const PlannedThread& thread : threads_) {
      for (size_t kind = 0; kind < kPlannedKinds; ++kind) sums[kind] += of(thread, kind);
    }
    return sums;
  }

  std::array<PlannedThread, 4> threads_;
};

// A machine that is too busy for the session's thread, or for the signals, also makes the waits longer than planned:
// then another try is better.
TEST_CASE("shares of time off the CPU are those of signals at a wall interval",
          "[.heavy][wall_signals][measurement]") {
  constexpr double kPoints = 2;
  CHECK(testing::HoldsOnceInThree([] {
    absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall});
    REQUIRE(session.status() == absl::OkStatus());
    const PlannedRun looked_at(false);
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    const PlannedRun signalled(true);
    CHECK(looked_at.interrupted() == 0);
    CHECK(signalled.interrupted() > 0);
    const PlannedShares looks = looked_at.OffCpu(*profile);
    const double control = DistanceInPoints(looked_at.Taken(), signalled.Taken());
    const double distance = DistanceInPoints(looks, signalled.Signals());
    const PlannedShares taken = looked_at.Taken();
    const double seen = std::accumulate(looks.begin(), looks.end(), 0.0) /
                        std::accumulate(taken.begin(), taken.end(), 0.0);
    UNSCOPED_INFO("looks and signals differ by " << distance << " points, the threads' own clocks by " << control
                                                 << "; looks have found " << 100 * seen << " % of the time");
    return control <= kPoints && distance <= kPoints && seen >= 0.95;
  }));
}

}  // namespace
}  // namespace perfkit::session
