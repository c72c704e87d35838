// Reports as people read them: their numbers, their accounting, and unusual names.
#include "perfkit/report.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <sstream>

#include "perfkit/profile_difference.h"
#include "perfkit/profile_writer.h"
#include "src/profile/stack_losses.h"
#include "src/profile/text_table.h"
#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

using Catch::Contains;

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("a report without samples says what there is instead", "[profile][report]") {
  Profile profile = SampleProfile();
  std::erase_if(profile.samples, [](const ProfileSample& sample) { return sample.event == 0; });
  profile.events[0].accounting = {.counted = 600'000, .delivered = 3};
  CHECK_THAT(FormatReport(profile), Contains("# it has 3 samples, but none of them is here\n# events with a weight"));
  profile.events[0].accounting.delivered = 0;
  const std::string report = FormatReport(profile);
  CHECK_THAT(report, Contains("# cpu-clock has no weight in 200.0 ms: there is nothing to show\n"
                              "# it counted 600.0 us without a sample here: a shorter period or interval takes more "
                              "samples\n# events with a weight: page-faults, off-cpu\n"));
  profile.samples.clear();
  profile.events[0].accounting.counted = 0;
  CHECK_THAT(FormatReport(profile), Contains("nothing to show\n") && !Contains("it counted") && !Contains("a weight"));
}

TEST_CASE("a report of a follower says that the samples are another event's", "[profile][report]") {
  Profile profile = SampleProfile();
  for (ProfileSample& sample : profile.samples) sample.samples = sample.event == 1 ? 0 : sample.samples;
  const std::string report = FormatReport(profile, {.event = "page-faults"});
  CHECK_THAT(report, Contains("100 % is 30 in another event's samples\n"));
  CHECK_THAT(report, Contains("# page-faults        30        -  "));
  for (const std::string& line : LinesOf(report)) {
    CAPTURE(report, line);
    if (line.find("[.]") != line.npos) CHECK_THAT(line, Contains(" -  "));
  }
}

TEST_CASE("a report of a small profile, whole", "[profile][report]") {
  CHECK(FormatReport(SampleProfile(), {.min_percent = 3}) == R"(# app: 200.0 ms, 2 threads
#
# event           total  samples  counted  lost  unsampled
# cpu-clock    100.0 ms      100        -     -          -
# page-faults        30        3        -     -          -
# off-cpu      50.00 ms        2        -     -          -
#
# stacks of cpu-clock: 98.00 % whole, 2.00 % part, 8.00 % with guessed frames
# stacks: live
# 3 samples lost
#
# functions of cpu-clock, by self; 100 % is 100.0 ms in 100 samples
#
# self %  total %      self  samples  module      function                    file:line
   60.00    62.00  60.00 ms       60  app         [.] Inlined<T>              hot.h:7
   30.00    92.00  30.00 ms       30  app         [.] Work(int, char const*)  work.cc:20
    8.00     8.00  8.000 ms        8  libbare.so  [.] [libbare.so]+0x1234
# 4 more functions, together 2.00 % (min_percent, max_lines)
# 8.00 % of self is in code without names: libbare.so
#
# call tree of cpu-clock, callers first
#
# total %   self %  function
   100.00     0.00  _start
   100.00     0.00  main
    92.00    30.00  |-Work(int, char const*)
    62.00     0.00  | Hot
    62.00    60.00  | Inlined<T> (inlined)
     8.00     8.00  `-[libbare.so]+0x1234
# 1 more calls, below 3.00 % (min_percent, max_lines)
#
# threads
#
#     %  cpu-clock  samples  on CPU  off CPU  thread
  75.00   75.00 ms       75       -        -  app-42
  25.00   25.00 ms       25       -        -  worker "1"; <a>-43
#
# time off the CPU, by what was waited for
#
#     %      time  waits   longest  waited for
  80.00  40.00 ms      1  40.00 ms  futex 0x1000
  20.00  10.00 ms      1  10.00 ms  (preempted: others ran, or a CPU quota was used up)
)");
}

TEST_CASE("a merged sample may hide a longer wait", "[profile][report]") {
  Profile profile = SampleProfile();
  ProfileSample merged =
      *std::find_if(profile.samples.begin(), profile.samples.end(), [&](const ProfileSample& sample) {
        return sample.event == profile.EventIndex(kOffCpuEvent) && sample.weight == 40'000'000;
      });
  merged.time_ns = 0;
  merged.samples = 2;
  for (const uint64_t weight : {30'000'000, 50'000'000}) {
    merged.weight = weight;
    profile.samples.insert(profile.samples.begin(), merged);
    REQUIRE(profile.Check().ok());
    CHECK_THAT(FormatReport(profile), Contains(weight < 40'000'000 ? "  40.00 ms  futex" : ">=40.00 ms  futex"));
  }
}

TEST_CASE("a report shows what the kernel counted and what is missing", "[profile][report]") {
  Profile profile = SampleProfile();
  profile.events[0].accounting.counted = 125'000'000;
  profile.events[0].accounting.delivered = 100;
  profile.events[0].accounting.lost = 7;
  profile.events[0].accounting.paused = 3;
  profile.events[0].accounting.unsampled_ns = 25'000'000;
  profile.events[1].user_only = true;
  profile.events[1].accounting.counted = 33;
  profile.events[1].accounting.counted_is_lower_bound = true;
  profile.events[1].accounting.stacks = {.delivered = 20, .walk_limit = 1, .no_ring = 2, .ring_full = 3, .coalesced = 4};
  profile.accounting.stacks_forgotten = 1234;
  profile.accounting.own_cpu_ns = 2'000'000;
  profile.threads[0].on_ns = 80'000'000;
  profile.threads[0].off_ns = 120'000'000;
  const std::string report = FormatReport(profile);
  CHECK_THAT(report, Contains("100  125.0 ms     7    20.00 %\n"));
  CHECK_THAT(report, Contains("# page-faults (user only)        30        3     >= 33     0          -\n"));
  CHECK_THAT(report, Contains("# cpu-clock: 3 samples while paused\n"));
  CHECK_THAT(report, Contains(": 10 stacks not taken (1 over the walk limit, 2 without a ring, 3 ring full, 4 not signalled)\n"));
  CHECK_THAT(report, Contains("# 1,234 stacks cut to their leaf"));
  CHECK_THAT(report, Contains("# cost: 2.000 ms of CPU time in this process, about "));
  profile.accounting.naming_cpu_ns = 1'500'000;
  CHECK_THAT(FormatReport(profile), Contains("in this process (1.500 ms of it for names and tables), about "));
  CHECK_THAT(report, Contains("80.00 ms  120.0 ms  app-42\n"));
}

TEST_CASE("the losses of stacks that have words are all that there are", "[profile][report]") {
  StackAccounting stacks = {.delivered = 1 << 10, .duplicates = 1 << 11};
  uint64_t sum = 0;
  for (size_t i = 0; i < kStackLosses.size(); ++i) {
    REQUIRE(stacks.*kStackLosses[i].count == 0);  // Each has words of its own.
    sum += stacks.*kStackLosses[i].count = uint64_t{1} << i;
  }
  CHECK(stacks.skipped() == sum);
  CHECK(sizeof(stacks) == (kStackLosses.size() + 2) * sizeof(uint64_t));  // No part of skipped() is left out.
}

TEST_CASE("a report shows the event, the order and the direction that are asked for", "[profile][report]") {
  const Profile profile = SampleProfile();
  CHECK_THAT(FormatReport(profile, {.event = "page-faults"}), Contains("100.00   100.00    30        3  [kernel]"));
  CHECK_THAT(FormatReport(profile, {.children = true}),
             Contains("0.00   100.00      0 ns        0  app         [.] _start"));
  CHECK_THAT(FormatReport(profile, {.bottom_up = true}),
             Contains("    60.00  |-Inlined<T> (inlined)\n    60.00  | Hot\n"));
  const std::string by_thread = FormatReport(profile, {.min_percent = 3, .by_thread = true});
  CHECK_THAT(by_thread, Contains("75.00     0.00  |-thread app-42\n"));
  CHECK_THAT(by_thread, Contains("# functions by thread of cpu-clock, by self; 100 % is 100.0 ms in 100 samples\n"));
  CHECK_THAT(by_thread, Contains("45  app-42 "));
  CHECK(FormatReport(profile, {.accounting = false}).starts_with("#\n# functions of cpu-clock, by self"));
  CHECK_THAT(FormatReport(profile, {.key = ReportKey::kModule}), Contains("90.00   100.00  90.00 ms"));
  CHECK_THAT(FormatReport(profile, {.key = ReportKey::kLine}), Contains("60  hot.h:7"));
  CHECK_THAT(FormatReport(profile, {.call_tree = false}), !Contains("call tree"));
  CHECK_THAT(FormatReport(profile, {.event = "cycles"}), Contains("no event \"cycles\""));
}

TEST_CASE("a table that is cut says how much more there is", "[profile][report]") {
  const std::string report = FormatReport(SampleProfile(), {.min_percent = 0, .max_lines = 1});
  CHECK_THAT(report, Contains("# 6 more functions"));
  CHECK_THAT(report, Contains("# 1 more threads"));
  CHECK_THAT(report, Contains("# 1 more kinds of waits"));
}

TEST_CASE("a report of no samples says so", "[profile][report]") {
  CHECK_THAT(FormatReport(Profile()), Contains("no events"));
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  CHECK_THAT(FormatReport(builder.Take()), Contains("cycles has no weight"));
  Profile broken = SampleProfile();
  broken.samples[0].event = 99;
  CHECK_THAT(FormatReport(broken), Contains("there is no such event"));
}

TEST_CASE("names of any bytes keep lines whole and narrow", "[profile][report]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles\n\tx"});
  builder.profile().program = "a\nb";
  builder.profile().accounting.notes = {"one\ntwo"};
  const std::string names[] = {std::string(10'000, 't'),
                               "a\nb\tc\r",
                               "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80",
                               "\xff\xfe\xc3(",
                               std::string("nul\0byte", 8),
                               "%s%n",
                               std::string(3'000, '\xc3')};
  for (uint32_t i = 0; i < std::size(names); ++i) {
    const uint32_t thread = builder.AddThread(1, i, names[i]);
    const uint32_t wait = builder.AddWait({.detail = builder.String(names[i])});
    builder.AddSample({.time_ns = 1,
                       .weight = 1,
                       .thread = thread,
                       .stack = builder.Stack(ProfileStack::kRoot, builder.Function(names[i], names[i], names[i], 1)),
                       .wait = wait,
                       .quality = StackQuality::kWhole});
  }
  builder.AddEvent({.name = std::string(kOffCpuEvent)});
  const Profile profile = builder.Take();
  for (const ReportKey key :
       {ReportKey::kFunction, ReportKey::kModule, ReportKey::kLine, ReportKey::kThread, ReportKey::kTask}) {
    const std::string report = FormatReport(profile, {.key = key, .width = 100});
    for (const std::string& line : LinesOf(report)) {
      CHECK(Columns(line) <= 100);
      CHECK(OneLine(line) == line);
    }
    CHECK_THAT(report, Contains("\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"));
  }
}

TEST_CASE("text is cut in its middle, between characters", "[profile][report]") {
  CHECK(CutMiddle("abcdefghij", 10) == "abcdefghij");
  CHECK(CutMiddle("abcdefghij", 7) == "ab...ij");
  CHECK(CutMiddle("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac", 4) == "\xc3\xa4...");
  CHECK(CutMiddle("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac"
                  "abcdef",
                  5) == "\xc3\xa4...f");
  CHECK(CountText(1'234'567) == "1,234,567");
  CHECK(CountText(0) == "0");
  CHECK(WeightText(1'500'000, ProfileUnit::kNanoseconds) == "1.500 ms");
  CHECK(WeightText(1536, ProfileUnit::kBytes) == "1.500 KiB");
  CHECK(PercentText(1, 0) == "-");
}

TEST_CASE("stacks of 10,000 calls are reported", "[profile][report]") {
  constexpr uint32_t kDepth = 10'000;
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "app");
  const uint32_t recursive = builder.Function("Recursive", "app");
  uint32_t same = ProfileStack::kRoot, other = ProfileStack::kRoot;
  for (uint32_t i = 0; i < kDepth; ++i) {
    same = builder.Stack(same, recursive);
    other = builder.Stack(other, builder.Function("f" + std::to_string(i), "app"));
    const uint32_t side = builder.Stack(other, builder.Function("g" + std::to_string(i), "app"));
    builder.AddSample({.time_ns = 1, .weight = 1, .stack = side, .quality = StackQuality::kWhole});
  }
  builder.AddSample({.time_ns = 1, .weight = kDepth, .stack = same, .quality = StackQuality::kWhole});
  builder.AddSample({.time_ns = 1, .weight = kDepth, .stack = other, .quality = StackQuality::kPart});
  const Profile profile = builder.Take();
  const absl::StatusOr<ProfileDifference> difference = Difference(profile, profile.Filtered({.function = "f9999"}));
  REQUIRE(difference.ok());
  CHECK_THAT(FormatReport(*difference), Contains("Recursive"));
  CHECK(WriteCallgrind(profile, {}, [](std::string_view) { return absl::OkStatus(); }) == absl::OkStatus());
  CHECK_THAT(FormatReport(profile), Contains("Recursive (calls itself, 10,000 levels)"));
  CHECK_THAT(FormatReport(profile, {.bottom_up = true}), Contains("Recursive (calls itself, 128 levels)"));
  for (const std::string& line : LinesOf(FormatReport(profile, {.min_percent = 0, .max_lines = 0}))) {
    REQUIRE(line.size() <= 120);
  }
}

TEST_CASE("a text file is the report", "[profile][report]") {
  const Profile profile = SampleProfile();
  std::string text;
  const auto sink = [&](std::string_view bytes) {
    text += bytes;
    return absl::OkStatus();
  };
  CHECK(WriteReport(profile, {.event = "off-cpu"}, sink) == absl::OkStatus());
  CHECK(text == FormatReport(profile, {.event = "off-cpu"}));
  CHECK(WriteReport(profile, {.event = "cycles"}, sink).code() == absl::StatusCode::kInvalidArgument);
  CHECK(WriteReport({}, {}, sink) == absl::OkStatus());
}

TEST_CASE("a report has a table of tasks if there are any", "[profile][report][tasks]") {
  Profile profile = SampleProfile();
  CHECK_THAT(FormatReport(profile), !Contains("# tasks"));
  profile.strings.push_back("level > file");
  for (ProfileSample& sample : profile.samples) {
    if (sample.thread == 0) sample.task = static_cast<uint32_t>(profile.strings.size() - 1);
  }
  const std::string text = FormatReport(profile);
  INFO(text);
  CHECK_THAT(text, Contains("# tasks"));
  CHECK_THAT(text, Contains("level > file\n") && Contains("(outside of tasks)\n"));
}

}  // namespace
}  // namespace perfkit::profile
