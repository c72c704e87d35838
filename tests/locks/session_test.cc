// Sessions of a program that links perfkit::locks: short waits have their lock, their holder, and who released it.
#include "perfkit/session.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/slow_frames.h"
#include "src/sys/clock.h"
#include "tests/locks/calls.h"
#include "tests/locks/reader.h"

// A global variable, whose name a profile has.
std::mutex locks_test_contended;

namespace perfkit::sys::locks {
namespace {

// This thread holds the lock until the other one sleeps in it, again and again.
class Contention {
 public:
  // Waits so often; `between` runs on the waiting thread after each wait.
  template <class Between>
  void Run(int times, uint64_t hold_ns, Between between) {
    sem_t asked, held;
    sem_init(&asked, 0, 0), sem_init(&held, 0, 0);
    std::thread thread([&] {
      waiter_ = ThisThread();
      for (int i = 0; i < times; ++i) {
        sem_post(&asked);
        sem_wait(&held);
        locks_test_contended.lock();
        locks_test_contended.unlock();
        between(i);
      }
    });
    for (int i = 0; i < times; ++i) {
      sem_wait(&asked);
      locks_test_contended.lock();
      sem_post(&held);
      AwaitBlocked(waiter_, &locks_test_contended, sizeof locks_test_contended);
      seen_ns_.push_back(ClockNs(CLOCK_MONOTONIC));
      while (ClockNs(CLOCK_MONOTONIC) < seen_ns_.back() + hold_ns) {
      }
      locks_test_contended.unlock();
    }
    thread.join();
  }

  uint32_t waiter() const { return waiter_; }
  uint32_t holder() const { return holder_; }
  // When the waiting thread was seen asleep in the lock.
  const std::vector<uint64_t>& seen_ns() const { return seen_ns_; }

 private:
  std::atomic<uint32_t> waiter_{0};
  const uint32_t holder_ = ThisThread();
  std::vector<uint64_t> seen_ns_;
};

// The time off the CPU of the thread at that moment; nullptr if there is none.
const ProfileSample* OffCpuAt(const Profile& profile, uint32_t tid, uint64_t time_ns) {
  const size_t event = profile.EventIndex(kOffCpuEvent);
  const auto found = std::ranges::find_if(profile.samples, [&](const ProfileSample& sample) {
    return sample.event == event && !sample.merged() && profile.threads[sample.thread].tid == tid &&
           sample.time_ns <= time_ns && time_ns < sample.time_ns + sample.weight;
  });
  return found != profile.samples.end() ? &*found : nullptr;
}

bool HasNote(const Profile& profile, std::string_view part) {
  return std::ranges::any_of(profile.accounting.notes,
                             [&](const std::string& note) { return note.find(part) != note.npos; });
}

TEST_CASE("each wait of a session has its lock by name, its holder, and who released it", "[locks][session][law]") {
  constexpr int kWaits = 60;
  // Twice: a session that has stopped, and still exists, records no more.
  std::vector<Session> sessions;
  for (int round = 0; round < 2; ++round) {
    Contention contention;
    absl::StatusOr<Session> session =
        Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .lock_waits_from = {}});
    REQUIRE(session.status() == absl::OkStatus());
    contention.Run(kWaits, 0, [](int) {});
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    REQUIRE(profile->Check() == absl::OkStatus());
    sessions.push_back(*std::move(session));
    if (HasNote(*profile, "context switches are missing") || HasNote(*profile, "have no record")) continue;
    if (profile->accounting.side_band_lost != 0) continue;
    uint64_t off_ns = 0;
    for (const ProfileThread& thread : profile->threads) off_ns += thread.off_ns;
    CHECK(profile->Total(profile->EventIndex(kOffCpuEvent)).weight == off_ns);  // splitting keeps sums
    for (const uint64_t seen_ns : contention.seen_ns()) {
      const ProfileSample* const sample = OffCpuAt(*profile, contention.waiter(), seen_ns);
      REQUIRE(sample != nullptr);
      REQUIRE(sample->wait != ProfileSample::kNoWait);
      const ProfileWait& wait = profile->waits[sample->wait];
      CHECK(wait.lock_kind == ProfileLock::kMutex);
      CHECK(wait.lock == reinterpret_cast<uintptr_t>(&locks_test_contended));
      CHECK_THAT(profile->strings[wait.detail], Catch::EndsWith("(locks_test_contended in locks_test)"));
      REQUIRE(wait.holder != ProfileWait::kNoHolder);
      CHECK(profile->threads[wait.holder].tid == contention.holder());
      CHECK_THAT(profile->strings[wait.waker], Catch::EndsWith(" (" + std::to_string(contention.holder()) + ")"));
    }
  }
}

TEST_CASE("a slow frame that waited for a lock names the holder for sure", "[locks][session][law]") {
  constexpr int kFrames = 30, kSlow = 20;
  constexpr uint64_t kHoldNs = 2'000'000;
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session =
      Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .frames = &frames});
  REQUIRE(session.status() == absl::OkStatus());
  const auto play = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const timespec pause{0, 100'000};
      nanosleep(&pause, nullptr);
      frames.Mark();
    }
  };
  const uint32_t waiter = ThisThread();
  std::atomic<bool> held{false};
  uint64_t seen_ns = 0;
  std::thread holder([&] {
    const std::lock_guard lock(locks_test_contended);
    held = true;
    AwaitBlocked(waiter, &locks_test_contended, sizeof locks_test_contended);
    seen_ns = ClockNs(CLOCK_MONOTONIC);
    while (ClockNs(CLOCK_MONOTONIC) < seen_ns + kHoldNs) {
    }
  });
  pthread_setname_np(holder.native_handle(), "the-holder");
  frames.Mark();
  play(kSlow);
  while (!held) play(1);
  locks_test_contended.lock();
  locks_test_contended.unlock();
  frames.Mark();
  play(kFrames - kSlow);
  holder.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  size_t found = 0, slow = 0;  // the frame is not among the slow ones if all take as long, because of other programs
  INFO(FormatSlowFrames(*profile));
  for (const SlowFrame& frame : FindSlowFrames(*profile, {.frames = 1000})) {
    const ProfileZone& zone = profile->zones[frame.zone];
    slow += zone.from_ns <= seen_ns && seen_ns < zone.to_ns;
    bool is_found = false;
    for (const FrameCause& cause : frame.causes) {
      if (cause.wait == ProfileSample::kNoWait) continue;
      const ProfileWait& wait = profile->waits[cause.wait];
      if (wait.lock != reinterpret_cast<uintptr_t>(&locks_test_contended)) continue;
      is_found = true;
      INFO(FormatFrameCause(*profile, cause));
      // One wait may be both: the latter while the holder had to wait for a CPU.
      CHECK((cause.kind == FrameCause::Kind::kLock || cause.kind == FrameCause::Kind::kPriorityInversion));
      CHECK(cause.confidence == FrameCause::Confidence::kKnown);
      REQUIRE(cause.thread != FrameCause::kNoThread);
      CHECK(profile->ThreadName(cause.thread) == "the-holder");
    }
    found += is_found;
  }
  CHECK(found == slow);
}

TEST_CASE("a forked child records for a session of its own", "[locks][session][law]") {
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone});
  REQUIRE(session.status() == absl::OkStatus());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    absl::StatusOr<Session> own = Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone});
    if (!own.ok()) _exit(1);
    Contention contention;
    contention.Run(3, 100'000, [](int) {});
    const absl::StatusOr<Profile> profile = own->Stop();
    if (!profile.ok()) _exit(2);
    const auto is_told = [](const ProfileWait& wait) { return wait.lock_kind == ProfileLock::kMutex; };
    _exit(std::ranges::any_of(profile->waits, is_told) ? 0 : 3);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace perfkit::sys::locks
