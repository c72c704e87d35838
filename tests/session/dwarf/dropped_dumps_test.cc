// Sessions that have no room for dumps while names are looked up.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "perfkit/report.h"
#include "perfkit/session.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

bool IsAboutDumps(const std::string& note) {
  return note.find("because of slow unwinding: dumps of stacks were dropped") != note.npos;
}

// The callback of naming is sampled, too, and takes longer than KeepRecords waits. A quarter of memory_bytes is less than
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

}  // namespace
}  // namespace perfkit::session
