// What a session costs the program: CPU time, and what it does to limit it; memory that it leaves.
#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "tests/session/support.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

SessionOptions Driven() {
  return {.interval = 100us, .stacks = SessionStacks::kNone, .own_thread = false, .lines = false};
}

// Without a thread of its own, all that a session does is done by the caller.
TEST_CASE("a session's CPU time is a part of its caller's", "[session][own_cost][law]") {
  const uint64_t before_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  absl::StatusOr<Session> session = Session::Start(Driven());
  REQUIRE(session.status() == absl::OkStatus());
  const uint64_t work_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  Spin(20ms);
  const uint64_t worked_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - work_ns;
  REQUIRE(session->Poll() == absl::OkStatus());
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  REQUIRE(snapshot.status() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const uint64_t all_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - before_ns;
  const ProfileAccounting &first = snapshot->accounting, &last = profile->accounting;
  CHECK(last.own_cpu_ns + worked_ns <= all_ns);
  CHECK(first.own_cpu_ns > 0);
  CHECK(first.naming_cpu_ns > 0);
  CHECK(first.naming_cpu_ns <= first.own_cpu_ns);
  // Both add up over the session.
  CHECK(last.naming_cpu_ns > first.naming_cpu_ns);
  CHECK(first.own_cpu_ns + last.naming_cpu_ns - first.naming_cpu_ns <= last.own_cpu_ns);
}

TEST_CASE("the CPU time of a session's thread is a part of the process's", "[session][own_cost][law]") {
  const uint64_t before_ns = sys::ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  SessionOptions options = Driven();
  options.own_thread = true;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  const uint64_t spun_ns = 20'000'000;
  Spin(std::chrono::nanoseconds(spun_ns));
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const uint64_t all_ns = sys::ClockNs(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
  CHECK(profile->accounting.own_cpu_ns > 0);
  CHECK(profile->accounting.own_cpu_ns + spun_ns <= all_ns);
}

bool IsBudgetNote(const std::string& note) {
  return note.find("because of the CPU budget: one sample in ") != note.npos && note.ends_with(", before: one in 1");
}

// Any sampling costs more than a millionth of a CPU, so the rate falls, however fast the machine is.
TEST_CASE("a session over its CPU budget samples less often, and says so", "[session][own_cost][law]") {
  SessionOptions options = Driven();
  options.cpu_budget = 1e-6;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  absl::StatusOr<Profile> profile;
  do {
    Spin(20ms);
    REQUIRE(session->Poll() == absl::OkStatus());
    profile = session->Snapshot();
    REQUIRE(profile.status() == absl::OkStatus());
  } while (std::ranges::none_of(profile->accounting.notes, IsBudgetNote));
  profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
// What is allocated, without what the caches of ended threads held.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// malloc's smallest block is 32 bytes: a leak of one in each session would be 32,000.
TEST_CASE("a thousand sessions leave no memory", "[session][own_cost][law]") {
  if (testing::kSanitized) return;  // its malloc has no such counts, and finds leaks itself
  const auto run = [](int rounds) {
    std::thread([&] {
      for (int round = 0; round < rounds; ++round) {
        absl::StatusOr<Session> session = Session::Start({.stacks = SessionStacks::kNone, .lines = false});
        REQUIRE(session.status() == absl::OkStatus());
        if (round % 2 == 0) REQUIRE(session->Stop().status() == absl::OkStatus());
      }
    }).join();
  };
  run(20);
  const size_t before = HeapBytes();
  run(1000);
  const size_t after = HeapBytes();
  CHECK(after <= before + 16'000);
}
#endif

}  // namespace
}  // namespace perfkit::session
