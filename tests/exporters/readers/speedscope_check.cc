// speedscope, in headless Chromium: its table of functions has the profile's self and total, for folded stacks and for
// callgrind. It makes a tree of callgrind's graph of calls, which has the numbers of a graph without recursion.
#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "perfkit/profile_writer.h"
#include "src/profile/text_table.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/readers/browser.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;

struct WeightPair {
  uint64_t total = 0, self = 0;
  bool operator==(const WeightPair&) const = default;
};
using ShownFunctions = std::map<std::string, WeightPair>;

// "1,234,567 (12%)"
uint64_t ShownWeight(std::string text) {
  text.erase(text.find(" ("));
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return std::stoull(text);
}

// Opens a file in speedscope, and returns the table of functions ("Sandwich") of each of its events.
std::vector<ShownFunctions> InSpeedscope(const Profile& profile, const std::string& ending, size_t events) {
  const TempFolder folder;
  const std::string file = folder.path() + "/work" + ending;
  REQUIRE(WriteProfile(profile, file) == absl::OkStatus());
  const std::string bytes = RunCommand("cat " + file).output;
  folder.Write("/load.js", "speedscope.loadFileFromBase64('work" + ending + "', '" + absl::Base64Escape(bytes) + "')");
  const std::string rows =
      "[...document.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.innerText.trim()))";
  Json steps = {WaitUntil("document.body.innerText.includes('Left Heavy')"), {{"key", "3"}}};
  for (size_t i = 1; i <= events; ++i) {
    const std::string which =
        events == 1 ? "Symbol Name" : "(" + std::to_string(i) + "/" + std::to_string(events) + ")";
    steps.push_back(WaitUntil("document.body.innerText.includes('" + which + "')"));
    // The head of the table comes before its rows.
    steps.push_back(WaitUntil(rows + ".some(row => row.length == 3 && row[1].includes(' ('))"));
    steps.push_back(Eval(rows));
    steps.push_back({{"key", "n"}});
  }
  const Json results = RunBrowser(
      NodeReaders() + "/node_modules/speedscope/dist/release/index.html#localProfilePath=" + folder.path() + "/load.js",
      steps);
  std::vector<ShownFunctions> shown(events);
  for (size_t i = 0; i < events; ++i) {
    for (const Json& row : results[4 + 4 * i]) {
      if (row.size() != 3 || row[2] == "Symbol Name" || row[1].get<std::string>().find(" (") == std::string::npos)
        continue;
      shown[i][row[2]] = {.total = ShownWeight(row[0]), .self = ShownWeight(row[1])};
    }
  }
  return shown;
}

// `root`: what the outermost call of a sample is there, beside those of its stack.
template <class Root>
ShownFunctions ExpectedFunctions(const Profile& profile, size_t event, const Root& root) {
  ShownFunctions expected;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != event || sample.weight == 0) continue;
    std::vector<std::string> names;
    for (const auto& [name, module] : CallsOf(profile, sample.stack)) names.push_back(name);
    names.push_back(root(sample));
    expected[names.front()].self += sample.weight;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) expected[name].total += sample.weight;
  }
  return expected;
}

void CheckShown(const ShownFunctions& shown, const ShownFunctions& expected) {
  CHECK(shown.size() == expected.size());
  for (const auto& [name, weights] : expected) {
    INFO(name);
    REQUIRE(shown.contains(name));
    CHECK(shown.at(name).self == weights.self);
    CHECK(shown.at(name).total == weights.total);
  }
}

TEST_CASE("speedscope shows the functions of folded stacks as the profile has them", "[readers][node][speedscope]") {
  NEED_NODE_READERS();
  NEED_BROWSER();
  const Profile profile = profile::SampleProfile();
  const auto thread = [&](const ProfileSample& sample) {
    std::string name = profile::ThreadText(profile, sample.thread);
    std::replace(name.begin(), name.end(), ';', ',');  // which separates calls there
    return name;
  };
  CheckShown(InSpeedscope(profile, ".folded", 1)[0], ExpectedFunctions(profile, 0, thread));
}

TEST_CASE("speedscope shows each event of callgrind's as the profile has it", "[readers][node][speedscope]") {
  NEED_NODE_READERS();
  NEED_BROWSER();
  const Profile profile = profile::SampleProfile();
  const std::vector<ShownFunctions> shown = InSpeedscope(profile, ".callgrind", profile.events.size());
  for (size_t event = 0; event < profile.events.size(); ++event) {
    INFO(profile.events[event].name);
    CheckShown(shown[event], ExpectedFunctions(profile, event, [](const ProfileSample&) { return "[all]"; }));
  }
}

}  // namespace
}  // namespace perfkit::testing
