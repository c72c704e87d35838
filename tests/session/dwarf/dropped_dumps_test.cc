// What happens to dumps while names are looked up.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "perfkit/report.h"
#include "perfkit/session.h"
#include "tests/session/support.h"
#include "tests/support/spinning_thread.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

bool IsAboutDumps(const std::string& note) {
  return note.find("because of slow unwinding: dumps of stacks were dropped") != note.npos;
}

// The callback of naming is sampled, too, and takes longer than kNamingStepNs. A quarter of memory_bytes is less than
// two dumps, so only the first one finds room.
TEST_CASE("samples whose dumps were dropped count, and have no callers", "[session][dropped_dumps][law]") {
  int calls = 0;
  absl::StatusOr<Session> session = Session::Start({.interval = 200us,
                                                    .stacks = SessionStacks::kDumps,
                                                    .memory_bytes = 100 << 10,
                                                    .own_thread = false,
                                                    .lines = false,
                                                    .progress = [&](double) { Spin(++calls <= 3 ? 15ms : 0ms); }});
  REQUIRE(session.status() == absl::OkStatus());
  Spin(20ms);
  const absl::StatusOr<Profile> before = session->Snapshot();
  REQUIRE(before.status() == absl::OkStatus());
  const absl::StatusOr<Profile> after = session->Stop();
  REQUIRE(after.status() == absl::OkStatus());
  CheckLaws(*after);
  const uint64_t dropped = after->accounting.dumps_dropped;
  CHECK(dropped > 0);
  CHECK(std::ranges::any_of(after->accounting.notes, IsAboutDumps));
  uint64_t not_whole = 0;  // samples in the kernel may have callers there
  for (const ProfileSample& sample : after->samples) {
    not_whole += sample.quality == StackQuality::kWhole ? 0 : sample.samples;
  }
  CHECK(not_whole >= dropped);
  CHECK(FormatReport(*after).find(std::to_string(dropped) + " stacks cut to their leaf: dumps") != std::string::npos);
}

// The callback of naming takes as long as a file that is read: the busy thread is sampled for 200 ms of CPU time
// meanwhile, with more dumps than a ring has room for. Those of the second half find room only if the ring is emptied.
TEST_CASE("samples that come while a name is looked up are kept", "[session][dropped_dumps][law]") {
  const testing::SpinningThread busy;
  const clockid_t clock = sys::ThreadCpuClock(busy.tid());
  const auto wait = [&](uint64_t cpu_ns) {
    for (const uint64_t to_ns = sys::ClockNs(clock) + cpu_ns; sys::ClockNs(clock) < to_ns;) {
      std::this_thread::sleep_for(1ms);
    }
  };
  uint64_t middle_ns = 0, end_ns = 0;
  absl::StatusOr<Session> session =
      Session::Start({.stacks = SessionStacks::kDumps, .lines = false, .progress = [&](double) {
                        if (middle_ns != 0) return;
                        wait(100'000'000);
                        middle_ns = sys::ClockNs(CLOCK_MONOTONIC);
                        wait(100'000'000);
                        end_ns = sys::ClockNs(CLOCK_MONOTONIC);
                      }});
  REQUIRE(session.status() == absl::OkStatus());
  wait(10'000'000);
  REQUIRE(session->Snapshot().status() == absl::OkStatus());
  REQUIRE(middle_ns != 0);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const auto between = std::ranges::count_if(profile->samples, [&](const ProfileSample& sample) {
    return profile->threads[sample.thread].tid == static_cast<uint32_t>(busy.tid()) && sample.time_ns > middle_ns &&
           sample.time_ns < end_ns;
  });
  CHECK(between > 0);
}

}  // namespace
}  // namespace perfkit::session
