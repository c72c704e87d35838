// The page of a slow frame in headless Chromium: its numbers are FindSlowFrames' to the nanosecond, its spans fill the
// frame, clicks show what was clicked, and names are text.
#include <map>
#include <nlohmann/json.hpp>

#include "perfkit/profile_writer.h"
#include "src/base/utf8.h"
#include "tests/exporters/hitch_profile.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/readers/browser.h"

namespace perfkit::testing {
namespace {

using Json = nlohmann::json;
using PartKey = std::pair<std::string, std::string>;

Json BrowseFrame(const Profile& profile, const SlowFrame& frame, Json steps) {
  const TempFolder folder;
  const std::string page = folder.path() + "/hitch.html";
  REQUIRE(WriteSlowFrame(profile, frame, page) == absl::OkStatus());
  steps.insert(steps.begin(), Eval("perfkit.ready.then(() => 'ready')"));
  Json results = RunBrowser(page, steps);
  CHECK(results[0] == "ready");
  results.erase(0);
  return results;
}

std::string KindText(FramePart::Kind kind) {
  return kind == FramePart::Kind::kZone ? "zone" : kind == FramePart::Kind::kWait ? "wait" : "preempted";
}

std::map<PartKey, int64_t> PartsOf(const SlowFrame& frame) {
  std::map<PartKey, int64_t> parts;
  for (const FramePart& part : frame.parts) {
    if (part.ns != 0) parts[{KindText(part.kind), part.name}] += static_cast<int64_t>(part.ns);
  }
  return parts;
}

// "+1,234.567 ms" in thousandths of a millisecond.
int64_t Thousandths(const std::string& text) {
  int64_t value = 0;
  bool is_negative = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') value = value * 10 + (c - '0');
    if (c == '\xe2') is_negative = true;  // the first byte of a minus sign
  }
  return is_negative ? -value : value;
}

// The numbers that a table shows add up to those of its last row, which are the frame's.
void CheckTable(const Json& table, const std::vector<int64_t>& whole_ns) {
  REQUIRE(table.size() >= 3);
  for (size_t k = 0; k < whole_ns.size(); ++k) {
    int64_t sum = 0;
    for (size_t i = 1; i + 1 < table.size(); ++i) sum += Thousandths(table[i][k]);
    CHECK(sum == Thousandths(table.back()[k]));
    CHECK(sum == (whole_ns[k] + 500) / 1000);
  }
}

// Spans of a thread: each begins where the one before ends, from the window's begin to the frame's end. Returns the
// sums of those in the frame.
std::map<PartKey, int64_t> CheckSpans(const Json& spans, int64_t frame_ns) {
  std::map<PartKey, int64_t> sums;
  REQUIRE(!spans.empty());
  int64_t at_ns = spans[0]["from"];
  CHECK(at_ns <= 0);
  for (const Json& span : spans) {
    const int64_t from_ns = span["from"], to_ns = span["to"];
    CHECK(from_ns == at_ns);
    CHECK(to_ns > from_ns);
    at_ns = to_ns;
    if (from_ns >= 0) sums[{span["kind"], span["name"]}] += to_ns - from_ns;
  }
  CHECK(at_ns == frame_ns);
  return sums;
}

TEST_CASE("the numbers of a slow frame's page are FindSlowFrames', to the nanosecond", "[readers][slow_frame]") {
  NEED_BROWSER();
  for (const uint64_t seed : {1, 2, 3}) {
    INFO("seed " << seed);
    const Profile profile = HitchProfile(seed).Make();
    const SlowFrame frame = HitchOf(profile);
    const Json results =
        BrowseFrame(profile, frame,
                    {Eval("perfkit.slow()"), Eval("[0, 1, 2].map(perfkit.spans)"), Eval("perfkit.totals()"),
                     Eval("perfkit.comparison()"), Eval("(perfkit.showBy('parts'), perfkit.slow().table)"),
                     Eval("document.getElementById('counts').textContent"),
                     Eval("document.getElementById('span').textContent")});
    CHECK(results[5].get<std::string>().find("900 page faults: /data/level.bin") != std::string::npos);
    CHECK(results[6].get<std::string>().find("state: players=64") != std::string::npos);
    const Json& slow = results[0];
    CHECK(slow["ns"] == frame.ns);
    CHECK(slow["usual"] == frame.usual_ns);
    CHECK(slow["rest"] == frame.rest_ns);
    const std::string text = FormatSlowFrame(profile, frame);
    CHECK(slow["headline"] == text.substr(0, text.find('\n')));
    REQUIRE(slow["parts"].size() == frame.parts.size());
    for (size_t i = 0; i < frame.parts.size(); ++i) {
      CHECK(slow["parts"][i]["ns"] == frame.parts[i].ns);
      CHECK(slow["parts"][i]["usual"] == frame.parts[i].usual_ns);
      CHECK(slow["parts"][i]["name"] == frame.parts[i].name);
    }
    REQUIRE(slow["causes"].size() == frame.causes.size());
    for (size_t i = 0; i < frame.causes.size(); ++i) {
      CHECK(slow["causes"][i]["share"] == frame.causes[i].share_ns);
      CHECK(slow["causes"][i]["kind"] == FrameCauseKindName(frame.causes[i].kind));
    }
    for (const char* const by : {"causes", "parts"}) {
      int64_t excess_ns = 0;
      for (const Json& row : slow["rows"][by]) excess_ns += row["value"].get<int64_t>();
      CHECK(excess_ns == frame.excess_ns());
    }
    CheckTable(slow["table"], {frame.excess_ns()});
    CheckTable(results[4], {frame.excess_ns(), static_cast<int64_t>(frame.ns), static_cast<int64_t>(frame.usual_ns)});
    const Json& spans = results[1];
    CHECK(CheckSpans(spans[slow["thread"].get<size_t>()], static_cast<int64_t>(frame.ns)) == PartsOf(frame));
    for (const Json& of_thread : spans) CheckSpans(of_thread, static_cast<int64_t>(frame.ns));
    // The flame graph's time off the CPU is the frame's waits.
    int64_t off_ns = 0;
    for (const FramePart& part : frame.parts)
      off_ns += part.kind == FramePart::Kind::kZone ? 0 : static_cast<int64_t>(part.ns);
    CHECK(results[2][1]["event"] == kOffCpuEvent);
    CHECK(results[2][1]["weight"] == off_ns);
    CHECK(results[3][0]["here"] == off_ns);
  }
}

TEST_CASE("what differs from the usual frames is marked, and what does not is not", "[readers][slow_frame]") {
  NEED_BROWSER();
  const Profile profile = HitchProfile().Make();
  const Json results = BrowseFrame(profile, HitchOf(profile),
                                   {Eval("perfkit.comparison()"),
                                    Eval("(perfkit.showUsual(true), perfkit.comparison())"),
                                    Eval("(perfkit.selectThreads([1]), perfkit.comparison())"),
                                    {{"key", "Escape"}},
                                    Eval("perfkit.comparison() !== null")});
  const auto verdict_of = [](const Json& comparison, const std::string& name) {
    for (const Json& node : comparison) {
      if (node["name"] == name) return node["verdict"].get<int>();
    }
    return 99;
  };
  for (const Json& comparison : {results[0], results[1]}) {
    CHECK(verdict_of(comparison, "__lll_lock_wait") == 1);   // in this frame only
    CHECK(verdict_of(comparison, "Simulate(World&)") == 0);  // sleeps 4 ms in each frame
  }
  CHECK(results[2] == nullptr);  // another thread is not compared
  CHECK(results[4] == true);
}

TEST_CASE("a search shows shares of the frame that the flame graph shows", "[readers][slow_frame]") {
  NEED_BROWSER();
  const Profile profile = HitchProfile().Make();
  const std::string shown = "(perfkit.search('main'), document.getElementById('matched').textContent)";
  const Json results = BrowseFrame(
      profile, HitchOf(profile),
      {Eval(shown), Eval("(perfkit.showUsual(true), " + shown + ")"), Eval("(perfkit.order(true), " + shown + ")"),
       Eval("(perfkit.order(false), perfkit.search('__lll_lock_wait'), "
            "document.getElementById('matched').textContent)")});
  for (size_t i = 0; i < 3; ++i) CHECK(results[i] == "100 % matched");
  CHECK(results[3] == "0 % matched");  // No usual frame waits for the lock.
}

TEST_CASE("a click on a span shows its stack, its system call, the holder and where that was",
          "[readers][slow_frame]") {
  NEED_BROWSER();
  const Profile profile = HitchProfile().Make();
  const SlowFrame frame = HitchOf(profile);
  const std::string longest =
      "(() => { const all = perfkit.spans(0), long = all.reduce((a, b) => (b.kind === 'wait' && b.to - b.from > a.to - "
      "a.from ? b : a), "
      "{from: 0, to: 0}); return perfkit.spanBox(0, all.findIndex(({from}) => from === long.from)); })()";
  const std::string sample = "perfkit.tickBox(perfkit.ticks(0)[0])";
  const std::string simulate =
      "(() => { const span = perfkit.spans(0).find(({kind, name, from}) => kind === 'zone' && name === 'simulate' && "
      "from > 0); "
      "return perfkit.spanBox(0, perfkit.spans(0).findIndex(({from}) => from === span.from)); })()";
  const Json results = BrowseFrame(profile, frame,
                                   {{{"click", longest}},
                                    Eval("perfkit.details()"),
                                    Eval("perfkit.arrows()"),
                                    {{"click", simulate}},
                                    Eval("perfkit.details()"),
                                    {{"click", "document.querySelectorAll('#slow tr')[1].getBoundingClientRect()"}},
                                    Eval("perfkit.details()"),
                                    {{"hover", longest}},
                                    Eval("document.getElementById('tip').innerText"),
                                    {{"click", sample}},
                                    Eval("perfkit.details()")});
  CHECK(results[1]["title"] == "waited: futex 0x7f12a0, held by loader (43) in LoadLevel(), woken by loader (43)");
  CHECK(results[1]["lines"].dump().find("system call 202 (0xffffffffffffffff, 0x80, 0x2, 0, 0, 0)") !=
        std::string::npos);
  CHECK(results[1]["lines"].dump().find("held by loader (43)") != std::string::npos);
  CHECK(results[1]["stacks"][0]["calls"] ==
        Json{"__lll_lock_wait", "std::mutex::lock()", "Render(Scene const&)", "main"});
  CHECK(results[1]["stacks"][1]["calls"] == Json{"read", "LoadLevel()", "Run(Job)", "main"});
  REQUIRE(results[2].size() == 2);
  CHECK(results[2][0]["kind"] == "held");
  CHECK(results[2][1]["kind"] == "woke");
  CHECK(results[2][1]["from"] == 1);
  CHECK(results[2][1]["to"] == 0);
  CHECK(results[4]["title"] == "ran in simulate");
  CHECK(results[6]["title"] ==
        "a lock that loader (43) held in LoadLevel(), zone 'load', wanted in Render(Scene const&)");
  CHECK(results[6]["stacks"].size() == 2);
  CHECK(results[6]["stacks"][1]["calls"] == results[1]["stacks"][1]["calls"]);
  CHECK(results[8].get<std::string>().find("futex 0x7f12a0") != std::string::npos);
  CHECK(results[10]["title"] == "cpu-clock: a sample");
  CHECK(results[10]["stacks"][0]["calls"] == Json{"Simulate(World&)", "main"});
}

TEST_CASE("hostile names of a slow frame are shown as text", "[readers][slow_frame]") {
  NEED_BROWSER();
  for (const std::string& name : HostileNames()) {
    const Profile profile = HitchProfile(1, {name, name, name, name, name, name, name}).Make();
    const Json results =
        BrowseFrame(profile, HitchOf(profile),
                    {Eval("[window.broken === undefined, document.scripts.length, document.images.length]"),
                     Eval("perfkit.details().title"),
                     Eval("perfkit.details().stacks[1].calls[1]"),
                     {{"hover", "perfkit.spanBox(1, 2)"}},
                     Eval("window.broken === undefined")});
    CHECK(results[0] == Json{true, 2, 0});
    CHECK(results[1].get<std::string>().starts_with("a lock that "));
    CHECK(results[2] == base::ValidUtf8(name));
    CHECK(results[4] == true);
  }
}

TEST_CASE("a frame without others, waits or samples has a page, too", "[readers][slow_frame]") {
  NEED_BROWSER();
  ProfileBuilder builder;
  builder.AddZone({.from_ns = 1'000,
                   .to_ns = 5'000,
                   .thread = builder.AddThread(1, 1, "a"),
                   .name = builder.String("frame"),
                   .is_frame = true});
  const Profile profile = builder.Take();
  const Json results = BrowseFrame(
      profile, ExplainFrame(profile, 0),
      {Eval("perfkit.slow()"), Eval("perfkit.spans(0)"), {{"key", "Escape"}}, Eval("perfkit.comparison()")});
  CHECK(results[0]["ns"] == 4'000);
  CHECK(CheckSpans(results[1], 4'000) == std::map<PartKey, int64_t>{{{"zone", ""}, 4'000}});
  CHECK(results[3] == nullptr);
}

}  // namespace
}  // namespace perfkit::testing
