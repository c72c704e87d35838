// Samples that the kernel prepared for another sampler, whose clock is not the session's.
#include <catch2/catch.hpp>
#include <string>

#include "tests/session/support.h"
#include "tests/support/raw_sampling.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

TEST_CASE("samples by another sampler's clock have times of the session", "[foreign_samples]") {
  constexpr size_t kPages = 500;
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_TAI}) {
    SessionOptions options;
    options.events = {{.event = "page-faults:u", .rate = Period{1}}};
    options.stacks = SessionStacks::kFramePointers;
    absl::StatusOr<Session> session = Session::Start(options);
    REQUIRE(session.ok());
    const testing::RawSampling later(false, clock);
    testing::FreshPages memory(kPages);
    memory.Touch(0, kPages);
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(profile.ok());
    // A session that opens its events anew, to cost less, comes first again: then the samples are its own.
    if (profile->events[0].accounting.foreign == 0) SKIP_TEST("the session has all samples prepared for itself");
    for (const ProfileSample& sample : profile->samples) {
      if (sample.event != 0) continue;
      CHECK((sample.time_ns == 0 || (sample.time_ns >= profile->from_ns && sample.time_ns <= profile->to_ns)));
    }
    for (const ProfileThread& thread : profile->threads) CHECK(thread.last_ns <= profile->to_ns);
  }
}

}  // namespace
}  // namespace perfkit::session
