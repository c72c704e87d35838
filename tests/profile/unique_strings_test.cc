// Strings that a profile has several times.
#include "src/profile/unique_strings.h"

#include <catch2/catch.hpp>

#include "tests/profile/random_profile.h"

namespace perfkit::profile {
namespace {

// A copy in which every second use of a string refers to another copy of it.
Profile WithTwins(const Profile& profile) {
  Profile twins = profile;
  const auto strings = static_cast<uint32_t>(profile.strings.size());
  twins.strings.insert(twins.strings.end(), profile.strings.begin(), profile.strings.end());
  bool second = false;
  const auto twin = [&](auto&... used) { ((used += (second = !second) && used != 0 ? strings : 0), ...); };
  for (ProfileThread& thread : twins.threads) twin(thread.name);
  for (ProfileModule& module : twins.modules) twin(module.path, module.build_id);
  for (ProfileCall& call : twins.calls) twin(call.function, call.file);
  for (ProfileWait& wait : twins.waits) twin(wait.detail, wait.waker, wait.preempter.command);
  for (ProfileMemory& memory : twins.memory) twin(memory.name);
  for (ProfileSample& sample : twins.samples) twin(sample.label, sample.task);
  for (ProfileZone& zone : twins.zones) twin(zone.name, zone.cause, zone.reason, zone.state, zone.worst_by);
  for (ProfileTaskPart& part : twins.task_parts) twin(part.name, part.task);
  for (ProfileCounter& counter : twins.counters) twin(counter.name);
  return twins;
}

TEST_CASE("merged with its copy, a profile has each entry once, although its strings are not unique",
          "[profile][unique_strings]") {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    Profile profile = RandomProfile(seed).Make();
    profile.zones.push_back({.from_ns = 1300, .to_ns = 1500, .name = 1});
    profile.zones.push_back({.from_ns = 1600, .to_ns = 1700, .name = 1});
    profile.task_parts.push_back({.from_ns = 1300, .to_ns = 1400, .number = 1, .name = 1, .task = 1});
    profile.task_parts.push_back({.from_ns = 1400, .to_ns = 1450, .number = 1, .name = 1, .task = 1});
    const Profile twins = WithTwins(profile);
    REQUIRE(twins.Check() == absl::OkStatus());
    Profile merged = twins;
    merged.Merge(twins);
    CHECK(merged.Check() == absl::OkStatus());
    CHECK(merged.threads.size() == twins.threads.size());
    CHECK(merged.modules.size() == twins.modules.size());
    CHECK(merged.locations.size() == twins.locations.size());
    CHECK(merged.stacks.size() == twins.stacks.size());
    CHECK(merged.waits.size() == twins.waits.size());
    CHECK(merged.memory.size() == twins.memory.size());
    CHECK(merged.zones.size() == twins.zones.size());
    CHECK(merged.task_parts.size() == twins.task_parts.size());
    CHECK(merged.counters.size() == twins.counters.size());
    Profile unique = twins;
    MakeStringsUnique(unique);
    CHECK(unique.Check() == absl::OkStatus());
    for (size_t i = 0; i < unique.samples.size(); ++i) CHECK(unique.samples[i].label == profile.samples[i].label);
    for (size_t i = 0; i < unique.zones.size(); ++i) CHECK(unique.zones[i].name == profile.zones[i].name);
  }
}

}  // namespace
}  // namespace perfkit::profile
