// Tracy and perfkit at once, with a stub of Tracy (../stub): both get each zone and frame, and Tracy gets the counts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/tracy.h"
#include "tests/annotations/oracle.h"

namespace perfkit {
namespace {

using testing::AnnotatedRun;
using testing::Engine;
using testing::SumsOf;

constexpr int kFrames = 20;

void Solve(Engine& engine, int depth) {
  ZoneScopedN("solve");
  engine.Did("solve", 2);
  ZoneValue(static_cast<uint64_t>(depth));
  if (depth == 0) return;
  {
    ZoneScopedNC("deeper", 7);  // Hides the zone of the function.
    engine.Did("deeper", 0);
    Solve(engine, depth - 1);
  }
}

bool Simulate(Engine& engine, int frame) {
  ZoneScoped;
  engine.Did("Simulate", 1);
  if (frame % 4 == 0) return false;
  Solve(engine, frame % 3);
  ZoneNamedN(outer, "outer", true);
  ZoneNamedNS(inner, "inner", 5, true);
  ZoneNamedN(none, "none", !ZoneIsActiveV(outer));
  engine.Did("outer", 0);
  engine.Did("inner", 1);
  ZoneTextV(inner, "mine", 4);
  ZoneTransientN(zone, std::to_string(frame % 2).c_str(), true);
  engine.Did(std::to_string(frame % 2), 1);
  return true;
}

// Zones as Tracy was told of them.
struct Told {
  std::map<std::string, uint64_t> calls, page_faults;
  size_t texts = 0, open = 0;
  bool is_nested = true;
};
Told Read(const std::vector<std::string>& told) {
  Told all;
  std::vector<std::string> open;
  for (const std::string& line : told) {
    const size_t space = line.find(' ');
    const std::string what = line.substr(0, space), rest = line.substr(space + 1);
    if (what == "begin") {
      ++all.calls[open.emplace_back(rest.substr(0, rest.find(' ')))];
    } else if (what == "text" && rest.starts_with("page-faults: ")) {
      ++all.texts;
      all.page_faults[open.back()] += std::stoull(rest.substr(rest.find(' ') + 1));
    } else if (line == "end ") {
      all.is_nested = all.is_nested && !open.empty();
      if (!open.empty()) open.pop_back();
    }
  }
  all.open = open.size();
  return all;
}

TEST_CASE("tracy beside: calls and faults of each zone are the program's own, in perfkit and in Tracy's texts") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  tracy::Told().clear();
  tracy::Told().reserve(10'000);
  Engine engine(1024);
  const testing::OtherFaults others;
  FrameMark;
  for (int frame = 0; frame < kFrames; ++frame) {
    Simulate(engine, frame);
    FrameMark;
  }
  engine.Check(SumsOf(run.frames, ""), others.Beside(engine.touched()));
  CHECK(run.frames.Stats().mismatched == 0);
  const Told told = Read(tracy::Told());
  CHECK(told.is_nested);
  CHECK(told.open == 0);
  size_t texts = 0;
  for (const ZoneStats& zone : run.frames.zones()) {
    if (zone.depth == 0) continue;
    texts += zone.calls;
    CHECK(told.calls.contains(zone.name));
  }
  CHECK(told.texts == texts);
  std::map<std::string, uint64_t> totals;
  for (const ZoneStats& zone : run.frames.zones()) totals[zone.name] += zone.total[testing::kFaults].value;
  for (const auto& [name, faults] : told.page_faults) {
    INFO(name);
    CHECK(faults == totals[name]);
  }
}

TEST_CASE("tracy beside: zones of a worker, outside of frames") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  Engine engine(64);
  uint64_t beside = 0;
  std::vector<std::string> told;
  std::thread([&] {
    const testing::OtherFaults others;
    for (int frame = 0; frame < 5; ++frame) Simulate(engine, frame);
    beside = others.Beside(engine.touched());
    told = tracy::Told();
  }).join();
  engine.Check(SumsOf(run.frames, "workers"), beside);
  Told all = Read(told);
  CHECK(all.is_nested);
  CHECK(all.page_faults["Simulate"] >= 5);
  CHECK(all.calls["Simulate"] == 5);
}

TEST_CASE("tracy beside: Tracy gets its own arguments, and a frame's counts as plots") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  std::vector<std::string>& told = tracy::Told();
  Engine engine(64);
  FrameMark;
  told.clear();
  {
    ZoneNamedNCS(zone, "zone", 9, 3, true);
    ZoneTransientNS(other, "other", 4, true);
  }
  REQUIRE(told.size() == 6);
  CHECK(told[0] == "begin zone 9 3");
  CHECK(told[1] == "begin other 4");
  CHECK(told[2].starts_with("text page-faults: "));
  CHECK(told[3] == "end ");
  told.clear();
  engine.Touch("", 3);
  FrameMark;
  REQUIRE(told.size() == 3);
  CHECK(told[0] == "frame ");
  CHECK(told[1] == "plot page-faults " + std::to_string(run.frames.last().values[testing::kFaults]));
  CHECK(told[2] == "plot task-clock " + std::to_string(run.frames.last().values[1]));
  told.clear();
  std::thread([] {
    FrameMark;  // Not the thread that marks frames: only Tracy has this mark.
    CHECK(tracy::Told() == std::vector<std::string>{"frame "});
  }).join();
  run.frames.SetEnabled(false);
  FrameMark;
  FrameMarkNamed("audio");
  FrameMarkStart("job");
  FrameMarkEnd("job");
  { ZoneScopedN("off"); }
  CHECK(told == std::vector<std::string>{"frame ", "frame audio", "start job", "end job", "begin off 0 0", "end "});
}

TEST_CASE("tracy beside: an event that cannot be counted has no plot and no text") {
  FrameCounter frames({.events = {"page-faults", "no-such-event"}});
  if (!frames.reason(0).empty()) SKIP_TEST(std::string(frames.reason(0)));
  CHECK_FALSE(frames.reason(1).empty());
  UseAnnotations(&frames);
  std::vector<std::string>& told = tracy::Told();
  FrameMark;
  told.clear();
  { ZoneScopedN("zone"); }
  FrameMark;
  UseAnnotations(nullptr);
  REQUIRE(told.size() == 5);
  CHECK(told[0] == "begin zone 0 0");
  CHECK(told[1].starts_with("text page-faults: "));
  CHECK(told[1].find("no-such-event") == std::string::npos);
  CHECK(told[2] == "end ");
  CHECK(told[3] == "frame ");
  CHECK(told[4] == "plot page-faults " + std::to_string(frames.last().values[0]));
}

TEST_CASE("tracy beside: without a FrameCounter, Tracy gets everything, and no counts") {
  UseAnnotations(nullptr);
  std::vector<std::string>& told = tracy::Told();
  Engine engine(16);
  told.clear();
  FrameMark;
  Solve(engine, 0);
  CHECK(told == std::vector<std::string>{"frame ", "begin solve 0 0", "value 0", "end "});
}

}  // namespace
}  // namespace perfkit
