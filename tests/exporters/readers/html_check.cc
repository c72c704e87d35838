// The HTML page in headless Chromium: what it shows is what the profile says, to the sample, and what a person does
// there acts.
#include <nlohmann/json.hpp>

#include "perfkit/profile_writer.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/readers/browser.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using profile::SampleProfile;

// Writes the page, opens it, takes the steps, and returns what each of them gave. The page may not complain.
Json Browse(const Profile& profile, Json steps) {
  const TempFolder folder;
  const std::string page = folder.path() + "/page.html";
  REQUIRE(WriteProfile(profile, page) == absl::OkStatus());
  steps.insert(steps.begin(), Eval("perfkit.ready.then(() => 'ready')"));
  Json results = RunBrowser(page, steps);
  CHECK(results[0] == "ready");
  results.erase(0);
  return results;
}

FunctionSums SumsOfRows(const Json& rows) {
  FunctionSums sums;
  for (const Json& row : rows) {
    FunctionSum& sum = sums[{row["name"], row["module"]}];
    sum.self.weight += row["self"].get<uint64_t>();
    sum.self.samples += row["selfSamples"].get<uint64_t>();
    sum.total.weight += row["total"].get<uint64_t>();
    sum.total.samples += row["samples"].get<uint64_t>();
  }
  return sums;
}

// A function of one name in one file is two rows if it is in two modules of that name, or in the kernel as well: their
// totals need not add up then, because of stacks that hold both.
void CheckRows(const Json& rows, const FunctionSums& expected) {
  const FunctionSums shown = SumsOfRows(rows);
  const bool is_exact = shown.size() == rows.size();
  CHECK(shown.size() == expected.size());
  for (const auto& [function, sum] : expected) {
    INFO(function.first << " in " << function.second);
    REQUIRE(shown.contains(function));
    CHECK(shown.at(function).self == sum.self);
    if (is_exact) CHECK(shown.at(function).total == sum.total);
  }
}

TEST_CASE("the page's totals and functions are the profile's, for each event", "[readers][html]") {
  NEED_BROWSER();
  const Profile profile = SampleProfile();
  Json steps = {Eval("perfkit.totals()")};
  for (const ProfileEvent& event : profile.events) {
    steps.push_back(Eval("(perfkit.selectEvent('" + event.name + "'), perfkit.rows())"));
  }
  const Json results = Browse(profile, steps);
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const Profile::Sum total = profile.Total(i);
    CHECK(results[0][i]["event"] == profile.events[i].name);
    CHECK(results[0][i]["weight"] == total.weight);
    CHECK(results[0][i]["samples"] == total.samples);
    CheckRows(results[i + 1],
              SumsOfFunctions(
                  profile, [&](const ProfileSample& sample) { return sample.event == i; }, "[no stack]"));
  }
}

TEST_CASE("the page's numbers are the profile's for random profiles, threads, times and both orders",
          "[readers][html]") {
  NEED_BROWSER();
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Profile profile = AnyProfile(seed).Make();
    if (profile.events.empty() || profile.threads.empty()) continue;
    INFO("seed " << seed);
    const size_t event = seed % profile.events.size();
    const uint32_t thread = static_cast<uint32_t>(seed % profile.threads.size());
    const uint64_t from_ns = 1'200'000'000, to_ns = 1'700'000'000;
    const auto is_event = [&](const ProfileSample& sample) { return sample.event == event; };
    const auto in_range = [&](const ProfileSample& sample) {
      return is_event(sample) && sample.time_ns >= from_ns && sample.time_ns < to_ns;
    };
    const std::string choose = "(perfkit.selectEvent('" + profile.events[event].name + "'), perfkit.rows())";
    const Json results = Browse(
        profile, {Eval("perfkit.totals()"), Eval(choose),
                  Eval("(perfkit.selectThreads([" + std::to_string(thread) + "]), perfkit.rows())"),
                  Eval("(perfkit.selectThreads([]), perfkit.selectTime(2e8, 7e8), perfkit.rows())"),
                  Eval("perfkit.shown()"), Eval("(perfkit.order(true), perfkit.shown())"), Eval("perfkit.zoomed()")});
    for (size_t i = 0; i < profile.events.size(); ++i) CHECK(results[0][i]["weight"] == profile.Total(i).weight);
    CheckRows(results[1], SumsOfFunctions(profile, is_event, "[no stack]"));
    const auto of_thread = [&](const ProfileSample& sample) { return is_event(sample) && sample.thread == thread; };
    CheckRows(results[2], SumsOfFunctions(profile, of_thread, "[no stack]"));
    CheckRows(results[3], SumsOfFunctions(profile, in_range, "[no stack]"));
    Profile::Sum in, merged;
    for (const ProfileSample& sample : profile.samples) {
      Profile::Sum& to = in_range(sample) ? in : merged;
      if (!in_range(sample) && !(is_event(sample) && sample.merged())) continue;
      to.weight += sample.weight;
      to.samples += sample.samples;
    }
    for (const Json& shown : {results[4], results[5]}) {  // heaviest first, and in time
      CHECK(shown["weight"] == in.weight);
      CHECK(shown["samples"] == in.samples);
      CHECK(shown["leftOut"]["weight"] == merged.weight);
      CHECK(shown["leftOut"]["samples"] == merged.samples);
    }
    CHECK(results[6]["total"] == in.weight);
  }
}

TEST_CASE("the page's boxes have their lines, marks, and shares of incomplete stacks", "[readers][html]") {
  NEED_BROWSER();
  const std::string hot = "perfkit.node(['_start', 'main', 'Work(int, char const*)', 'Hot', '↳ Inlined<T>'])";
  const Json results = Browse(
      SampleProfile(),
      {Eval(hot), Eval("perfkit.node(['_start', 'main', '[libbare.so]+0x1234'])"), Eval("perfkit.accounting()")});
  CHECK(results[0]["self"] == 60'000'000);
  CHECK(results[0]["total"] == 62'000'000);
  CHECK(results[0]["samples"] == 62);
  CHECK(results[0]["part"] == 2'000'000);
  CHECK(results[0]["lines"] == Json{"/src/hot.h:7"});
  CHECK(results[1]["guess"] == 8'000'000);
  CHECK(results[1]["lines"] == Json::array());
  const std::vector<std::string> accounting = results[2];
  CHECK(accounting ==
        std::vector<std::string>{"stacks whole: 98 (98 %)", "stacks part: 2 (2 %)", "stacks: live", "3 samples lost"});
}

TEST_CASE("the page says why stacks were not taken", "[readers][html]") {
  NEED_BROWSER();
  Profile profile = SampleProfile();
  StackAccounting& stacks = profile.events[0].accounting.stacks;
  stacks.delivered = 100, stacks.walk_limit = 2'000, stacks.no_ring = 1;
  const std::vector<std::string> accounting = Browse(profile, {Eval("perfkit.accounting()")})[0];
  REQUIRE(!accounting.empty());
  CHECK(accounting[0] ==
        profile.events[0].name + ": 2,001 live stacks not taken (2,000 over the walk limit, 1 without a ring)");
}

TEST_CASE("a click zooms, Escape takes it back, arrows walk, a crumb goes up", "[readers][html]") {
  NEED_BROWSER();
  const Json results =
      Browse(SampleProfile(), {{{"click", "perfkit.boxOf(['_start', 'main', 'Work(int, char const*)', 'Hot'])"}},
                               Eval("perfkit.zoomed().name"),
                               {{"key", "ArrowUp"}},
                               Eval("perfkit.zoomed().name"),
                               {{"key", "ArrowRight"}},
                               Eval("perfkit.zoomed().name"),
                               {{"click", "document.querySelector('#path li:nth-child(2)').getBoundingClientRect()"}},
                               Eval("perfkit.zoomed().name"),
                               {{"key", "Escape"}},
                               Eval("perfkit.zoomed()"),
                               Eval("perfkit.flip(true)"),
                               {{"click", "perfkit.boxOf(['_start', 'main'])"}},
                               Eval("perfkit.zoomed().name")});
  CHECK(results[1] == "Hot");
  CHECK(results[3] == "Work(int, char const*)");
  CHECK(results[5] == "[libbare.so]+0x1234");
  CHECK(results[7] == "_start");
  CHECK(results[9]["name"] == "all");
  CHECK(results[9]["total"] == 100'000'000);
  CHECK(results[12] == "main");
}

TEST_CASE("typing searches by regular expression, and the share that matches is shown", "[readers][html]") {
  NEED_BROWSER();
  const std::string matched = "document.getElementById('matched').textContent";
  const Json results = Browse(SampleProfile(), {{{"key", "/"}},
                                                {{"type", "^(hot|clear)"}},
                                                Eval("perfkit.shown().found"),
                                                Eval(matched),
                                                Eval("perfkit.rows().map((row) => row.name).sort()"),
                                                {{"key", "Escape"}},
                                                Eval("perfkit.shown().found"),
                                                {{"key", "/"}},
                                                {{"type", "("}},
                                                Eval(matched)});
  CHECK(results[2]["weight"] == 62'000'000);
  CHECK(results[2]["samples"] == 62);
  CHECK(results[3] == "62 % matched");
  CHECK(results[4] == Json{"Hot", "clear_page"});
  CHECK(results[6] == nullptr);
  CHECK(results[9] == "not a regular expression");
}

TEST_CASE("a drag over a thread selects a time, a click on its name selects the thread", "[readers][html]") {
  NEED_BROWSER();
  const Profile profile = SampleProfile();
  const Json results =
      Browse(profile, {{{"drag",
                         "(() => { const {lane} = perfkit.laneOf(0), y = lane.y + 20;"
                         " return {x: lane.x + lane.width / 4, y, to_x: lane.x + lane.width / 2, to_y: y}; })()"}},
                       Eval("perfkit.shown()"),
                       {{"click", "perfkit.laneOf(1).label"}},
                       Eval("perfkit.shown()"),
                       {{"key", "Escape"}},
                       Eval("perfkit.shown()"),
                       {{"key", "Escape"}},
                       Eval("perfkit.shown()")});
  const double from = results[1]["range"][0], to = results[1]["range"][1];
  CHECK(from < to);
  uint64_t all = 0, of_worker = 0;
  for (const ProfileSample& sample : profile.samples) {
    const double time = static_cast<double>(sample.time_ns - profile.from_ns);
    if (sample.event != 0 || time < from || time >= to) continue;
    all += sample.samples;
    of_worker += sample.thread == 1 ? sample.samples : 0;
  }
  CHECK(results[1]["samples"] == all);
  CHECK(results[3]["threads"] == Json{1});
  CHECK(results[3]["samples"] == of_worker);
  CHECK(results[5]["range"] == nullptr);
  CHECK(results[5]["samples"] == 25);
  CHECK(results[7]["samples"] == 100);
}

// A point of a row of the tracks, at a time of the profile and as far below the row's top; from its bottom if negative.
std::string PointOf(const std::string& canvas, uint64_t ms, int y) {
  return "(() => { const lane = " + canvas + ".getBoundingClientRect(), {from, to} = perfkit.laneOf(0);" +
         " return {x: lane.x + (" + std::to_string(ms) +
         "e6 - from) / (to - from) * (lane.width - 2), y: " + (y < 0 ? "lane.bottom" : "lane.y") + " + " +
         std::to_string(y) + ", width: 0, height: 0}; })()";
}

TEST_CASE("the pointer tells frames, zones, waits and counters of the tracks, and the lines of a call",
          "[readers][html]") {
  NEED_BROWSER();
  const auto row = [](int i) { return "document.querySelectorAll('#rows .row canvas')[" + std::to_string(i) + "]"; };
  const Json tip = Eval("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText");
  const Json results =
      Browse(SampleProfile(), {Eval("[...document.querySelectorAll('#rows .row b')].map((name) => name.textContent)"),
                               {{"hover", PointOf(row(0), 80, 9)}},
                               tip,
                               {{"hover", PointOf(row(0), 30, 22)}},
                               tip,
                               {{"hover", PointOf(row(0), 70, 22)}},
                               tip,
                               {{"hover", PointOf(row(1), 130, -5)}},
                               tip,
                               {{"hover", PointOf(row(1), 165, -5)}},
                               tip,
                               {{"hover", PointOf(row(2), 60, 20)}},
                               tip,
                               {{"hover", "perfkit.boxOf(['_start', 'main', 'Work(int, char const*)', 'Hot'])"}},
                               tip,
                               {{"hover", "document.getElementById('program').getBoundingClientRect()"}},
                               tip});
  CHECK(results[0] == Json{"app", "worker \"1\"; <a>", "queue length"});
  const auto text = [&](size_t i) { return results[i].get<std::string>(); };
  CHECK(text(2) == "frame\nframe · 100 ms at 0\nlate: a slow zone");
  CHECK(text(4) == "physics\nzone · 40 ms at 10 ms");
  CHECK_THAT(text(6), !Catch::Contains("physics"));  // beside the zone
  CHECK_THAT(text(8), Catch::StartsWith("off the CPU for 40 ms\nfutex 0x1000\nat 110 ms"));
  CHECK_THAT(text(10), Catch::StartsWith("off the CPU for 10 ms\npreempted\nat 160 ms\nstack: last known"));
  CHECK_THAT(text(12), Catch::StartsWith("queue length\n5.5\n"));
  CHECK_THAT(text(14), Catch::StartsWith("Hot\n/bin/app\n/src/hot.cc:30\n"));
  CHECK(text(16).empty());
}

TEST_CASE("hostile names are shown as they are, and nothing of them runs", "[readers][html]") {
  NEED_BROWSER();
  const Profile profile = HostileProfile();
  const std::vector<std::string> names = HostileNames();
  Json steps = {Eval("perfkit.totals()"),
                Eval("[window.broken === undefined, document.scripts.length, "
                     "document.images.length]"),
                Eval("perfkit.accounting()")};
  for (size_t i = 0; i < names.size(); ++i) {
    steps.push_back(Eval("document.querySelectorAll('#events button')[" + std::to_string(i) + "].click()"));
    steps.push_back(Eval("perfkit.rows()"));
  }
  steps.push_back(Eval("window.broken === undefined"));
  const Json results = Browse(profile, steps);
  CHECK(results[1] == Json{true, 2, 0});
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(results[0][i]["event"] == base::ValidUtf8(names[i]));
    CHECK(results[0][i]["samples"] == i + 1);
    CheckRows(results[4 + 2 * i], SumsOfFunctions(
                                      profile, [&](const ProfileSample& sample) { return sample.event == i; }, ""));
  }
  CHECK(results.back() == true);
}

TEST_CASE("the page of an empty profile says that it is empty", "[readers][html]") {
  NEED_BROWSER();
  const Json results = Browse(Profile(), {Eval("perfkit.totals()"),
                                          Eval("perfkit.rows()"),
                                          Eval("perfkit.accounting()"),
                                          {{"key", "ArrowDown"}},
                                          Eval("perfkit.zoomed().total")});
  CHECK(results[0] == Json::array());
  CHECK(results[1] == Json::array());
  CHECK(results[2] == Json{"No samples in this profile"});
  CHECK(results[4] == 0);
}

}  // namespace
}  // namespace perfkit::testing
