// Time off the CPU by looks, held against the stack that the kernel takes at each switch-out, which needs rights.
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "perfkit/session.h"
#include "perfkit/symbolizer.h"
#include "perfkit/sampler.h"
#include "perfkit/unwinder.h"
#include "src/sys/clock.h"
#include "tests/session/dwarf/shares.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// Functions that wait, and what is in none of them.
constexpr std::array<std::string_view, 3> kWaiting{"WaitBySleep", "WaitByPoll", "WaitByCondition"};
constexpr size_t kOther = kWaiting.size();
using Shares = std::array<double, kWaiting.size() + 1>;  // nanoseconds, then points of percent

[[gnu::noinline]] void WaitBySleep(timespec time) {
  nanosleep(&time, nullptr);
  asm volatile("");
}
[[gnu::noinline]] void WaitByPoll(timespec time) {
  ppoll(nullptr, 0, &time, nullptr);
  asm volatile("");
}
[[gnu::noinline]] void WaitByCondition(timespec time) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  condition.wait_for(lock, std::chrono::nanoseconds(time.tv_nsec));
  asm volatile("");
}

// Threads that wait in these for 10 to 50 ms, each for its own shares of the time, and keep the time that it took.
class Waiters {
 public:
  Waiters() {
    for (size_t i = 0; i < threads_.size(); ++i) {
      threads_[i] = std::thread([this, i] {
        tids_[i] = static_cast<pid_t>(syscall(SYS_gettid));
        std::mt19937 random(static_cast<uint32_t>(i + 1));
        constexpr std::array kCalls = {WaitBySleep, WaitByPoll, WaitByCondition};
        while (!stop_) {
          const size_t which = (i + random() % 3 % 2) % kCalls.size();
          const uint64_t begin_ns = sys::ClockNs(CLOCK_MONOTONIC);
          kCalls[which]({0, static_cast<long>(10 + random() % 40) * 1'000'000});
          taken_ns_[which] += sys::ClockNs(CLOCK_MONOTONIC) - begin_ns;
        }
      });
    }
    for (const std::atomic<pid_t>& tid : tids_) {
      while (tid == 0) std::this_thread::yield();
    }
  }
  ~Waiters() { Stop(); }
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  bool Has(uint32_t tid) const {
    return std::any_of(tids_.begin(), tids_.end(), [&](pid_t mine) { return static_cast<uint32_t>(mine) == tid; });
  }
  // By the threads' own clocks: the control.
  Shares Taken() const {
    Shares shares{};
    for (size_t i = 0; i < kWaiting.size(); ++i) shares[i] = static_cast<double>(taken_ns_[i]);
    return shares;
  }

 private:
  std::array<std::thread, 4> threads_;
  std::array<std::atomic<pid_t>, 4> tids_{};
  std::array<std::atomic<uint64_t>, kWaiting.size()> taken_ns_{};
  std::atomic<bool> stop_{false};
};

size_t WhichWait(std::string_view function) {
  size_t which = 0;
  while (which < kOther && function.find(kWaiting[which]) == std::string_view::npos) ++which;
  return which;
}

// Adds up the time from each sample of a switch-out to the thread's next switch-in, by the function in its stack.
class SwitchOuts {
 public:
  explicit SwitchOuts(Sampler sampler) : sampler_(std::move(sampler)) {}

  void Drain(const Waiters& waiters) {
    sampler_.Drain([&](const SamplerRecord& record) {
      symbolizer_.Add(record, sampler_.layout());
      unwinder_.Add(record, sampler_.layout());
      Dispatch(record, sampler_.layout(),
               Overloaded{[&](const Sample& sample) {
                            if (waiters.Has(sample.task()->tid)) AddOut(sample);
                          },
                          [&](const SwitchRecord& change) {
                            if (!change.out && change.who.tid) AddIn(*change.who.tid, change.who.time_ns.value_or(0));
                          }});
    });
  }
  const Shares& shares() const { return shares_; }
  uint64_t spans() const { return spans_; }
  Sampler& sampler() { return sampler_; }

 private:
  struct Out {
    uint64_t time_ns = 0;
    size_t which = kOther;
  };

  void AddOut(const Sample& sample) {
    const UnwoundStack stack = unwinder_.Unwind(sample, frames_);
    size_t which = kOther;
    for (uint32_t i = 0; i < stack.frames && which == kOther; ++i) {
      which = WhichWait(symbolizer_.Resolve(sample.task()->pid, frames_[i].code()).function);
    }
    outs_[sample.task()->tid] = {sample.time_ns().value_or(0), which};
  }
  void AddIn(uint32_t tid, uint64_t time_ns) {
    const auto out = outs_.find(tid);
    if (out == outs_.end()) return;
    shares_[out->second.which] += static_cast<double>(time_ns - std::min(time_ns, out->second.time_ns));
    ++spans_;
    outs_.erase(out);
  }

  Sampler sampler_;
  Symbolizer symbolizer_;
  Unwinder unwinder_;
  std::array<StackFrame, 128> frames_;
  std::unordered_map<uint32_t, Out> outs_;  // by thread
  Shares shares_{};
  uint64_t spans_ = 0;
};

Shares SharesOf(const Profile& profile, const Waiters& waiters) {
  Shares shares{};
  const size_t off = profile.EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != off || !waiters.Has(profile.threads[sample.thread].tid)) continue;
    size_t which = kOther;
    for (uint32_t at = sample.stack; at != ProfileStack::kRoot && which == kOther; at = profile.stacks[at].parent) {
      for (const ProfileCall& call : profile.CallsAt(profile.stacks[at].location)) {
        which = std::min(which, WhichWait(profile.strings[call.function]));
      }
    }
    shares[which] += static_cast<double>(sample.weight);
  }
  return shares;
}

// A machine that lets the session's thread wait for long looks too late. Then the threads' own clocks and the kernel's
// stacks differ, too, or another try is better.
TEST_CASE("shares of time off the CPU are those of the kernel's stacks at switch-out",
          "[.heavy][switch_out][measurement]") {
  constexpr double kPoints = 2;
  CHECK(testing::HoldsOnceInThree([] {
    absl::StatusOr<Sampler> sampler = Sampler::Open({.events = {{.event = "context-switches", .rate = Period{1}}},
                                                     .stack = CallStack::UserDump(16 << 10),
                                                     .side_band = true,
                                                     .switches = true},
                                                    Target::AllThreads());
    if (!sampler.ok()) {
      testing::Skip(std::string(sampler.status().message()));
      return true;
    }
    Waiters waiters;
    SwitchOuts outs(*std::move(sampler));
    REQUIRE(outs.sampler().Start() == absl::OkStatus());
    absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kDumps});
    REQUIRE(session.status() == absl::OkStatus());
    while (outs.spans() < 2000) {
      std::this_thread::sleep_for(20ms);
      outs.Drain(waiters);
    }
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(outs.sampler().Stop() == absl::OkStatus());
    outs.Drain(waiters);
    waiters.Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    const double control = DistanceInPoints(outs.shares(), waiters.Taken());
    const double distance = DistanceInPoints(outs.shares(), SharesOf(*profile, waiters));
    WARN(outs.spans() << " spans: looks differ by " << distance << " points, the threads' own clocks by " << control);
    return control <= kPoints && distance <= kPoints;
  }));
}

}  // namespace
}  // namespace perfkit::session
