// The page of a difference in headless Chromium: its numbers and verdicts are Difference's, what a person does there
// acts, and the colours say what the verdicts say.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "perfkit/profile_builder.h"
#include "perfkit/profile_difference.h"
#include "perfkit/profile_writer.h"
#include "src/base/utf8.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/readers/browser.h"
#include "tests/profile/random_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;

// Of each function, called by main: how many samples it has.
Profile ProfileOf(const std::vector<std::pair<std::string, uint32_t>>& functions) {
  ProfileBuilder builder;
  builder.profile().program = "game";
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "main");
  const uint32_t main = builder.Stack(ProfileStack::kRoot, builder.Function("main", "/bin/game"));
  for (const auto& [name, samples] : functions) {
    const uint32_t stack = builder.Stack(main, builder.Function(name, "/bin/game"));
    for (uint32_t i = 0; i < samples; ++i) {
      builder.AddSample({.time_ns = 1'000, .weight = 1'000'000, .stack = stack, .quality = StackQuality::kWhole});
    }
  }
  return builder.Take();
}

const std::vector<std::pair<std::string, uint32_t>> kBefore = {
    {"Same", 400}, {"Simulate", 200}, {"Render", 300}, {"Removed", 100}};
const std::vector<std::pair<std::string, uint32_t>> kAfter = {
    {"Same", 404}, {"Simulate", 400}, {"Render", 150}, {"Added", 90}};

ProfileDifference Compare(const Profile& before, const Profile& after, const DifferenceOptions& options = {}) {
  const absl::StatusOr<ProfileDifference> difference = Difference(before, after, options);
  REQUIRE(difference.ok());
  return *difference;
}

Json BrowseDifference(const ProfileDifference& difference, Json steps) {
  const TempFolder folder;
  const std::string page = folder.path() + "/change.html";
  REQUIRE(WriteDifference(difference, page) == absl::OkStatus());
  steps.insert(steps.begin(), Eval("perfkit.ready.then(() => 'ready')"));
  Json results = RunBrowser(page, steps);
  CHECK(results[0] == "ready");
  results.erase(0);
  return results;
}

int VerdictOf(const ProfileChange& change) { return change.is_noise() ? 0 : change.low > 0 ? 1 : -1; }

// To a part in 10^6 of the whole, which is more than the page shows.
void CheckChange(const Json& shown, const ProfileChange& change, double whole) {
  const auto is_near = [&](const char* name, double value) {
    return std::abs(shown[name].get<double>() - value) <= 1e-6 * whole;
  };
  CHECK(is_near("before", change.before));
  CHECK(is_near("after", change.after));
  CHECK(is_near("low", change.low));
  CHECK(is_near("high", change.high));
  CHECK(shown["beforeSamples"] == change.before_samples);
  CHECK(shown["afterSamples"] == change.after_samples);
  CHECK(shown["verdict"] == VerdictOf(change));
}

// All rows and all nodes of the page are those of the difference.
void CheckPage(const ProfileDifference& difference) {
  const Json results =
      BrowseDifference(difference, {Eval("perfkit.rows()"), Eval("(perfkit.showOf('total'), perfkit.rows())"),
                                    Eval("perfkit.nodes()"), Eval("perfkit.totals()")});
  const double whole = std::max(difference.before_whole, difference.after_whole);
  for (const bool is_self : {true, false}) {
    size_t with_weight = 0;
    for (const ProfileDifference::Function& function : difference.functions) {
      const ProfileChange& change = is_self ? function.self : function.total;
      with_weight += change.before_samples + change.after_samples > 0 || change.before + change.after > 0 ? 1 : 0;
    }
    const Json& rows = results[is_self ? 0 : 1];
    REQUIRE(rows.size() == with_weight);
    std::set<size_t> seen;
    for (const Json& row : rows) {
      const size_t index = row["index"];
      REQUIRE(seen.insert(index).second);
      const ProfileDifference::Function& function = difference.functions.at(index);
      CHECK(row["name"] == function.name);
      CHECK(row["kernel"] == function.kernel);
      CHECK(row["module"] == function.module);
      CheckChange(row, is_self ? function.self : function.total, whole);
    }
  }
  REQUIRE(results[2].size() == difference.nodes.size());
  for (size_t i = 0; i < difference.nodes.size(); ++i) {
    CheckChange(results[2][i], difference.nodes[i].total, whole);
    if (i > 0) CHECK(results[2][i]["path"].back() == difference.functions[difference.nodes[i].function].name);
  }
  CHECK(results[3][0]["weight"] == difference.before.weight);
  CHECK(results[3][1]["samples"] == difference.after.samples);
}

TEST_CASE("the numbers and verdicts of a difference's page are Difference's", "[readers][difference]") {
  NEED_BROWSER();
  CheckPage(Compare(ProfileOf(kBefore), ProfileOf(kAfter)));
  CheckPage(Compare(ProfileOf(kBefore), ProfileOf(kAfter), {.before_iterations = 40, .after_iterations = 30}));
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const profile::RandomProfileShape shape{.samples = 2'000};
    Profile before = profile::RandomProfile(seed, shape).Make(),
            after = profile::RandomProfile(seed + 50, shape).Make();
    CheckPage(Compare(before, after));
    CheckPage(Compare(before, after, {.event = "page-faults", .before_iterations = 7, .after_iterations = 5}));
  }
}

TEST_CASE("what grew, what shrank and what is noise have their colours, their marks and their places",
          "[readers][difference]") {
  NEED_BROWSER();
  const Json results =
      BrowseDifference(Compare(ProfileOf(kBefore), ProfileOf(kAfter)),
                       {Eval("['Same', 'Simulate', 'Render'].map((name) => perfkit.colorOf(['main', name]))"),
                        Eval("perfkit.noiseColor()"),
                        Eval("perfkit.table().map((row) => [row[0], row[4]])"),
                        Eval("document.getElementById('accounting').innerText"),
                        {{"hover", "perfkit.boxOf(['main', 'Simulate'])"}},
                        Eval("document.getElementById('tip').innerText"),
                        {{"hover", "perfkit.boxOf(['main', 'Same'])"}},
                        Eval("document.getElementById('tip').innerText"),
                        Eval("['Added', 'Removed'].map((name) => perfkit.boxOf(['main', name]).width)"),
                        {{"click", "document.querySelectorAll('#side button')[1].getBoundingClientRect()"}},
                        Eval("['Added', 'Removed'].map((name) => perfkit.boxOf(['main', name]).width)")});
  CHECK(results[0][0] == results[1]);
  CHECK(results[0][1] != results[1]);
  CHECK(results[0][2] != results[1]);
  CHECK(results[0][1] != results[0][2]);
  CHECK(results[2] ==
        Json::array(
            {{"+18.3", "Simulate"}, {"−15.6", "Render"}, {"−10", "Removed"}, {"+8.62", "Added"}, {"~ −1.3", "Same"}}));
  CHECK_THAT(results[3].get<std::string>(), Catch::Contains("2 functions grew and 2 shrank, by self") &&
                                                Catch::Contains("can’t be told from noise") &&
                                                Catch::Contains("about 5 look as if they did"));
  CHECK_THAT(results[5].get<std::string>(),
             Catch::Contains("before 20 % in 200 samples") && Catch::Contains("after 38.3 % in 400 samples") &&
                 Catch::Contains("change +18.3 points, with 95 % confidence between") && Catch::Contains("grew"));
  CHECK_THAT(results[7].get<std::string>(), Catch::Contains("~ can’t be told from noise"));
  CHECK(results[8][0] > 1);
  CHECK(results[8][1] == 0);
  CHECK(results[10][0] == 0);
  CHECK(results[10][1] > 1);
}

TEST_CASE("a difference's page searches, zooms, sorts, and tells how both profiles were made",
          "[readers][difference]") {
  NEED_BROWSER();
  Profile before = ProfileOf(kBefore);
  before.events[0].accounting.counted = 1'003'000'000, before.events[0].accounting.lost = 3;
  const Json results =
      BrowseDifference(Compare(before, ProfileOf(kAfter)),
                       {{{"key", "/"}},
                        {{"type", "^(simulate|render)$"}},
                        Eval("document.getElementById('matched').innerText"),
                        Eval("perfkit.table().map((row) => row[4])"),
                        {{"key", "Escape"}},
                        {{"click", "perfkit.boxOf(['main', 'Simulate'])"}},
                        Eval("perfkit.zoomed()"),
                        {{"key", "Escape"}},
                        Eval("perfkit.zoomed().name"),
                        {{"click", "document.querySelectorAll('th')[2].getBoundingClientRect()"}},
                        Eval("perfkit.table().map((row) => row[4])"),
                        {{"click", "document.querySelector('#accounting button').getBoundingClientRect()"}},
                        Eval("document.getElementById('details').innerText")});
  CHECK(results[2] == "50 % → 52.7 % matched");
  CHECK(results[3] == Json{"Simulate", "Render"});
  CHECK(results[6]["name"] == "Simulate");
  CHECK(results[6]["samples"] == 400);
  CHECK(results[8] == "all");
  CHECK(results[10] == Json{"Same", "Render", "Simulate", "Removed", "Added"});
  CHECK_THAT(results[12].get<std::string>(), Catch::Contains("Before") && Catch::Contains("lost"));
}

TEST_CASE("per iteration, the page tells how much longer an iteration takes", "[readers][difference]") {
  NEED_BROWSER();
  const auto head = [](double before, double after) {
    const Json results = BrowseDifference(
        Compare(ProfileOf(kBefore), ProfileOf(kAfter), {.before_iterations = before, .after_iterations = after}),
        {Eval("document.querySelector('header .line').innerText")});
    return results[0].get<std::string>();
  };
  CHECK_THAT(head(100, 50),
             Catch::Contains("game: 10 ms → 20.9 ms of cpu-clock per iteration") && Catch::Contains("+108.8 %"));
  CHECK_THAT(head(100, 104), Catch::Contains("~ can’t be told from noise"));
}

TEST_CASE("shares of a profile without samples are not known", "[readers][difference]") {
  NEED_BROWSER();
  const Profile none = ProfileOf({}), some = ProfileOf({{"Same", 10}});
  const Json before =
      BrowseDifference(Compare(none, some), {Eval("perfkit.table()"), Eval("perfkit.shown().isBefore")});
  CHECK(before == Json::array({{{"~ –", "– … –", "–", "100 %", "Same"}}, false}));
  const Json after = BrowseDifference(Compare(some, none), {Eval("perfkit.table()"), Eval("perfkit.shown().isBefore")});
  CHECK(after == Json::array({{{"~ –", "– … –", "100 %", "–", "Same"}}, true}));
}

TEST_CASE("hostile names of a difference are shown as text, and an empty one has a page", "[readers][difference]") {
  NEED_BROWSER();
  const Profile hostile = HostileProfile();
  const std::vector<std::string> names = HostileNames();
  const std::string safe = "[window.broken === undefined, document.scripts.length, document.images.length]";
  for (size_t i = 0; i < names.size(); ++i) {
    DifferenceOptions options;
    options.event = names[i];
    const Json results = BrowseDifference(Compare(hostile, hostile, options),
                                          {Eval(safe), Eval("perfkit.rows().map((row) => row.name)")});
    CHECK(results[0] == Json{true, 2, 0});
    const std::vector<std::string> shown = results[1];
    CHECK(std::count(shown.begin(), shown.end(), base::ValidUtf8(names[i])) == 1);
  }
  const Json empty = BrowseDifference({}, {Eval("perfkit.rows()"),
                                           {{"key", "ArrowDown"}},
                                           Eval("perfkit.zoomed().total"),
                                           Eval("document.getElementById('accounting').innerText")});
  CHECK(empty[0] == Json::array());
  CHECK(empty[2] == 0);
  CHECK_THAT(empty[3].get<std::string>(), Catch::Contains("No samples before and after"));
}

}  // namespace
}  // namespace perfkit::testing
