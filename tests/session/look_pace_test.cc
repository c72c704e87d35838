// LookPace: rounds of examinations that come early.
#include "src/session/look_pace.h"

#include <catch2/catch.hpp>

namespace perfkit::session {
namespace {

constexpr uint64_t kOneMs = 1'000'000;

TEST_CASE("rounds come early while a quarter of the time is missed", "[session][look_pace]") {
  LookPace pace;
  pace.EndRound(1'000 * kOneMs);
  CHECK(!pace.hurries());
  pace.AddMissed(1 * kOneMs);
  pace.EndRound(1'004 * kOneMs);
  CHECK(pace.hurries());
  pace.AddMissed(kOneMs / 5);
  pace.EndRound(1'005 * kOneMs);
  CHECK(!pace.hurries());
}

TEST_CASE("rounds that cannot examine threads do not come early", "[session][look_pace]") {
  LookPace pace;
  pace.EndRound(1'000 * kOneMs);
  pace.AddMissed(4 * kOneMs);
  pace.EndRound(1'004 * kOneMs);
  REQUIRE(pace.hurries());
  pace.GiveUp();
  CHECK(!pace.hurries());
  pace.EndRound(1'008 * kOneMs);
  CHECK(!pace.hurries());
}

}  // namespace
}  // namespace perfkit::session
