// Metrics in the report of zones.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/frame_counter.h"
#include "perfkit/metric.h"
#include "tests/count/frame/zones.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// Returns the line of the report's table `head` that is labelled `label`, with one blank between its cells.
std::string LineOf(const std::string& report, std::string_view head, std::string_view label) {
  const size_t table = report.find("\n" + std::string(head));
  const size_t line = table == std::string::npos ? table : report.find("\n  " + std::string(label), table + 1);
  if (line == std::string::npos) return "";
  std::string cells;
  for (const char c : report.substr(line + 1, report.find('\n', line + 1) - line - 1)) {
    if (c != ' ' || (!cells.empty() && cells.back() != ' ')) cells += c;
  }
  return cells;
}

TEST_CASE("frames: one long name does not widen each row of the report") {
  constexpr size_t kLong = 100'000;
  FrameCounter frames({.events = {"page-faults"}});
  for (int i = 0; i < 3; ++i) {
    const FrameCounter::Zone zone(frames, frames.DefineZone(std::string(kLong, 'x')));
  }
  for (int i = 0; i < 3; ++i) {
    const FrameCounter::Zone zone(frames, {"short"});
  }
  frames.Mark();
  const std::string report = frames.FormatZones();
  CHECK(report.find("xxx...xxx") != std::string::npos);
  CHECK(report.find("  short") != std::string::npos);
  CHECK(report.size() < kLong / 5);
}

TEST_CASE("frames: a text with braces is a list of groups") {
  FrameCounter frames({.events = {"{page-faults,minor-faults},task-clock", "context-switches", "{major-faults",
                                  event::kAlignmentFaults}});
  REQUIRE(frames.size() == 6);
  const std::vector<std::string_view> names = {"page-faults",      "minor-faults",  "task-clock",
                                               "context-switches", "{major-faults", "alignment-faults"};
  for (size_t i = 0; i < names.size(); ++i) CHECK(frames.name(i) == names[i]);
  CHECK(std::string(frames.reason(4)).find("a '{' without its '}'") != std::string::npos);
  frames.Mark();
  testing::FreshPages(50).Touch(0, 50);
  frames.Mark();
  for (const size_t faults : {0, 1}) {
    if (frames.reason(faults).empty()) CHECK(frames.last().values[faults] >= 50);
  }
  FrameCounter many({.events = {"{page-faults,page-faults:u}", "{dummy,dummy,dummy,dummy,dummy,dummy,dummy,dummy}",
                                "{minor-faults,dummy,dummy,dummy,dummy,dummy,dummy}", "task-clock"}});
  CHECK(many.size() == 11);  // The group of seven does not fit.
  CHECK(many.FormatZones().find("not counted: minor-faults, dummy, dummy, dummy, dummy, dummy, dummy: more than the 16 "
                                "events that are counted at a time\n") != std::string::npos);
  FrameCounter with_typo({.events = {"{dummy,dummy,dummy,dummy,dummy,dummy,dummy,dummy}",
                                     "{dummy,dummy,dummy,dummy,dummy,dummy,dummy,dummy}", "none\nsuch"}});
  CHECK(with_typo.size() == 16);
  CHECK(with_typo.FormatZones().find("not counted: none such: more than the 16 events") != std::string::npos);
}

TEST_CASE("frames: metrics of zones are the arithmetic of their counts", "[metric]") {
  FrameCounter frames({.events = {"page-faults", "task-clock"}});
  if (!frames.reason(0).empty()) SKIP_TEST(std::string(frames.reason(0)));
  constexpr size_t kFrames = 10, kPages = 20;
  testing::FreshPages pages(kFrames * kPages);
  frames.Mark();
  for (size_t i = 0; i < kFrames; ++i) {
    {
      PERFKIT_ZONE(frames, "touch");
      pages.Touch(i * kPages, kPages);
    }
    frames.Mark();
  }
  const std::vector<Metric> metrics = {*Metric::Parse("a-page = page-faults / 100 [faults]"),
                                       *Metric::Parse("busy = task-clock / duration_time [CPUs]"),
                                       *Metric::Parse("ipc = instructions / page-faults")};
  const std::string report = frames.FormatZones(metrics);
  INFO(report);
  const uint64_t faults = Find(frames.zones(), "touch")->total[0].value;
  CHECK(faults >= kFrames * kPages);
  const std::string a_page = absl::StrFormat("%.2f", static_cast<double>(faults) / 100);
  CHECK(LineOf(report, "a-page, faults", "touch") == absl::StrFormat("touch 10 %s %s", a_page, a_page));
  CHECK(LineOf(report, "busy, CPUs", "touch").starts_with("touch 10 "));
  CHECK(LineOf(report, "busy, CPUs", "touch").find("n/a") == std::string::npos);
  CHECK(report.find("no value: ipc: instructions: not among the counted events\n") != std::string::npos);
  CHECK(frames.FormatZones({}).find("a-page") == std::string::npos);
}

TEST_CASE("frames: why a metric has no value is told in a few words", "[metric]") {
  FrameCounter frames({.events = {"page-faults"}, .only_path = ReadPath::kUserPage});  // It is in no register.
  frames.Mark();
  frames.Mark();
  const std::vector<Metric> metrics = {*Metric::Parse("twice = 2 * page-faults")};
  const std::string report = frames.FormatZones(metrics);
  INFO(frames.reason(0) << "\n" << report);
  const std::string begin = "no value: twice: page-faults: ";
  const size_t at = report.find(begin);
  REQUIRE(at != std::string::npos);
  const std::string line = report.substr(at, report.find('\n', at) - at);
  CHECK(line.size() > begin.size());
  CHECK(line.find("page-faults", begin.size()) == std::string::npos);
  CHECK(line.find("Remedy") == std::string::npos);
}

TEST_CASE("frames: a metric of sums that lack calls is marked", "[metric]") {
  FrameCounter frames({.events = {"page-faults"}});
  if (!frames.reason(0).empty()) SKIP_TEST(std::string(frames.reason(0)));
  frames.Mark();
  testing::FreshPages pages(40);
  for (const size_t call : {0, 1}) {
    auto job = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"job"});
    pages.Touch(20 * call, 10);
    {
      PERFKIT_ZONE(frames, "inside");
      pages.Touch(20 * call + 10, 10);
    }
    if (call == 1) std::thread([&] { job.reset(); }).join();
    job.reset();
    frames.Mark();
  }
  const std::vector<Metric> metrics = {*Metric::Parse("faults = page-faults"),
                                       *Metric::Parse("one = page-faults / page-faults")};
  const std::string report = frames.FormatZones(metrics);
  INFO(report);
  const std::vector<ZoneStats> zones = frames.zones();
  const ZoneStats &job = *Find(zones, "job"), &inside = *Find(zones, "inside");
  CHECK(LineOf(report, "faults", "job") ==
        absl::StrFormat("job 1 %d.00 (part) %d.00 (part)", job.total[0].value, job.self[0].value));
  CHECK(LineOf(report, "one", "job") == "job 1 1.00 (part) 1.00 (part)");
  CHECK(LineOf(report, "faults", "  inside") ==
        absl::StrFormat("inside 2 %d.00 %d.00", inside.total[0].value, inside.self[0].value));
}

}  // namespace
}  // namespace perfkit
