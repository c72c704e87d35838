// Chrome's format as Firefox Profiler's command line reads it: the samples of each function and thread are the
// profile's, and each zone and wait is there. It drops counters, and samples less than 0.5 ms after the one before.
#include <algorithm>
#include <map>
#include <set>

#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/readers/pq.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;

// Times that this reader keeps apart, and names that tell functions apart without their modules, which it has not.
Profile Spread(Profile profile) {
  uint64_t time_ns = profile.from_ns;
  for (ProfileSample& sample : profile.samples) {
    if (!sample.merged()) sample.time_ns = time_ns += 1'000'000;
  }
  return profile;
}

void CheckChromeThread(const Profile& profile, const Json& thread, const Json& answer) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> shown, expected;  // self and total
  const std::string tid = thread["tid"].get<std::string>();
  for (const Json& row : answer["functions"]) {
    auto& [self, total] = shown[row["name"]];
    self += row["selfSamples"].get<uint64_t>();
    total += row["totalSamples"].get<uint64_t>();
  }
  for (const ProfileSample& sample : profile.samples) {
    const ProfileThread& of = profile.threads[sample.thread];
    if (sample.event != 0 || sample.merged() || std::to_string(of.pid) + ":" + std::to_string(of.tid) != tid) continue;
    std::set<std::string> names = {"(root)"};
    const auto calls = CallsOf(profile, sample.stack);
    for (const auto& [name, module] : calls) names.insert(name);
    if (calls.empty()) names.insert("[no stack]");
    ++expected[calls.empty() ? "[no stack]" : calls[0].first].first;
    for (const std::string& name : names) ++expected[name].second;
  }
  for (const auto& [name, counts] : expected) {
    INFO(name);
    REQUIRE(shown.contains(name));
    CHECK(shown[name].first == counts.first);
    if (answer["functions"].size() == shown.size()) CHECK(shown[name].second == counts.second);
  }
}

size_t CheckChromeThreads(const Profile& profile) {
  const Pq pq(profile, ".chrome.json");
  size_t markers = 0;
  const Json list = pq.Ask("thread list");
  REQUIRE(!list["threads"].empty());
  for (const Json& thread : list["threads"]) {
    INFO(thread.dump());
    markers += thread["markerCount"].get<size_t>();
    CheckChromeThread(profile, thread,
                      pq.Ask("thread functions --thread " + thread["threadHandle"].get<std::string>()));
  }
  return markers;
}

TEST_CASE("chrome's stacks and slices are read back as the profile has them", "[readers][node][chrome]") {
  NEED_NODE_READERS();
  CHECK(CheckChromeThreads(profile::SampleProfile()) == 4);
  size_t profiles = 0;
  for (uint64_t seed = 1; profiles < 2; ++seed) {
    const Profile profile = Spread(AnyProfile(seed).Make());
    const bool has_samples = std::any_of(profile.samples.begin(), profile.samples.end(),
                                         [](const auto& sample) { return sample.event == 0 && !sample.merged(); });
    if (!has_samples) continue;
    INFO("seed " << seed);
    CheckChromeThreads(profile);
    ++profiles;
  }
}

}  // namespace
}  // namespace perfkit::testing
