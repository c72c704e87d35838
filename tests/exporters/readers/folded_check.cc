// Folded stacks as Firefox Profiler's command line reads them: for each event, the self and total of each function are
// the profile's. It makes as many samples of a line as its weight says, so weights are small here: a file of nanoseconds
// would need more memory than there is.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "src/profile/text_table.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/readers/pq.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using SelfAndTotal = std::map<std::string, std::pair<uint64_t, uint64_t>>;

Profile WithSmallWeights(Profile profile) {
  for (ProfileSample& sample : profile.samples) {
    if (sample.weight != 0) sample.weight = 1 + sample.weight % 97;
  }
  return profile;
}

// A name as a line has it: a semicolon separates calls there.
std::string FoldedName(std::string name) {
  std::replace(name.begin(), name.end(), ';', ',');
  std::replace(name.begin(), name.end(), '\n', ' ');
  return name;
}

// The outermost call is the thread.
SelfAndTotal ExpectedInFolded(const Profile& profile, size_t event) {
  SelfAndTotal expected;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != event || sample.weight == 0) continue;
    const std::string thread = FoldedName(profile::ThreadText(profile, sample.thread));
    const auto calls = CallsOf(profile, sample.stack);
    std::set<std::string> names = {thread};
    for (const auto& [name, module] : calls) names.insert(FoldedName(name));
    expected[calls.empty() ? thread : FoldedName(calls[0].first)].first += sample.weight;
    for (const std::string& name : names) expected[name].second += sample.weight;
  }
  return expected;
}

// Returns how many functions were compared.
size_t CheckFolded(const Profile& profile) {
  size_t functions = 0;
  for (size_t event = 0; event < profile.events.size(); ++event) {
    const SelfAndTotal expected = ExpectedInFolded(profile, event);
    if (expected.empty()) continue;
    INFO(profile.events[event].name);
    const Pq pq(profile, ".folded", {.event = profile.events[event].name});
    const Json answer = pq.Ask("thread functions --thread t-0");
    CHECK(pq.Ask("thread list")["totalThreadCount"] == 1);
    CHECK(answer["weightType"] == "samples");
    SelfAndTotal shown;
    for (const Json& row : answer["functions"]) {
      shown[row["name"]] = {row["selfSamples"].get<uint64_t>(), row["totalSamples"].get<uint64_t>()};
    }
    CHECK(shown == expected);
    functions += shown.size();
  }
  return functions;
}

TEST_CASE("firefox's reader shows the functions of folded stacks as the profile has them",
          "[readers][node][folded]") {
  NEED_NODE_READERS();
  CHECK(CheckFolded(WithSmallWeights(profile::SampleProfile())) > 10);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    INFO("seed " << seed);
    CheckFolded(WithSmallWeights(AnyProfile(seed).Make()));
  }
}

}  // namespace
}  // namespace perfkit::testing
