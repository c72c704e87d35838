// Runs from a start to an end, and the texts that Tracy gets.
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "perfkit/annotations.h"
#include "tests/annotations/oracle.h"

namespace perfkit {
namespace {

using testing::AnnotatedRun;
using testing::SumsOf;

TEST_CASE("runs: one that begins in a zone may end after it") {
  AnnotatedRun run;
  detail::MarkAnnotated();
  {
    PERFKIT_ZONE(run.frames, "around");
    detail::StartAnnotatedRun("run");
    { PERFKIT_ZONE(run.frames, "inside"); }
  }
  detail::EndAnnotatedRun("run");
  {
    PERFKIT_ZONE(run.frames, "later");
    detail::EndAnnotatedRun("run");  // It has ended: the zone around goes on.
    PERFKIT_ZONE(run.frames, "in later");
  }
  detail::MarkAnnotated();
  testing::ZoneSums sums = SumsOf(run.frames, "");
  for (const char* name : {"around", "run", "inside", "later", "in later"}) CHECK(sums[name].calls == 1);
  CHECK(sums.size() == 5);
  CHECK(run.frames.Stats().mismatched == 1);
}

TEST_CASE("runs: the end is that of the last start with this name, on this thread") {
  AnnotatedRun run;
  detail::MarkAnnotated();
  detail::StartAnnotatedRun("a");
  std::thread([] { detail::EndAnnotatedRun("a"); }).join();
  detail::StartAnnotatedRun("b");
  { PERFKIT_ZONE(run.frames, "in b"); }
  detail::EndAnnotatedRun("a");
  { PERFKIT_ZONE(run.frames, "in none"); }
  detail::EndAnnotatedRun("b");
  detail::MarkAnnotated();
  for (const ZoneStats& zone : run.frames.zones()) {
    if (zone.name == "in b") CHECK(zone.depth == 3);
    if (zone.name == "in none") CHECK(zone.depth == 1);
  }
}

TEST_CASE("runs: one ends in the FrameCounter in which it started, whichever is used then") {
  AnnotatedRun first;
  detail::MarkAnnotated();
  detail::StartAnnotatedRun("open");
  {
    AnnotatedRun second;
    detail::MarkAnnotated();
    detail::StartAnnotatedRun("open");
    detail::EndAnnotatedRun("open");
    detail::EndAnnotatedRun("open");
    detail::MarkAnnotated();
    CHECK(SumsOf(second.frames, "")["open"].calls == 1);
  }
  { PERFKIT_ZONE(first.frames, "later"); }
  first.frames.Mark();
  testing::ZoneSums sums = SumsOf(first.frames, "");
  CHECK((sums["open"].calls == 1 && sums["later"].calls == 1));
  for (const ZoneStats& zone : first.frames.zones()) CHECK(zone.depth <= 1);
}

TEST_CASE("runs: the end of one that is not counted ends no other with its name") {
  const bool is_paused = GENERATE(false, true);
  AnnotatedRun run;
  detail::MarkAnnotated();
  detail::StartAnnotatedRun("level");
  if (is_paused) UseAnnotations(nullptr);
  for (size_t i = 1; i < detail::kMaxRuns && !is_paused; ++i) detail::StartAnnotatedRun("fill");
  detail::StartAnnotatedRun("level");
  UseAnnotations(&run.frames);
  detail::EndAnnotatedRun("level");
  for (size_t i = 1; i < detail::kMaxRuns && !is_paused; ++i) detail::EndAnnotatedRun("fill");
  { PERFKIT_ZONE(run.frames, "within"); }
  detail::EndAnnotatedRun("level");
  { PERFKIT_ZONE(run.frames, "after"); }
  detail::MarkAnnotated();
  for (const ZoneStats& zone : run.frames.zones()) {
    if (zone.name == "level") CHECK(zone.calls == 1);
    if (zone.name == "within") CHECK(zone.depth == 2);
    if (zone.name == "after") CHECK(zone.depth == 1);
  }
}

TEST_CASE("annotated Enter and Leave: each Leave is that of its Enter, also across pauses and other FrameCounters") {
  AnnotatedRun first;
  const auto depth_of_next = [&first] {
    detail::MarkAnnotated();
    { PERFKIT_ZONE(first.frames, "next"); }
    detail::MarkAnnotated();
    for (const ZoneStats& zone : first.frames.zones()) {
      if (zone.name == "next") return zone.depth;
    }
    return 0u;
  };
  detail::MarkAnnotated();
  SECTION("entered before a pause, left in it") {
    detail::EnterAnnotated({"zone"});
    UseAnnotations(nullptr);
    detail::LeaveAnnotated();
  }
  SECTION("entered in a pause, left after it") {
    UseAnnotations(nullptr);
    detail::EnterAnnotated({"zone"});
    UseAnnotations(&first.frames);
    PERFKIT_ZONE(first.frames, "around");
    detail::LeaveAnnotated();
    { PERFKIT_ZONE(first.frames, "within"); }
    CHECK(first.frames.Stats().mismatched == 0);
  }
  SECTION("entered while counting is disabled") {
    first.frames.SetEnabled(false);
    detail::EnterAnnotated({"zone"});
    first.frames.SetEnabled(true);
    PERFKIT_ZONE(first.frames, "around");
    detail::LeaveAnnotated();
  }
  SECTION("left in another FrameCounter") {
    detail::EnterAnnotated({"zone"});
    AnnotatedRun second;
    detail::EnterAnnotated({"zone of the second"});
    detail::LeaveAnnotated();
    detail::LeaveAnnotated();
    detail::LeaveAnnotated();  // without an Enter: ignored
    CHECK(second.frames.Stats().mismatched == 0);
  }
  SECTION("more than there is room for") {
    for (size_t i = 0; i < detail::kMaxEntered + 3; ++i) detail::EnterAnnotated({"zone"});
    for (size_t i = 0; i < detail::kMaxEntered + 3; ++i) detail::LeaveAnnotated();
  }
  SECTION("entered in a FrameCounter that is destroyed before the Leave") {
    {
      AnnotatedRun second;
      detail::EnterAnnotated({"zone"});
    }
    detail::LeaveAnnotated();
  }
  UseAnnotations(&first.frames);
  CHECK(depth_of_next() == 1);
  CHECK(first.frames.Stats().mismatched == 0);
}

TEST_CASE("runs: one goes on while no FrameCounter is used, and ends then or later") {
  const bool ends_meanwhile = GENERATE(false, true);
  AnnotatedRun run;
  detail::MarkAnnotated();
  detail::StartAnnotatedRun("level");
  UseAnnotations(nullptr);
  detail::StartAnnotatedRun("not counted");
  if (ends_meanwhile) detail::EndAnnotatedRun("level");
  UseAnnotations(&run.frames);
  if (!ends_meanwhile) detail::EndAnnotatedRun("level");
  { PERFKIT_ZONE(run.frames, "later"); }
  detail::MarkAnnotated();
  testing::ZoneSums sums = SumsOf(run.frames, "");
  CHECK((sums["level"].calls == 1 && sums["later"].calls == 1));
  CHECK(sums.count("not counted") == 0);
  for (const ZoneStats& zone : run.frames.zones()) CHECK(zone.depth <= 1);
}

TEST_CASE("runs: those of a FrameCounter that was destroyed are forgotten") {
  auto frames = std::make_unique<FrameCounter>(FrameOptions{.events = {"page-faults"}});
  UseAnnotations(frames.get());
  detail::MarkAnnotated();
  detail::StartAnnotatedRun("open");
  UseAnnotations(nullptr);
  frames = nullptr;
  detail::EndAnnotatedRun("open");
  frames = std::make_unique<FrameCounter>(FrameOptions{.events = {"page-faults"}});
  UseAnnotations(frames.get());
  detail::EndAnnotatedRun("open");
  detail::StartAnnotatedRun("next");
  detail::EndAnnotatedRun("next");
  detail::MarkAnnotated();
  CHECK(SumsOf(*frames, "").count("open") == 0);
  CHECK(SumsOf(*frames, "")["next"].calls == 1);
  UseAnnotations(nullptr);
}

TEST_CASE("runs: more than there is room for are ignored") {
  AnnotatedRun run;
  detail::MarkAnnotated();
  for (size_t i = 0; i < detail::kMaxRuns + 3; ++i) detail::StartAnnotatedRun("run");
  for (size_t i = 0; i < detail::kMaxRuns + 3; ++i) detail::EndAnnotatedRun("run");
  detail::MarkAnnotated();
  CHECK(SumsOf(run.frames, "")["run"].calls == detail::kMaxRuns);
}

TEST_CASE("counts as text: those with a number, as many as there is room for") {
  FrameCounter frames({.events = {"page-faults", "task-clock"}});
  FrameRecord counts{.values = {3, 1200}, .missing = 0};
  std::array<char, 64> room;
  const auto text = [&](size_t size) {
    return std::string(room.data(), detail::FormatCounts(frames, counts, std::span(room).first(size)));
  };
  CHECK(text(64) == "page-faults: 3, task-clock: 1200");
  CHECK(text(32) == "page-faults: 3, task-clock: 1200");
  CHECK(text(31) == "page-faults: 3");
  CHECK(text(13) == "");
  counts.missing = 1;
  CHECK(text(64) == "task-clock: 1200");
  counts.missing = ~0u;
  CHECK(text(64) == "");
}

}  // namespace
}  // namespace perfkit
