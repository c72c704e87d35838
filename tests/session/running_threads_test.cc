// Threads on a CPU, told from those that only wait for one.
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/proc/blocked_call.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// This thread's CPU, for all threads that it starts, until the end of the scope.
class OneCpu {
 public:
  OneCpu() {
    if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    const int cpu = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    if (cpu >= 0) CPU_SET(static_cast<size_t>(cpu), &one);
    is_bound_ = cpu >= 0 && sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OneCpu() {
    if (is_bound_) sched_setaffinity(0, sizeof(before_), &before_);
  }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

  bool is_bound() const { return is_bound_; }

 private:
  cpu_set_t before_{};
  bool is_bound_ = false;
};

// A thread that sleeps until it is woken. It takes the CPU from no other thread.
class IdleSleeper {
 public:
  IdleSleeper() {
    while (tid_ == 0 || proc::ReadState(tid_) != 'S') std::this_thread::sleep_for(1ms);
  }
  ~IdleSleeper() { thread_.join(); }
  IdleSleeper(const IdleSleeper&) = delete;
  IdleSleeper& operator=(const IdleSleeper&) = delete;

  void Wake() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_woken_ = true;
    }
    woken_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  std::atomic<pid_t> tid_{0};
  std::thread thread_{[this] {
    pthread_setname_np(pthread_self(), "idle-sleeper");
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    std::unique_lock<std::mutex> lock(mutex_);
    tid_ = static_cast<pid_t>(syscall(SYS_gettid));
    woken_.wait(lock, [this] { return is_woken_; });
  }};
};

TEST_CASE("a thread that was woken just before the end has slept until then", "[session][law]") {
  const bool paused = GENERATE(false, true);
  const OneCpu one_cpu;
  if (!one_cpu.is_bound()) SKIP_TEST("threads may not be bound to a CPU here");
  IdleSleeper sleeper;
  absl::StatusOr<Session> session =
      Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .lines = false});
  if (!session.ok()) sleeper.Wake();
  REQUIRE(session.status() == absl::OkStatus());
  std::this_thread::sleep_for(50ms);
  sleeper.Wake();
  if (paused) CHECK(session->Pause() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const auto thread = std::ranges::find_if(
      profile->threads, [&](const auto& one) { return profile->strings[one.name] == "idle-sleeper"; });
  REQUIRE(thread != profile->threads.end());
  INFO("on " << thread->on_ns << " ns, off " << thread->off_ns << " ns");
  CHECK(thread->on_ns < thread->off_ns);
}

}  // namespace
}  // namespace perfkit::session
