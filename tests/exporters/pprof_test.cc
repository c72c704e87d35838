// Files of WritePprof, decoded by hand: whatever a profile holds, the file says the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "perfkit/exporters.h"
#include "perfkit/profile_builder.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/large_profile.h"
#include "tests/exporters/pprof_file.h"
#include "tests/exporters/totals.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/allocations.h"
#include "tests/support/work.h"

namespace perfkit::exporters {
namespace {

using testing::PprofFile;
using testing::SampleTotals;

std::string FileOf(const Profile& profile, const WriteOptions& options = {}) {
  std::string file;
  const absl::Status status = WritePprof(profile, options, [&](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  });
  CHECK(status == absl::OkStatus());
  return file;
}

TEST_CASE("pprof: each sample's values, labels and lines are in the file", "[exporters][pprof]") {
  const Profile profile = profile::SampleProfile();
  const PprofFile file(FileOf(profile));
  CHECK(file.SampleTypes() ==
        std::vector<std::string>{"samples/count", "cpu-clock/nanoseconds", "page-faults/count", "off-cpu/nanoseconds"});
  CHECK(file.Totals() == testing::PprofTotalsOf(profile));
  CHECK(file.strings.at(0).empty());
  CHECK(file.strings.at(file.file().Number(14)) == "cpu-clock");
  CHECK(file.file().Number(9) == 1'700'000'001'000'000'000);
  CHECK(file.file().Number(10) == 200'000'000);
  CHECK(file.strings.at(file.file().Messages(3)[0].Number(5)) == "/bin/app");
  CHECK_THAT(file.comments, Catch::VectorContains(std::string("3 samples lost")));
}

TEST_CASE("pprof: random profiles come back as they were", "[exporters][pprof]") {
  for (uint64_t seed = 1; seed <= testing::Seeds(1'000); ++seed) {
    const Profile profile = testing::AnyProfile(seed).Make();
    INFO("seed " << seed);
    REQUIRE(profile.Check() == absl::OkStatus());
    const std::string file = FileOf(profile);
    REQUIRE(PprofFile(file).Totals() == testing::PprofTotalsOf(profile));
    REQUIRE((FileOf(profile) == file));
  }
}

TEST_CASE("pprof: the chosen event is the one that readers show first", "[exporters][pprof]") {
  const PprofFile file(FileOf(profile::SampleProfile(), {.event = "page-faults"}));
  CHECK(file.strings.at(file.file().Number(14)) == "page-faults");
  const absl::Status status =
      WritePprof(profile::SampleProfile(), {.event = "cycles"}, [](std::string_view) { return absl::OkStatus(); });
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("pprof: a profile without samples is a file without samples", "[exporters][pprof]") {
  const PprofFile empty{FileOf(Profile())};
  CHECK(empty.SampleTypes() == std::vector<std::string>{"samples/count"});
  CHECK(empty.Totals().empty());
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock"});
  builder.Stack(ProfileStack::kRoot, builder.Function("unused", "/bin/unused"));
  const PprofFile unused(FileOf(builder.Take()));
  CHECK(unused.SampleTypes().size() == 2);
  CHECK(unused.locations.empty());
  CHECK(unused.mappings.empty());
}

TEST_CASE("pprof: names of any bytes become valid UTF-8", "[exporters][pprof]") {
  ProfileBuilder builder;
  const uint32_t stack =
      builder.Stack(ProfileStack::kRoot, builder.Function("f\xff(\xc3\x28)", "/li\x80", "\xed\xa0\x80", 1));
  builder.AddEvent({.name = "cpu\xfe"});
  builder.AddSample(
      {.weight = 1, .thread = builder.AddThread(1, 1, "\xf5"), .stack = stack, .quality = StackQuality::kWhole});
  const PprofFile file(FileOf(builder.Take()));
  const std::string bad = "\xef\xbf\xbd";
  for (const std::string& text : {"f" + bad + "(" + bad + "()", "/li" + bad, bad + bad + bad, "cpu" + bad, bad}) {
    CHECK_THAT(file.strings, Catch::VectorContains(text));
  }
}

TEST_CASE("pprof: weights beyond its numbers are the greatest number, not a negative one", "[exporters][pprof]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "t");
  builder.AddSample({.time_ns = 1, .weight = std::numeric_limits<uint64_t>::max()});
  builder.AddSample({.time_ns = 2, .weight = 7});
  const SampleTotals totals = PprofFile(FileOf(builder.Take())).Totals();
  REQUIRE(totals.size() == 1);
  CHECK(totals.begin()->second == std::vector<int64_t>{2, std::numeric_limits<int64_t>::max()});
}

TEST_CASE("pprof: a merged sample is in no zone, as its time is not known", "[exporters][pprof]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "t");
  builder.AddZone({.from_ns = 0, .to_ns = 10, .name = builder.String("boot")});
  builder.AddSample({.time_ns = 0, .weight = 3});
  builder.AddSample({.time_ns = 9, .weight = 5});
  builder.AddSample({.time_ns = 10, .weight = 7});
  const SampleTotals totals = PprofFile(FileOf(builder.Take())).Totals();
  CHECK(totals == SampleTotals{{"pid=1 stack=none thread=t tid=1 ", {2, 10}},
                               {"pid=1 stack=none thread=t tid=1 zone=boot ", {1, 5}}});
}

TEST_CASE("pprof: of many zones that are open at once, the outermost are named", "[exporters][pprof]") {
  for (const int count : {256, 257, 3'000}) {
    ProfileBuilder builder;
    builder.AddEvent({.name = "cycles"});
    builder.AddThread(1, 1, "t");
    const uint32_t name = builder.String("z");
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
      builder.AddZone({.from_ns = 1 + i, .to_ns = 10'000 + i, .name = name});
    }
    builder.AddSample({.time_ns = 9'000, .weight = 3});
    std::string zones = "z";
    for (int i = 1; i < std::min(count, 256); ++i) zones += "/z";
    if (count > 256) zones += "/(more)";
    const SampleTotals totals = PprofFile(FileOf(builder.Take())).Totals();
    CHECK(totals == SampleTotals{{"pid=1 stack=none thread=t tid=1 zone=" + zones + " ", {1, 3}}});
  }
}

TEST_CASE("pprof: whichever piece a sink refuses, its status is the writer's", "[exporters][pprof]") {
  const Profile profile = profile::SampleProfile();
  const absl::Status full(absl::StatusCode::kResourceExhausted, "disk full");
  for (int refused = 1;; ++refused) {
    int pieces = 0;
    const absl::Status status =
        WritePprof(profile, {}, [&](std::string_view) { return ++pieces == refused ? full : absl::OkStatus(); });
    CHECK(pieces <= refused);
    if (pieces < refused) break;
    CHECK(status == full);
  }
}

TEST_CASE("pprof: what the writer holds is some bytes a sample, not the file", "[exporters][pprof]") {
  const Profile profile = testing::LargeProfile(testing::kSanitized ? 10'000 : 100'000);
  const int64_t before = testing::bytes_held;
  int64_t most = 0;
  const absl::Status status = WritePprof(profile, {}, [&](std::string_view) {
    most = std::max(most, testing::bytes_held - before);
    return absl::OkStatus();
  });
  CHECK(status == absl::OkStatus());
  CHECK(most <
        static_cast<int64_t>(1 << 20) + static_cast<int64_t>(8 * (profile.samples.size() + profile.stacks.size())));
  const SampleTotals totals = PprofFile(FileOf(profile)).Totals();
  CHECK((totals == testing::PprofTotalsOf(profile)));
}

TEST_CASE("pprof: a stack of 10,000 calls, recursion in it, is whole", "[exporters][pprof]") {
  const Profile profile = testing::DeepProfile(10'000);
  CHECK((PprofFile(FileOf(profile)).Totals() == testing::PprofTotalsOf(profile)));
}

TEST_CASE("pprof: progress only grows, up to 1", "[exporters][pprof]") {
  const Profile profile = testing::LargeProfile(20'000);
  std::vector<double> seen;
  const auto progress = [](double done, void* to) { static_cast<std::vector<double>*>(to)->push_back(done); };
  FileOf(profile, {.progress = progress, .progress_argument = &seen});
  REQUIRE(!seen.empty());
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() <= 1);
}

}  // namespace
}  // namespace perfkit::exporters
