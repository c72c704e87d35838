// Pauses: which frames are not whole.
#include "src/session/pauses.h"

#include <catch2/catch.hpp>

namespace perfkit::session {
namespace {

bool IsWhole(const Pauses& pauses, uint64_t from_ns, uint64_t to_ns) {
  Profile profile;
  profile.zones.push_back({.from_ns = from_ns, .to_ns = to_ns, .is_frame = true});
  profile.zones.push_back({.from_ns = from_ns, .to_ns = to_ns});
  pauses.Mark(profile);
  CHECK(profile.zones[1].is_whole);  // A zone that is not a frame has no explanation that could be wrong.
  return profile.zones[0].is_whole;
}

TEST_CASE("frames that overlap a pause are not whole, those beside it are", "[session][pauses]") {
  Pauses pauses;
  CHECK(IsWhole(pauses, 0, 1000));
  pauses.Begin(100);
  CHECK(IsWhole(pauses, 50, 100));
  CHECK_FALSE(IsWhole(pauses, 50, 101));
  CHECK_FALSE(IsWhole(pauses, 5000, 5001));
  pauses.End(200);
  pauses.End(999);  // It has ended already.
  pauses.Begin(300);
  pauses.End(400);
  CHECK(IsWhole(pauses, 50, 100));
  CHECK_FALSE(IsWhole(pauses, 199, 200));
  CHECK(IsWhole(pauses, 200, 300));
  CHECK_FALSE(IsWhole(pauses, 200, 301));
  CHECK_FALSE(IsWhole(pauses, 0, 1000));
  CHECK(IsWhole(pauses, 400, 401));
}

TEST_CASE("a profile says how often and how long its session was paused", "[session][pauses]") {
  Pauses pauses;
  std::vector<std::string> notes;
  pauses.AddNotes(notes, 0);
  CHECK(notes.empty());
  pauses.Begin(1'000'000);
  pauses.End(3'500'000);
  pauses.AddNotes(notes, 3'500'000);  // a profile that begins when the pause has ended
  CHECK(notes.empty());
  pauses.AddNotes(notes, 3'499'999);
  CHECK(notes.back() == "the session was paused once, for 2.500 ms: frames of that time are not explained");
  pauses.Begin(5'000'000);
  pauses.AddNotes(notes, 0);
  CHECK(notes.back() ==
        "the session was paused 2 times, for 2.500 ms and until now: frames of that time are not explained");
  pauses.AddNotes(notes, 6'000'000);
  CHECK(notes.back() ==
        "the session was paused once, for 0.000 ms and until now: frames of that time are not explained");
}

TEST_CASE("of very many pauses the oldest are joined, and no frame is whole that was not", "[session][pauses]") {
  Pauses pauses;
  for (uint64_t i = 1; i <= Pauses::kMaxPauses + 2; ++i) {
    pauses.Begin(1000 * i);
    pauses.End(1000 * i + 1);
  }
  CHECK_FALSE(IsWhole(pauses, 1000, 1001));
  CHECK_FALSE(IsWhole(pauses, 1500, 1600));  // Within the joined one.
  CHECK(IsWhole(pauses, 900, 1000));
  CHECK(IsWhole(pauses, 3500, 3600));
  CHECK_FALSE(IsWhole(pauses, 4000, 4001));
  CHECK_FALSE(IsWhole(pauses, 1000 * (Pauses::kMaxPauses + 2), 1000 * (Pauses::kMaxPauses + 3)));
  std::vector<std::string> notes;
  pauses.AddNotes(notes, 0);
  CHECK(notes.back() == "the session was paused 4098 times, for 0.004 ms: frames of that time are not explained");
}

}  // namespace
}  // namespace perfkit::session
