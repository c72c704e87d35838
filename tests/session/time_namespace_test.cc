// A session in a time namespace, whose processes see another CLOCK_MONOTONIC than the kernel's records have.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "perfkit/frame_counter.h"
#include "perfkit/session.h"
#include "src/sys/clock.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

enum Result : int { kHolds, kMayNot, kNoOffset, kNoSession, kInvalid, kTooLong, kOutside, kNoLabel, kNoWait };

// Makes time namespaces for the children of this process, with a clock that differs by `offset`, "SECONDS NANOSECONDS".
bool ShiftClockOfChildren(const char* offset) {
  if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return false;
  const std::string text = std::string("monotonic ") + offset;
  const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  const bool wrote = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return wrote;
}

// Works in a zone, sleeps in another.
Result Profiled() {
  if (sys::ClockOffsetNs(CLOCK_MONOTONIC) == 0) return kNoOffset;
  FrameCounter frames({.events = {"page-faults:u"}});
  SessionOptions options{.clock = SessionClock::kWall, .user_only = true, .frames = &frames, .own_thread = false};
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  if (!session.ok()) return kNoSession;
  for (int i = 0; i < 4; ++i) {
    {
      PERFKIT_ZONE(frames, "work");
      Spin(30ms);
    }
    {
      PERFKIT_ZONE(frames, "sleep");
      std::this_thread::sleep_for(20ms);
    }
    frames.Mark();
    if (!session->Poll().ok()) return kNoSession;
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  if (!profile.ok() || !profile->Check().ok()) return kInvalid;
  const uint64_t wall_ns = profile->to_ns - profile->from_ns;
  for (const ProfileThread& thread : profile->threads) {
    if (thread.on_ns + thread.off_ns > wall_ns + 1'000'000) return kTooLong;
  }
  bool works = false, sleeps = false;
  const size_t off_cpu = profile->EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile->samples) {
    if (sample.time_ns < profile->from_ns || sample.time_ns > profile->to_ns) return kOutside;
    const std::string& label = profile->strings[sample.label];
    works = works || (sample.event != off_cpu && label == "work");
    sleeps = sleeps || (sample.event == off_cpu && label == "sleep" && sample.weight >= 10'000'000);
  }
  return !works ? kNoLabel : sleeps ? kHolds : kNoWait;
}

// A process enters its time namespace when it is forked.
Result InChild(Result (*body)()) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Result>(WEXITSTATUS(status)) : kInvalid;
}

template <size_t kOffset>
Result InNamespace() {
  constexpr const char* kOffsets[] = {"86400 5", "-20 7"};
  // The parent's offsets are known here: the child must not take them for its own.
  (void)sys::ClockNs(CLOCK_MONOTONIC);
  return ShiftClockOfChildren(kOffsets[kOffset]) ? InChild(Profiled) : kMayNot;
}

TEST_CASE("in a time namespace, zones, waits and samples have the same clock", "[session][law]") {
  const Result later = InChild(InNamespace<0>), earlier = InChild(InNamespace<1>);
  if (later == kMayNot) SKIP_TEST("time namespaces may not be made here");
  CHECK(later == kHolds);
  CHECK(earlier == kHolds);
}

}  // namespace
}  // namespace perfkit::session
