// Firefox's format as JSON: the version, the traps, all weights. What its reader makes of it: readers/firefox_check.cc.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "perfkit/exporters.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/gunzip.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/refusing_sink.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using profile::SampleProfile;

Json Firefox(const Profile& profile, const std::string& event = "") {
  std::string file;
  REQUIRE(WriteFirefox(profile, {.event = event}, [&](std::string_view bytes) {
            file += bytes;
            return absl::OkStatus();
          }) == absl::OkStatus());
  const std::optional<std::string> text = Gunzip(file);
  REQUIRE(text.has_value());
  return Json::parse(*text);
}

// The tables index each other: each column is as long as its table says.
void CheckColumns(const Json& table) {
  for (const auto& [name, column] : table.items()) {
    INFO(name);
    if (column.is_array()) CHECK(column.size() == table["length"]);
  }
}

TEST_CASE("firefox: version 66, a schema for each marker, and no marker field named cause", "[exporters][firefox]") {
  const Json file = Firefox(SampleProfile());
  CHECK(file["meta"]["preprocessedProfileVersion"] == 66);
  std::map<std::string, Json> schemas;
  for (const Json& schema : file["meta"]["markerSchema"]) schemas[schema["name"]] = schema;
  size_t markers = 0;
  for (const Json& thread : file["threads"]) {
    for (const Json& data : thread["markers"]["data"]) {
      ++markers;
      CHECK(schemas.contains(data["type"].get<std::string>()));
      CHECK(!data.contains("cause"));
    }
  }
  CHECK(markers == 4);
  CHECK(file["threads"][0]["markers"]["data"][0]["late"] == "a slow zone");
  CHECK(file["counters"][0]["samples"]["count"] == Json{1.0, 4.5, -5.5});
  CHECK(file["counters"][0]["display"].is_object());
  CHECK(file["meta"]["extra"].dump().find("3 samples lost") != std::string::npos);
}

TEST_CASE("firefox: columns are as long as their tables, and stacks lead to the root", "[exporters][firefox]") {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    INFO("seed " << seed);
    const Json file = Firefox(AnyProfile(seed).Make());
    const Json& shared = file["shared"];
    for (const char* const name : {"stackTable", "frameTable", "funcTable", "resourceTable", "sources"}) {
      CheckColumns(shared[name]);
    }
    for (size_t i = 0; i < shared["stackTable"]["length"]; ++i) CHECK(shared["stackTable"]["prefixOffset"][i] <= i);
    for (const Json& name : shared["funcTable"]["name"]) CHECK(name < shared["stringArray"].size());
    for (const Json& thread : file["threads"]) {
      CheckColumns(thread["samples"]);
      CheckColumns(thread["markers"]);
      for (const Json& delta : thread["samples"]["timeDeltas"]) CHECK(delta >= 0);
    }
  }
}

TEST_CASE("firefox: each sample is in exactly one thread, with its weight", "[exporters][firefox]") {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    INFO("seed " << seed);
    const Profile profile = AnyProfile(seed).Make();
    std::map<std::string, uint64_t> weights, expected;
    const Json file = Firefox(profile);
    for (const Json& thread : file["threads"]) {
      const double scale = thread["samples"]["weightType"] == "tracing-ms" ? 1e6 : 1;
      std::string key = thread["samples"]["weightType"].get<std::string>() + " " + thread["tid"].get<std::string>();
      for (const Json& weight : thread["samples"]["weight"]) {
        weights[key] += static_cast<uint64_t>(std::llround(weight.get<double>() * scale));
      }
    }
    for (const ProfileSample& sample : profile.samples) {
      constexpr const char* kTypes[] = {"samples ", "tracing-ms ", "bytes "};
      std::string key = kTypes[static_cast<size_t>(profile.events[sample.event].unit)];
      key += std::to_string(profile.threads[sample.thread].tid);
      if (sample.event != 0 || sample.merged()) key += "." + std::to_string(sample.event);
      expected[key + (sample.merged() ? ".m" : "")] += sample.weight;
    }
    CHECK(weights == expected);
  }
}

TEST_CASE("firefox: the event that is asked for is in the threads that have their plain names",
          "[exporters][firefox]") {
  const Json file = Firefox(SampleProfile(), "page-faults");
  const Json worker = *std::find_if(file["threads"].begin(), file["threads"].end(),
                                    [](const Json& thread) { return thread["tid"] == "43"; });
  CHECK(worker["name"] == "worker \"1\"; <a>");
  CHECK(worker["samples"]["weight"] == Json{10, 10, 10});
  CHECK(WriteFirefox(SampleProfile(), {.event = "cycles"}, [](std::string_view) { return absl::OkStatus(); }).code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("firefox: threads with the same numbers are two", "[exporters][firefox]") {
  Profile profile = SampleProfile();
  profile.threads[1].pid = profile.threads[0].pid;
  profile.threads[1].tid = profile.threads[0].tid;
  profile.threads[1].first_ns = profile.threads[0].first_ns + 1;
  std::set<std::string> tids;
  const Json file = Firefox(profile);
  for (const Json& thread : file["threads"]) CHECK(tids.insert(thread["tid"].get<std::string>()).second);
}

TEST_CASE("firefox: threads of a part of a profile have no times before it", "[exporters][firefox]") {
  Profile profile = SampleProfile();
  for (ProfileThread& thread : profile.threads) thread.first_ns = profile.from_ns, thread.last_ns = profile.from_ns + 1;
  profile.threads[0].last_ns = profile.to_ns;
  profile.zones.clear();
  const Profile part = profile.Filtered({.from_ns = profile.from_ns + 10'000'000});
  REQUIRE(part.from_ns == profile.from_ns + 10'000'000);
  const Json file = Firefox(part);
  for (const Json& thread : file["threads"]) {
    CHECK(thread["registerTime"] == 0);
    const bool lasts = thread["tid"].get<std::string>().starts_with("42");
    CHECK((lasts ? thread["unregisterTime"] > 0 : thread["unregisterTime"] == 0));
  }
}

TEST_CASE("firefox: hostile names and an empty profile are valid JSON", "[exporters][firefox]") {
  CHECK(Firefox(HostileProfile())["threads"].size() > HostileNames().size());
  CHECK(Firefox(Profile())["threads"].size() == 1);
}

TEST_CASE("firefox: whichever piece a sink refuses, its status is the writer's", "[exporters][firefox]") {
  CheckRefusedPieces(WriteFirefox, HostileProfile());
}

}  // namespace
}  // namespace perfkit::testing
