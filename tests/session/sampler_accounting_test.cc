// The accounting of samplers in a profile.
#include "src/session/sampler_accounting.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string_view>

namespace perfkit::session {
namespace {

bool Says(const Profile& profile, std::string_view words) {
  return std::ranges::any_of(profile.accounting.notes,
                             [&](const std::string& note) { return note.find(words) != note.npos; });
}

TEST_CASE("a profile says which numbers of its samplers are lower bounds", "[sampler_accounting]") {
  const SamplerStats exact{.events = {{.counted = 10, .delivered = 7, .lost = 3}}, .side_band_lost = 2};
  Profile profile;
  profile.events.resize(1);
  AddAccounting(profile, exact);
  CHECK(profile.accounting.notes.empty());
  SamplerStats bounds = exact;
  bounds.lost_is_lower_bound = true;
  bounds.paused_is_lower_bound = true;
  bounds.threads_missed = 4;
  AddAccounting(profile, bounds);
  CHECK(Says(profile, "more samples may be lost than are counted"));
  CHECK(Says(profile, "could not be told apart"));
  CHECK(Says(profile, "4 threads were not sampled from their begin on"));
  // Of two samplers: sums.
  CHECK(profile.events[0].accounting.counted == 20);
  CHECK(profile.events[0].accounting.lost == 6);
  CHECK(profile.accounting.side_band_lost == 4);
}

}  // namespace
}  // namespace perfkit::session
