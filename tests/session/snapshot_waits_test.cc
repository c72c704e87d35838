// Waits that last while snapshots are taken.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "src/proc/blocked_call.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// The waits of a thread that include a time.
std::vector<ProfileSample> WaitsAt(const Profile& profile, pid_t tid, uint64_t at_ns) {
  std::vector<ProfileSample> waits;
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile.samples) {
    const bool is_wait = sample.event == off_cpu && profile.threads[sample.thread].tid == static_cast<uint32_t>(tid);
    if (is_wait && sample.time_ns <= at_ns && at_ns <= sample.time_ns + sample.weight) waits.push_back(sample);
  }
  return waits;
}

TEST_CASE("snapshots do not cut a wait into pieces", "[session][wall][law]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::atomic<pid_t> tid{0};
  std::thread reader([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
  });
  const auto is_blocked = [&] {
    const std::optional<proc::BlockedCall> call = proc::ReadBlockedCall(tid);
    return call && call->syscall == SYS_read;
  };
  while (!is_blocked()) std::this_thread::yield();
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .own_thread = false});
  REQUIRE(session.status() == absl::OkStatus());
  std::vector<uint64_t> times_ns;
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(5ms);
    REQUIRE(session->Poll() == absl::OkStatus());
    const absl::StatusOr<Profile> snapshot = session->Snapshot();
    REQUIRE(snapshot.status() == absl::OkStatus());
    REQUIRE(snapshot->Check() == absl::OkStatus());
    times_ns.push_back(snapshot->to_ns);
    for (const uint64_t at_ns : times_ns) {
      const std::vector<ProfileSample> waits = WaitsAt(*snapshot, tid, at_ns);
      REQUIRE(waits.size() == 1);
      CHECK(waits[0].time_ns + waits[0].weight == snapshot->to_ns);
      CHECK(waits[0].weight == snapshot->threads[waits[0].thread].off_ns);
    }
  }
  REQUIRE(write(ends[1], "", 1) == 1);
  reader.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  for (const uint64_t at_ns : times_ns) {
    const std::vector<ProfileSample> waits = WaitsAt(*profile, tid, at_ns);
    REQUIRE(waits.size() == 1);
    CHECK(waits[0].time_ns + waits[0].weight > times_ns.back());
    CHECK(waits[0].time_ns < times_ns.front());
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace perfkit::session
