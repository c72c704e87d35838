// Sessions with whole stacks: work of known shares, known callers, known waits.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "perfkit/profile_writer.h"
#include "perfkit/session.h"
#include "src/sys/clock.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// Arithmetic until the thread's own clock says so; the clock is asked rarely.
[[gnu::noinline]] uint64_t SpinLeaf(std::chrono::nanoseconds cpu) {
  const uint64_t end_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) + static_cast<uint64_t>(cpu.count());
  uint64_t x = 1;
  while (sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
    for (int i = 0; i < 20'000; ++i) asm volatile("" : "+r"(x));
  }
  return x;
}
[[gnu::noinline]] void SpinMiddle(std::chrono::nanoseconds cpu) {
  SpinLeaf(cpu);
  asm volatile("");  // no tail call
}
[[gnu::noinline]] void SpinOuter(std::chrono::nanoseconds cpu) {
  SpinMiddle(cpu);
  asm volatile("");
}
[[gnu::noinline]] void WaitLeaf(int milliseconds) {
  poll(nullptr, 0, milliseconds);
  asm volatile("");
}
[[gnu::noinline]] void WaitOuter(int milliseconds) {
  WaitLeaf(milliseconds);
  asm volatile("");
}

std::string Folded(const Profile& profile, std::string event) {
  std::string text;
  for (const std::string& note : profile.accounting.notes) text += note + "\n";
  (void)WriteFolded(profile, {.event = std::move(event)},
                    [&](std::string_view bytes) { return text += bytes, absl::OkStatus(); });
  return text;
}

TEST_CASE("a sample in a function has its callers, whichever way stacks are taken", "[session][law]") {
  const auto stacks = GENERATE(SessionStacks::kBest, SessionStacks::kLive, SessionStacks::kDumps);
  absl::StatusOr<Session> session = Session::Start({.interval = 500us, .stacks = stacks});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  SpinOuter(200ms);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  INFO(Folded(*profile, {}));
  CHECK(profile->Total(0) ==
        Profile::Sum{profile->events[0].accounting.represented, profile->events[0].accounting.delivered});
  uint64_t whole = 0;
  for (const ProfileSample& sample : profile->samples) {
    if (sample.quality != StackQuality::kWhole || !HasFunction(*profile, sample.stack, "SpinLeaf")) continue;
    ++whole;
    CHECK(HasFunction(*profile, sample.stack, "SpinMiddle"));
    CHECK(HasFunction(*profile, sample.stack, "SpinOuter"));
    CHECK(HasFunction(*profile, sample.stack, "main"));
  }
  CHECK(whole > 0);
}

[[gnu::noinline]] void SpinDeep(int calls, std::chrono::nanoseconds time) {
  if (calls > 0) {
    SpinDeep(calls - 1, time);
  } else {
    SpinLeaf(time);
  }
  asm volatile("");  // No tail call.
}

TEST_CASE("a stack that is too deep for a record keeps both ends, and the profile says so", "[session][law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's frames need a larger stack");
  absl::StatusOr<Session> session = Session::Start({.interval = 500us, .stacks = SessionStacks::kLive});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  // Until there is one of each: the session's own threads may have no CPU for long.
  uint64_t whole = 0, left_out = 0;
  absl::StatusOr<Profile> profile;
  for (int i = 0; i < 1000 && (whole == 0 || left_out == 0); ++i) {
    SpinDeep(900, 20ms);
    SpinDeep(10'000, 100ms);
    profile = session->Snapshot();
    REQUIRE(profile.status() == absl::OkStatus());
    REQUIRE(profile->Check() == absl::OkStatus());
    whole = left_out = 0;
    for (const ProfileSample& sample : profile->samples) {
      if (!HasFunction(*profile, sample.stack, "SpinLeaf")) continue;
      const bool has_gap = HasFunction(*profile, sample.stack, "[frames left out]");
      left_out += has_gap;
      whole += sample.quality == StackQuality::kWhole;
      CHECK((!has_gap || sample.quality == StackQuality::kPart));
      if (!has_gap && sample.quality != StackQuality::kWhole) continue;
      CHECK(HasFunction(*profile, sample.stack, "SpinDeep"));
      CHECK(HasFunction(*profile, sample.stack, "main"));
    }
  }
  CHECK(whole > 0);
  CHECK(left_out > 0);
  const std::vector<std::string>& notes = profile->accounting.notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("'[frames left out]'") != std::string::npos && note.find("has 100") != std::string::npos;
  }));
}

TEST_CASE("on and off the CPU add up to the wall clock, and a wait has its stack and its call",
          "[session][wall][law]") {
  absl::StatusOr<Session> session = Session::Start({.interval = 1ms, .clock = SessionClock::kWall});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  // Until a wait was looked at: the session's thread has no CPU each time.
  bool was_seen = false;
  for (int i = 0; i < 10 || (!was_seen && i < 10'000); ++i) {
    SpinOuter(5ms);
    WaitOuter(10);
    if (i % 10 != 9) continue;
    const absl::StatusOr<Profile> snapshot = session->Snapshot();
    REQUIRE(snapshot.status() == absl::OkStatus());
    for (const ProfileSample& sample : snapshot->samples) was_seen |= HasFunction(*snapshot, sample.stack, "WaitLeaf");
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  INFO(Folded(*profile, std::string(kOffCpuEvent)));
  const size_t off = profile->EventIndex(kOffCpuEvent);
  REQUIRE(off < profile->events.size());
  const auto self = static_cast<uint32_t>(getpid());
  uint64_t waited_ns = 0, off_ns = 0;
  for (const ProfileSample& sample : profile->samples) {
    if (sample.event != off || profile->threads[sample.thread].tid != self) continue;
    off_ns += sample.weight;
    if (!HasFunction(*profile, sample.stack, "WaitLeaf")) continue;
    waited_ns += sample.weight;
    // Of a blocked thread only sp and pc are known: a walk ends at a frame that is found by its frame pointer.
    if (sample.quality == StackQuality::kWhole) CHECK(HasFunction(*profile, sample.stack, "WaitOuter"));
  }
  for (const ProfileThread& thread : profile->threads) {
    if (thread.tid != self) continue;
    CHECK(thread.off_ns == off_ns);
    const uint64_t wall_ns = profile->to_ns - profile->from_ns;
    CHECK(thread.on_ns + thread.off_ns == wall_ns);
  }
  CHECK(waited_ns > 0);
}

}  // namespace
}  // namespace perfkit::session
