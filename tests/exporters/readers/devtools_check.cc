// Chrome's format as Chromium's own DevTools read it, in headless Chromium: the panel "Performance" opens the file, and
// its model has the profile's samples of each function and thread, and each zone, frame and wait.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "perfkit/profile_writer.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/function_sums.h"
#include "tests/exporters/readers/browser.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;

// What DevTools are asked in their own words, which may change with Chromium: `missing` then says so.
constexpr const char* kLoad = R"((async () => {
  let panel;
  try {
    const Timeline = await import('./panels/timeline/timeline.js'), UI = await import('./ui/legacy/legacy.js');
    await UI.ViewManager.ViewManager.instance().showView('timeline');
    panel = Timeline.TimelinePanel.TimelinePanel.instance();
    if (!panel.loadFromFile || !panel.model.parsedTrace) return {missing: 'loadFromFile'};
  } catch (error) {
    return {missing: String(error)};
  }
  await panel.loadFromFile(new File([FILE], 'work.chrome.json', {type: 'application/json'}));
  const look = resolve => panel.model.parsedTrace() ? resolve() : setTimeout(look, 10, resolve);
  await new Promise(look);
  const {Samples, Renderer} = panel.model.parsedTrace().data ?? {};
  if (!Samples?.profilesInProcess || !Renderer?.processes) return {missing: 'Samples, Renderer'};
  const samples = [], slices = [];
  for (const [pid, threads] of Samples.profilesInProcess) {
    for (const [tid, {parsedProfile}] of threads) {
      for (const id of parsedProfile.samples) samples.push([tid, parsedProfile.nodeById(id).functionName]);
    }
  }
  for (const [pid, {threads}] of Renderer.processes) {
    for (const [tid, {entries}] of threads) {
      for (const {ph, cat, name, ts, dur} of entries) if (ph == 'X' && cat) slices.push([tid, cat, name, ts, dur]);
    }
  }
  return {samples, slices};
})())";

Json InDevTools(const Profile& profile) {
  const TempFolder folder;
  const std::string file = folder.path() + "/work.chrome.json";
  REQUIRE(WriteProfile(profile, file) == absl::OkStatus());
  std::string load = kLoad;
  load.replace(load.find("FILE"), 4, Json(RunCommand("cat " + file).output).dump());
  return RunBrowser("devtools://devtools/bundled/devtools_app.html", Json::array({Eval(load)}))[0];
}

using SamplesOfFunctions = std::map<std::pair<uint32_t, std::string>, uint64_t>;  // by tid and name

SamplesOfFunctions ExpectedSamples(const Profile& profile) {
  SamplesOfFunctions expected;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != 0 || sample.merged()) continue;
    const auto calls = CallsOf(profile, sample.stack);
    ++expected[{profile.threads[sample.thread].tid, calls.empty() ? "[no stack]" : calls[0].first}];
  }
  return expected;
}

// Times in nanoseconds: the file has microseconds.
using SliceOfThread = std::tuple<uint32_t, std::string, std::string, int64_t, int64_t>;

std::vector<SliceOfThread> ExpectedSlices(const Profile& profile) {
  std::vector<SliceOfThread> slices;
  const auto add = [&](uint32_t thread, const char* category, const std::string& name, uint64_t from, uint64_t to) {
    slices.emplace_back(profile.threads[thread].tid, category, name, from, to - from);
  };
  for (const ProfileZone& zone : profile.zones) {
    add(zone.thread, zone.is_frame ? "frame" : "zone", profile.strings[zone.name], zone.from_ns, zone.to_ns);
  }
  const size_t off = profile.EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == off) add(sample.thread, "wait", "off-CPU", sample.time_ns, sample.time_ns + sample.weight);
  }
  std::sort(slices.begin(), slices.end());
  return slices;
}

TEST_CASE("DevTools have each sample, zone, frame and wait of the profile", "[readers][chrome][devtools]") {
  NEED_BROWSER();
  const Profile profile = profile::SampleProfile();
  const Json shown = InDevTools(profile);
  if (shown.contains("missing")) SKIP_TEST("the DevTools of this Chromium are other ones: " + shown.dump());
  SamplesOfFunctions samples;
  for (const Json& sample : shown["samples"]) ++samples[{sample[0], sample[1]}];
  CHECK(samples == ExpectedSamples(profile));
  std::vector<SliceOfThread> slices;
  const auto nanoseconds = [](const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); };
  for (const Json& slice : shown["slices"]) {
    slices.emplace_back(slice[0], slice[1], slice[2], nanoseconds(slice[3]), nanoseconds(slice[4]));
  }
  std::sort(slices.begin(), slices.end());
  CHECK(slices == ExpectedSlices(profile));
}

}  // namespace
}  // namespace perfkit::testing
