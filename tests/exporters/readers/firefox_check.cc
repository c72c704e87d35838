// Firefox's format as its own reader shows it: the numbers of each function are the profile's, to the sample.
#include <algorithm>

#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/readers/pq.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using profile::SampleProfile;

// What a thread of the file holds, by its id: "43" the first event, "43.2" the third one, "43.2.m" its merged samples.
SampleFilter FilterOf(const Profile& profile, std::string id) {
  const bool merged = id.ends_with(".m");
  if (merged) id.resize(id.size() - 2);
  const size_t dot = id.find('.');
  const size_t event = dot == std::string::npos ? 0 : std::stoul(id.substr(dot + 1));
  const unsigned long tid = std::stoul(id.substr(0, dot));
  return [&profile, merged, event, tid](const ProfileSample& sample) {
    return profile.threads[sample.thread].tid == tid && sample.event == event && sample.merged() == merged;
  };
}

void CheckFirefoxFunctions(const Profile& profile, const Json& thread, const Json& answer) {
  const double scale = answer["weightType"] == "tracing-ms" ? 1e6 : 1;
  FunctionSums shown;
  size_t rows = 0;
  for (const Json& row : answer["functions"]) {
    ++rows;
    FunctionSum& sum = shown[{row["name"], row.value("library", "unknown")}];
    sum.self.weight += static_cast<uint64_t>(std::llround(row["selfSamples"].get<double>() * scale));
    sum.total.weight += static_cast<uint64_t>(std::llround(row["totalSamples"].get<double>() * scale));
  }
  for (const auto& [function, sum] : SumsOfFunctions(profile, FilterOf(profile, thread["tid"]), "")) {
    if (function.first.empty() || sum.total.weight == 0) continue;  // samples without a stack are of no function
    INFO(function.first << " in " << function.second);
    REQUIRE(shown.contains(function));
    CHECK(shown[function].self.weight == sum.self.weight);
    // One name in two files is two functions there: what they call together counts for both.
    if (rows == shown.size()) CHECK(shown[function].total.weight == sum.total.weight);
  }
}

void CheckFirefoxThreads(const Profile& profile) {
  const Pq pq(profile, ".json.gz");
  const Json list = pq.Ask("thread list");
  REQUIRE(!list["threads"].empty());
  for (const Json& thread : list["threads"]) {
    INFO(thread.dump());
    CheckFirefoxFunctions(profile, thread,
                          pq.Ask("thread functions --thread " + thread["threadHandle"].get<std::string>()));
  }
}

TEST_CASE("firefox's reader shows each function's numbers, for each thread and event", "[readers][node][firefox]") {
  NEED_NODE_READERS();
  CheckFirefoxThreads(SampleProfile());
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    CheckFirefoxThreads(AnyProfile(seed).Make());
  }
}

TEST_CASE("firefox's reader shows zones, frames, waits and counters", "[readers][node][firefox]") {
  NEED_NODE_READERS();
  const Pq pq(SampleProfile(), ".json.gz");
  const Json zones = pq.Ask("thread markers --thread t-0"), waits = pq.Ask("thread markers --thread t-1");
  CHECK(zones["totalMarkerCount"] == 2);
  CHECK(waits["totalMarkerCount"] == 2);
  const Json first = waits["byType"][0]["topMarkers"][0];
  CHECK(first["label"] == "off-CPU: futex 0x1000");
  CHECK(first["start"] == 110);
  CHECK(first["duration"] == 40);
  const Json counter = pq.Ask("counter info c-0");
  CHECK(counter["name"] == "queue length");
  CHECK(counter["rangeSampleCount"] == 3);
  CHECK(*std::max_element(counter["graph"].begin(), counter["graph"].end()) == 5.5);
}

TEST_CASE("firefox's reader opens hostile names, deep stacks and an empty profile", "[readers][node][firefox]") {
  NEED_NODE_READERS();
  const Pq hostile(HostileProfile(), ".json.gz");
  CHECK(hostile.Ask("thread list")["totalThreadCount"] > HostileNames().size());
  ProfileBuilder builder;
  const auto event = builder.AddEvent({.name = "faults"});
  const uint32_t thread = builder.AddThread(1, 1, "deep");
  uint32_t stack = ProfileStack::kRoot;
  for (int i = 0; i < 3000; ++i) stack = builder.Stack(stack, builder.Function("f" + std::to_string(i), "/bin/app"));
  builder.AddSample(
      {.time_ns = 1, .weight = 5, .thread = thread, .stack = stack, .event = event, .quality = StackQuality::kWhole});
  const Pq deep(builder.Take(), ".json.gz");
  CHECK(deep.Ask("thread functions --thread t-0")["totalFunctionCount"] == 3000);
  const Pq empty(Profile(), ".json.gz");
  CHECK(empty.Ask("thread list")["threads"][0]["name"] == "no threads");
}

}  // namespace
}  // namespace perfkit::testing
