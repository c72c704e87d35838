// Chrome's trace events as JSON: what each kind needs, and that slices of a thread nest. What a reader makes of the
// stacks: readers/chrome_check.cc. No reader that can be installed shows counters: they are held to the format here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "perfkit/exporters.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/refusing_sink.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using profile::SampleProfile;

Json Chrome(const Profile& profile, const std::string& event = "") {
  std::string file;
  REQUIRE(WriteChrome(profile, {.event = event}, [&](std::string_view bytes) {
            file += bytes;
            return absl::OkStatus();
          }) == absl::OkStatus());
  return Json::parse(file);
}

std::vector<Json> EventsOf(const Json& file, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : file["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

TEST_CASE("chrome: each event has what its kind needs", "[exporters][chrome]") {
  const std::map<std::string, std::set<std::string>> needed = {
      {"M", {"name", "args"}},      {"X", {"name", "cat", "dur"}}, {"b", {"name", "cat", "id"}},
      {"e", {"name", "cat", "id"}}, {"C", {"name", "args"}},       {"P", {"name", "cat", "id", "args"}}};
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    INFO("seed " << seed);
    const Json file = Chrome(AnyProfile(seed).Make());
    for (const Json& event : file["traceEvents"]) {
      INFO(event.dump());
      REQUIRE(needed.contains(event["ph"].get<std::string>()));
      for (const char* const key : {"pid", "tid", "ts"}) CHECK(event[key].is_number());
      for (const std::string& key : needed.at(event["ph"])) CHECK(event.contains(key));
    }
    CHECK(file["otherData"]["accounting 1"].is_string());
  }
}

TEST_CASE("chrome: slices of a thread nest, and none is lost", "[exporters][chrome]") {
  size_t pairs = 0;
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    INFO("seed " << seed);
    const Profile profile = AnyProfile(seed).Make();
    const Json file = Chrome(profile);
    std::map<uint32_t, std::vector<std::pair<double, double>>> slices;
    for (const Json& event : EventsOf(file, "X")) slices[event["tid"]].emplace_back(event["ts"], event["dur"]);
    size_t count = 0;
    for (auto& [tid, of_thread] : slices) {
      count += of_thread.size();
      for (const auto& [from, length] : of_thread) {
        for (const auto& [other, other_length] : of_thread) {
          const double slack = 1e-4;  // of microseconds, as these are rounded
          const bool crosses =
              other > from + slack && other < from + length - slack && other + other_length > from + length + slack;
          CHECK(!crosses);
        }
      }
    }
    CHECK(EventsOf(file, "b").size() == EventsOf(file, "e").size());
    pairs += EventsOf(file, "b").size();
    std::map<std::string, std::string> names;  // of the task, by id
    for (const Json& event : EventsOf(file, "b")) {
      const std::string path = event["name"], name = path.substr(0, path.find('/'));
      CHECK(names.try_emplace(event["id"], name).first->second == name);
    }
    size_t expected = profile.zones.size() + profile.task_parts.size();
    for (const ProfileSample& sample : profile.samples) {
      expected += profile.events[sample.event].name == kOffCpuEvent && !sample.merged() ? 1 : 0;
    }
    CHECK(count + EventsOf(file, "b").size() == expected);
  }
  CHECK(pairs > 0);
}

TEST_CASE("chrome: zones, frames, waits and counters have their numbers", "[exporters][chrome]") {
  const Json file = Chrome(SampleProfile());
  const std::vector<Json> slices = EventsOf(file, "X"), counters = EventsOf(file, "C");
  REQUIRE(slices.size() == 4);
  CHECK(slices[0]["cat"] == "frame");
  CHECK(slices[0]["ts"] == 1'000'000);
  CHECK(slices[0]["dur"] == 100'000);
  CHECK(slices[0]["args"]["late"] == "a slow zone");
  CHECK(slices[1]["name"] == "physics");
  CHECK(slices[2]["args"]["reason"] == "futex 0x1000");
  CHECK(slices[3]["args"]["reason"] == "preempted");
  REQUIRE(counters.size() == 3);
  CHECK(counters[1]["name"] == "queue length");
  CHECK(counters[1]["args"]["count"] == 5.5);
  CHECK(file["otherData"].dump().find("not here: the stacks of page-faults") != std::string::npos);
}

// Viewers identify a counter by its process and its name.
TEST_CASE("chrome: threads with the same numbers are two", "[exporters][chrome]") {
  Profile profile;
  for (const uint64_t from_ns : {1000, 2000}) {
    ProfileBuilder builder;
    const uint32_t thread = builder.AddThread(1, 1, from_ns == 1000 ? "accept" : "send");
    builder.profile().threads[thread].first_ns = from_ns;
    builder.AddZone({.from_ns = from_ns, .to_ns = from_ns + 1500, .thread = thread, .name = builder.String("zone")});
    profile.Merge(builder.Take());
  }
  REQUIRE(profile.threads.size() == 2);
  const Json file = Chrome(profile);
  std::map<uint32_t, std::set<std::string>> names;
  for (const Json& event : EventsOf(file, "M")) {
    if (event["name"] == "thread_name") names[event["tid"]].insert(event["args"]["name"].get<std::string>());
  }
  REQUIRE(names.size() == 2);
  for (const auto& [tid, of_thread] : names) CHECK(of_thread.size() == 1);
  CHECK(names.begin()->first == 1);
  std::set<uint32_t> with_zones;
  for (const Json& event : EventsOf(file, "X")) with_zones.insert(event["tid"].get<uint32_t>());
  CHECK(with_zones.size() == 2);
}

TEST_CASE("chrome: counters of two threads with one name have two names", "[exporters][chrome]") {
  ProfileBuilder builder;
  for (const uint32_t tid : {1u, 2u}) {
    const uint32_t thread = builder.AddThread(1, tid, "worker");
    builder.profile().counters.push_back(
        {.name = builder.String("page-faults"), .thread = thread, .points = {{1'000'000, 5}}});
  }
  const std::vector<Json> counters = EventsOf(Chrome(builder.Take()), "C");
  REQUIRE(counters.size() == 2);
  CHECK(counters[0]["name"] != counters[1]["name"]);
}

TEST_CASE("chrome: each sample with a time is in its thread's profile, nodes before it", "[exporters][chrome]") {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    INFO("seed " << seed);
    const Profile profile = AnyProfile(seed).Make();
    std::map<uint32_t, size_t> shown, expected;
    std::set<uint64_t> nodes;
    const Json file = Chrome(profile);
    for (const Json& chunk : EventsOf(file, "P")) {
      if (chunk["name"] != "ProfileChunk") continue;
      const Json& data = chunk["args"]["data"];
      for (const Json& node : data["cpuProfile"]["nodes"]) {
        if (node.contains("parent")) CHECK(nodes.contains(node["parent"].get<uint64_t>()));
        CHECK(nodes.insert(node["id"].get<uint64_t>()).second);
      }
      for (const Json& sample : data["cpuProfile"]["samples"]) CHECK(nodes.contains(sample.get<uint64_t>()));
      CHECK(data["timeDeltas"].size() == data["cpuProfile"]["samples"].size());
      shown[chunk["tid"]] += data["timeDeltas"].size();
    }
    for (const ProfileSample& sample : profile.samples) {
      if (sample.event == 0 && !sample.merged()) ++expected[profile.threads[sample.thread].tid];
    }
    CHECK(shown == expected);
  }
}

TEST_CASE("chrome: hostile names and an empty profile are valid JSON", "[exporters][chrome]") {
  const Json file = Chrome(HostileProfile());
  CHECK(EventsOf(file, "C").size() == 2 * HostileNames().size());
  CHECK(Chrome(Profile())["traceEvents"] == Json::array());
}

TEST_CASE("chrome: whichever piece a sink refuses, its status is the writer's", "[exporters][chrome]") {
  CheckRefusedPieces(WriteChrome, HostileProfile());
}

}  // namespace
}  // namespace perfkit::testing
