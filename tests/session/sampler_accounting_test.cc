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
  AddAccounting(profile, exact, 0);
  CHECK(profile.accounting.notes.empty());
  SamplerStats bounds = exact;
  bounds.lost_is_lower_bound = true;
  bounds.paused_is_lower_bound = true;
  bounds.threads_missed = 4;
  AddAccounting(profile, bounds, 0);
  CHECK(Says(profile, "more samples may be lost than are counted"));
  CHECK(Says(profile, "could not be told apart"));
  CHECK(Says(profile, "4 threads were not sampled from their begin on"));
  // Of two samplers: sums.
  CHECK(profile.events[0].accounting.counted == 20);
  CHECK(profile.events[0].accounting.lost == 6);
  CHECK(profile.accounting.side_band_lost == 4);
}

TEST_CASE("a profile says what was decided about its samples, when and why", "[sampler_accounting]") {
  using What = SamplerDecision::What;
  using Why = SamplerDecision::Why;
  const auto note_of = [](const SamplerDecision& decision) {
    Profile profile;
    AddAccounting(profile, {.decisions = {decision}}, 10'000'000);
    REQUIRE(profile.accounting.notes.size() == 1);
    return profile.accounting.notes[0];
  };
  CHECK(note_of({.what = What::kSamples, .why = Why::kCost, .from = 2, .to = 16, .from_ns = 70'000'000}) ==
        "60.0 ms after the start, because of the CPU budget: one sample in 16, before: one in 2");
  CHECK(note_of({.what = What::kStackBytes, .why = Why::kLoss, .from = 8192, .to = 512, .from_ns = 71'000'000}) ==
        "61.0 ms after the start, because of losses: bytes or calls of a stack from 8192 to 512");
  CHECK(note_of({.what = What::kStack, .why = Why::kHeadroom, .from = 0, .to = 512, .from_ns = 72'000'000}) ==
        "62.0 ms after the start, because of headroom: stacks from 0 to 512");
  CHECK(note_of({.what = What::kSamples, .why = Why::kNoProgress, .from = 1, .to = 8, .from_ns = 73'000'000}) ==
        "63.0 ms after the start, because of a thread that did not advance between two signals: one sample in 8, "
        "before: one in 1");
  CHECK(note_of({.what = What::kSamples, .why = Why::kNoProgress, .from = 8, .to = 8, .from_ns = 74'000'000}) ==
        "64.0 ms after the start, because of a thread that did not advance between two signals: no samples until the "
        "end");
}

}  // namespace
}  // namespace perfkit::session
