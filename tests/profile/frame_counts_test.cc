// Which counters belong to a frame: by the names of their tracks.
#include "src/profile/frame_counts.h"

#include <catch2/catch.hpp>
#include <string>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {
namespace {

// A frame with one counter of that name, whose value there is 5.
std::vector<FrameCount> CountsWith(std::string_view frame, std::string_view counter) {
  ProfileBuilder builder;
  const uint32_t thread = builder.AddThread(1, 2, "main");
  const uint32_t zone_name = builder.String(frame), counter_name = builder.String(counter);
  Profile profile = builder.Take();
  ProfileZone zone;
  zone.thread = thread;
  zone.name = zone_name;
  zone.from_ns = 100;
  zone.to_ns = 200;
  zone.is_frame = true;
  profile.zones.push_back(zone);
  profile.counters.push_back({.name = counter_name, .thread = thread, .points = {{100, 5}}});
  return CountsOf(profile, 0, {});
}

TEST_CASE("a counter's restriction is no name of frames", "[profile][frames]") {
  for (const char* const name : {"page-faults", "page-faults, user space only", "page-faults, on some CPUs"}) {
    INFO(name);
    const std::vector<FrameCount> counts = CountsWith("frame 1", name);
    REQUIRE(counts.size() == 1);
    CHECK((counts[0].name == "page-faults" && counts[0].value == 5));
    CHECK(CountsWith("audio 1", name).empty());
    CHECK(CountsWith("audio 1", std::string(name) + " (audio)").size() == 1);
    CHECK(CountsWith("frame 1", std::string(name) + " (audio)").empty());
  }
}

}  // namespace
}  // namespace perfkit::profile
