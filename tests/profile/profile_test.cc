// Profiles by hand: what adds up, and what the check refuses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "perfkit/profile_writer.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

TEST_CASE("a profile built by hand passes its own check", "[profile]") {
  const Profile profile = SampleProfile();
  CHECK(profile.Check() == absl::OkStatus());
  CHECK(profile.Total(profile.EventIndex("cpu-clock")) == Profile::Sum{100'000'000, 100});
  CHECK(profile.Total(profile.EventIndex("page-faults")) == Profile::Sum{30, 3});
  CHECK(profile.Total(profile.EventIndex(kOffCpuEvent)) == Profile::Sum{50'000'000, 2});
  CHECK(profile.EventIndex("cycles") == profile.events.size());
}

TEST_CASE("the example of profile_builder.h is a profile", "[profile]") {
  perfkit::ProfileBuilder builder;
  const uint16_t event = builder.AddEvent({.name = "cpu-clock", .unit = perfkit::ProfileUnit::kNanoseconds});
  const uint32_t main = builder.Function("main", "app", "main.cc", 10);
  const uint32_t work = builder.Function("work", "app", "work.cc", 20);
  builder.AddSample({.time_ns = 1,
                     .weight = 1'000'000,
                     .thread = builder.AddThread(1, 1, "app"),
                     .stack = builder.Stack(builder.Stack(ProfileStack::kRoot, main), work),
                     .event = event,
                     .quality = perfkit::StackQuality::kWhole});
  const perfkit::Profile profile = builder.Take();
  CHECK(profile.Check() == absl::OkStatus());
  CHECK(profile.Total(0) == Profile::Sum{1'000'000, 1});
}

TEST_CASE("strings that nothing refers to are forgotten, and all others found again", "[profile]") {
  ProfileBuilder builder;
  builder.String("forgotten");
  const uint32_t function = builder.Function("work", "app", "work.cc", 1);
  builder.String("forgotten too");
  builder.AddThread(1, 1, "main");
  const uint32_t wait = builder.AddWait({.detail = builder.String("sleep")});
  builder.CompactStrings();
  const Profile& profile = builder.profile();
  CHECK(profile.strings == std::vector<std::string>{"", "app", "work", "work.cc", "main", "sleep"});
  CHECK(profile.ThreadName(0) == "main");
  CHECK(profile.strings[profile.waits[wait].detail] == "sleep");
  CHECK(profile.strings[profile.CallsAt(function)[0].function] == "work");
  CHECK(builder.Module("app") == profile.locations[function].module);
  CHECK(builder.String("new") == 6);
  CHECK(builder.String("main") == 4);
}

TEST_CASE("a function built by hand takes no address from code that is there", "[profile]") {
  ProfileBuilder builder;
  const uint32_t module = builder.Module("app");
  const auto names = [&](uint32_t location, std::string_view name) {
    const ProfileCall call{.function = builder.String(name)};
    builder.SetCalls(location, std::span(&call, 1));
  };
  const uint32_t before = builder.Location(module, 0x100);
  names(before, "before");
  const uint32_t first = builder.Function("first", "app");
  const uint32_t second = builder.Function("second", "app");
  const uint32_t after = builder.Location(module, 0x200);
  names(after, "after");
  const Profile& profile = builder.profile();
  const auto name_at = [&](uint32_t location) { return profile.strings[profile.CallsAt(location)[0].function]; };
  CHECK(name_at(before) == "before");
  CHECK(name_at(first) == "first");
  CHECK(name_at(second) == "second");
  CHECK(name_at(after) == "after");
  CHECK(profile.locations.size() == 4);
}

void EndOffCpuTooLate(Profile& profile) {
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  const auto span = std::ranges::find(profile.samples, off_cpu, &ProfileSample::event);
  span->weight = UINT64_MAX - span->time_ns + 1;
}

TEST_CASE("the check names the table of a wrong index", "[profile]") {
  const std::pair<std::string, std::function<void(Profile&)>> breaks[] = {
      {"strings", [](Profile& p) { p.strings[0] = "x"; }},
      {"threads", [](Profile& p) { p.threads[1].name = 1000; }},
      {"modules", [](Profile& p) { p.modules[0].build_id = 1000; }},
      {"calls", [](Profile& p) { p.calls[1].file = 1000; }},
      {"locations", [](Profile& p) { p.locations[0].module = 1000; }},
      {"locations", [](Profile& p) { p.locations[0].first_call = 1000; }},
      {"locations", [](Profile& p) { p.locations[0].first_call = UINT32_MAX; }},
      {"stacks", [](Profile& p) { p.stacks[1].parent = 1; }},
      {"stacks", [](Profile& p) { p.stacks[0].location = 1000; }},
      {"samples", [](Profile& p) { p.samples[3].thread = 2; }},
      {"samples", [](Profile& p) { p.samples[3].event = 3; }},
      {"samples", [](Profile& p) { p.samples[3].stack = 1000; }},
      {"samples", [](Profile& p) { p.samples[3].stack = ProfileStack::kRoot; }},
      {"samples", [](Profile& p) { p.samples[3].wait = 2; }},
      {"samples", [](Profile& p) { p.samples[3].label = 1000; }},
      {"samples", [](Profile& p) { p.samples[3].task = 1000; }},
      {"samples", [](Profile& p) { p.samples[3].time_ns = 1; }},
      {"samples", [](Profile& p) { p.samples[3].memory = 0; }},
      {"samples", [](Profile& p) { p.samples[3].weight = UINT64_MAX; }},
      {"samples", EndOffCpuTooLate},
      {"waits", [](Profile& p) { p.waits[0].detail = 1000; }},
      {"memory", [](Profile& p) { p.memory = {{.name = 1000}}; }},
      {"memory", [](Profile& p) { p.memory = {{.from = 2, .to = 1}}; }},
      {"zones", [](Profile& p) { p.zones[0].thread = 2; }},
      {"zones", [](Profile& p) { p.zones[0].to_ns = 1; }},
      {"zones", [](Profile& p) { p.zones[0].cause = 1000; }},
      {"zones", [](Profile& p) { p.zones[0].state = 1000; }},
      {"task_parts", [](Profile& p) { p.task_parts = {{.thread = 2}}; }},
      {"task_parts", [](Profile& p) { p.task_parts = {{.name = 1000}}; }},
      {"task_parts", [](Profile& p) { p.task_parts = {{.task = 1000}}; }},
      {"task_parts", [](Profile& p) { p.task_parts = {{.from_ns = 1}}; }},
      {"counters", [](Profile& p) { p.counters[0].name = 1000; }},
      {"counters", [](Profile& p) { p.counters[0].thread = 2; }},
      {"counters", [](Profile& p) { p.counters[0].points[2].time_ns = 1; }},
      {"counters", [](Profile& p) { p.counters[0].points[2].value = std::nan(""); }},
      {"counters", [](Profile& p) { p.counters[0].points[2].value = -INFINITY; }},
  };
  for (const auto& [table, spoil] : breaks) {
    Profile profile = SampleProfile();
    spoil(profile);
    const absl::Status status = profile.Check();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::StartsWith("Profile::" + table + "["));
  }
}

TEST_CASE("numbers that are no value of their enums are refused", "[profile]") {
  const auto refuses = [](auto&& damage) {
    Profile profile = SampleProfile();
    profile.waits.resize(profile.waits.size() + 1);
    profile.counters.resize(profile.counters.size() + 1);
    REQUIRE(profile.Check() == absl::OkStatus());
    damage(profile);
    return absl::IsInvalidArgument(profile.Check());
  };
  CHECK(refuses([](Profile& profile) { profile.events[0].unit = ProfileUnit{77}; }));
  CHECK(refuses([](Profile& profile) { profile.samples[0].quality = StackQuality{77}; }));
  CHECK(refuses([](Profile& profile) { profile.waits.back().holder_quality = StackQuality{200}; }));
  CHECK(refuses([](Profile& profile) { profile.waits.back().preempter.command = 9999; }));
  CHECK(refuses([](Profile& profile) { profile.counters.back().unit = ProfileUnit{77}; }));
}

}  // namespace
}  // namespace perfkit::profile
