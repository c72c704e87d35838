// Threads that block at known depths, each with a shadow of its stack: a look that says "whole" is right, or none is.
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "src/sys/clock.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// What a thread did while it was blocked: from before the call until after it.
struct Blocked {
  uint64_t from_ns = 0, to_ns = 0;
  std::string calls;  // outermost first
};

struct Shadow {
  pid_t tid = 0;
  std::string calls;
  std::vector<Blocked> history;
  std::mt19937 random;
  std::mutex mutex;
  std::condition_variable condition;
  int ends[2] = {-1, -1};
};

[[gnu::noinline]] void BlockOnce(Shadow& shadow) {
  const auto us = static_cast<long>(200 + shadow.random() % 4800);
  const timespec time{0, us * 1000};
  const uint64_t from_ns = sys::ClockNs(CLOCK_MONOTONIC);
  switch (shadow.random() % 4) {
    case 0: nanosleep(&time, nullptr); break;
    case 1: ppoll(nullptr, 0, &time, nullptr); break;
    case 2: {
      std::unique_lock<std::mutex> lock(shadow.mutex);
      shadow.condition.wait_for(lock, std::chrono::microseconds(us));
      break;
    }
    default: {
      pollfd wanted{shadow.ends[0], POLLIN, 0};
      ppoll(&wanted, 1, &time, nullptr);
    }
  }
  shadow.history.push_back({from_ns, sys::ClockNs(CLOCK_MONOTONIC), shadow.calls});
}

void Descend(Shadow& shadow, unsigned left);

template <size_t kBytes>
[[gnu::always_inline]] inline void Call(Shadow& shadow, unsigned left) {
  char room[kBytes];
  asm volatile("" : : "r"(room) : "memory");
  Descend(shadow, left);
  asm volatile("" : : "r"(room) : "memory");
}
[[gnu::noinline]] void StepA(Shadow& shadow, unsigned left) { Call<40>(shadow, left); }
[[gnu::noinline]] void StepB(Shadow& shadow, unsigned left) { Call<200>(shadow, left); }
[[gnu::noinline]] void StepC(Shadow& shadow, unsigned left) { Call<1000>(shadow, left); }

[[gnu::noinline]] void Descend(Shadow& shadow, unsigned left) {
  if (left == 0) {
    BlockOnce(shadow);
    asm volatile("");
    return;
  }
  const unsigned which = shadow.random() % 3;
  shadow.calls += static_cast<char>('A' + which);
  constexpr std::array kSteps = {StepA, StepB, StepC};
  kSteps[which](shadow, left - 1);
  shadow.calls.pop_back();
}

// The steps of a stack, outermost first: "ABCA".
std::string CallsOf(const Profile& profile, uint32_t stack) {
  std::string calls;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      const std::string& name = profile.strings[call.function];
      const size_t at = name.find("::Step");
      if (at != std::string::npos && at + 6 < name.size()) calls.insert(calls.begin(), name[at + 6]);
    }
  }
  return calls;
}

// Returns after a second or more, when a wait has been looked at. A user who may not look waits for a minute.
void AwaitLook(Session& session) {
  bool was_seen = false;
  for (int second = 0; second < 60 && !was_seen; ++second) {
    std::this_thread::sleep_for(1s);
    const absl::StatusOr<Profile> snapshot = session.Snapshot();
    REQUIRE(snapshot.status() == absl::OkStatus());
    const size_t off = snapshot->EventIndex(kOffCpuEvent);
    was_seen = std::ranges::any_of(snapshot->samples, [&](const ProfileSample& sample) {
      return sample.event == off && sample.quality == StackQuality::kWhole;
    });
  }
}

TEST_CASE("the stack of every wait that was looked at is the one that the thread had", "[session][wall][waits][law]") {
  absl::StatusOr<Session> session = Session::Start({.interval = 1s, .clock = SessionClock::kWall, .look_after = 1ms});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  std::atomic<bool> stop{false};
  std::array<Shadow, 4> shadows;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < shadows.size(); ++i) {
    threads.emplace_back([&, i] {
      Shadow& shadow = shadows[i];
      shadow.tid = static_cast<pid_t>(syscall(SYS_gettid));
      shadow.random.seed(static_cast<uint32_t>(i + 1));
      if (pipe(shadow.ends) != 0) return;
      while (!stop) Descend(shadow, 3 + shadow.random() % 20);
    });
  }
  AwaitLook(*session);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  uint64_t right = 0, wrong = 0, undecided = 0;
  const size_t off = profile->EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile->samples) {
    if (sample.event != off || sample.quality != StackQuality::kWhole) continue;
    const uint64_t end_ns = sample.time_ns + sample.weight;
    for (const Shadow& shadow : shadows) {
      if (profile->threads[sample.thread].tid != static_cast<uint32_t>(shadow.tid)) continue;
      const Blocked* during = nullptr;
      for (const Blocked& blocked : shadow.history) {
        if (blocked.from_ns <= sample.time_ns && end_ns <= blocked.to_ns) during = &blocked;
      }
      if (during == nullptr) {
        ++undecided;  // it was off for another reason
        continue;
      }
      const std::string calls = CallsOf(*profile, sample.stack);
      INFO(calls << " instead of " << during->calls);
      CHECK(calls == during->calls);
      ++(calls == during->calls ? right : wrong);
      REQUIRE(sample.wait != ProfileSample::kNoWait);
      const ProfileWait& wait = profile->waits[sample.wait];
      CHECK(wait.blocked_in_syscall);
      CHECK(wait.detail != 0);
      const bool polls_pipe = wait.syscall == SYS_ppoll && wait.arguments[1] == 1;
      if (polls_pipe) CHECK(profile->strings[wait.detail].find(" (pipe:[") != std::string::npos);
    }
  }
  std::string notes;
  for (const std::string& note : profile->accounting.notes) notes += note + "\n";
  INFO(notes);
  CAPTURE(right, wrong, undecided);
  CHECK(wrong == 0);
  const bool readable = notes.find("dumpable") == std::string::npos;
  if (readable) CHECK(right + undecided > 0);
  for (const Shadow& shadow : shadows) close(shadow.ends[0]), close(shadow.ends[1]);
}

}  // namespace
}  // namespace perfkit::session
