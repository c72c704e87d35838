// The page of a difference of two profiles as a file: its size, what stands in it, what is refused. What it shows:
// readers/difference_check.cc.
#include "src/exporters/html_difference.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "perfkit/exporters.h"
#include "perfkit/profile_builder.h"
#include "perfkit/profile_difference.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/written.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/temp_folder.h"

namespace perfkit::exporters {
namespace {

std::string DifferencePage(const ProfileDifference& difference) {
  return Written([&](ProfileSink sink) { return WriteDifferenceHtml(difference, {}, sink); });
}

// 100,000 samples of 3,000 stacks, whose calls are random from their middle on: some 40,000 nodes.
Profile ManyNodes(uint64_t seed) {
  std::mt19937_64 shape(1), random(seed);
  ProfileBuilder builder;
  const auto cpu = builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "main");
  std::vector<uint32_t> functions, leaves;
  for (uint32_t i = 0; i < 2000; ++i) {
    const std::string name = "game::module" + std::to_string(i % 20) + "::Class<int>::Method" + std::to_string(i);
    functions.push_back(builder.Function(name, "/usr/lib/libgame" + std::to_string(i % 20) + ".so"));
  }
  while (leaves.size() < 3000) {
    uint32_t stack = ProfileStack::kRoot;
    const uint64_t depth = 10 + shape() % 31;
    for (uint64_t k = 0; k < depth; ++k) {
      stack = builder.Stack(stack, functions[(k < depth / 2 ? k * 7 : shape()) % functions.size()]);
    }
    leaves.push_back(stack);
  }
  for (uint32_t i = 0; i < 100'000; ++i) {
    builder.AddSample({.time_ns = 1'000'000 + i,
                       .weight = 1'000'000,
                       .stack = leaves[random() % leaves.size()],
                       .event = cpu,
                       .quality = StackQuality::kWhole});
  }
  return builder.Take();
}

TEST_CASE("the page of a difference of 100,000 samples of 3,000 stacks is smaller than 1 MB", "[exporters][html]") {
  const auto difference = Difference(ManyNodes(1), ManyNodes(2));
  REQUIRE(difference.ok());
  REQUIRE(difference->nodes.size() > 30'000);
  const std::string page = DifferencePage(*difference);
  CHECK(page.size() < 1'000'000);
  CHECK_THAT(page, Catch::EndsWith("</html>\n"));
}

TEST_CASE("the page of a difference loads nothing, and no name stands in its text", "[exporters][html]") {
  const Profile hostile = testing::HostileProfile();
  const auto difference = Difference(hostile, hostile);
  REQUIRE(difference.ok());
  const std::string page = DifferencePage(*difference), empty = DifferencePage({});
  CHECK_THAT(page, !Catch::Contains("http:") && !Catch::Contains("https:") && !Catch::Contains("window.broken"));
  const auto after = [](const std::string& text) { return text.substr(text.rfind("</script>\n<script>")); };
  CHECK(after(page) == after(empty));
}

TEST_CASE("the bounds of intervals keep their signs, however close to 0", "[exporters][html]") {
  ProfileDifference difference{.before = {1'000, 10}, .after = {1'000, 10}, .before_whole = 1, .after_whole = 1};
  difference.functions.push_back({.name = "f", .self = {.before = 0.1, .after = 0.1, .low = 1e-9, .high = 2e-9}});
  difference.functions.push_back({.name = "g", .self = {.before = 0.1, .after = 0.1, .low = -2e-9, .high = -1e-9}});
  difference.functions.push_back({.name = "h", .self = {.before = 0.25, .after = 0.5, .low = 0, .high = 0.3}});
  const std::string text = WrittenJson([&](JsonWriter& json) { WriteHtmlDifference(difference, json); });
  const nlohmann::json functions = nlohmann::json::parse(text)["difference"]["functions"];
  CHECK(functions["self_change"]["low"] == nlohmann::json{1, -1, 0});
  CHECK(functions["self_change"]["high"] == nlohmann::json{1, -1, 3'000'000});
  CHECK(functions["self"]["before"] == nlohmann::json{100, 100, 250});
  CHECK(functions["self"]["after"] == nlohmann::json{100, 100, 500});
}

TEST_CASE("a difference is written by extension, and formats that show none say which do", "[exporters][html]") {
  const testing::TempFolder folder;
  const Profile profile = profile::SampleProfile();
  auto difference = Difference(profile, profile);
  REQUIRE(difference.ok());
  CHECK(WriteDifference(*difference, folder.path() + "/change.html") == absl::OkStatus());
  CHECK(std::filesystem::file_size(folder.path() + "/change.html") > 10'000);
  for (const char* const name : {"/change.folded", "/change.pb.gz", "/change.pftrace"}) {
    const absl::Status status = WriteDifference(*difference, folder.path() + name);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains("choose one of .txt .html"));
    CHECK(!std::filesystem::exists(folder.path() + name));
  }
  const auto is_refused = [&] {
    return WriteDifference(*difference, folder.path() + "/other.html").code() == absl::StatusCode::kInvalidArgument;
  };
  ProfileDifference::Node& node = difference->nodes[1];
  const uint32_t function = node.function;
  node.function = static_cast<uint32_t>(difference->functions.size());
  CHECK(is_refused());
  node.function = function;
  node.parent = 1;  // its own
  CHECK(is_refused());
  CHECK(!std::filesystem::exists(folder.path() + "/other.html"));
}

TEST_CASE("difference: whichever piece a sink refuses, its status is the writer's", "[exporters][html]") {
  const Profile profile = profile::SampleProfile();
  const auto difference = Difference(profile, profile);
  REQUIRE(difference.ok());
  const absl::Status full = absl::DataLossError("full");
  int refused = 0, pieces = 0;
  do {
    ++refused;
    pieces = 0;
    const absl::Status status = WriteDifferenceHtml(
        *difference, {}, [&](std::string_view) { return ++pieces == refused ? full : absl::OkStatus(); });
    CHECK(status == (pieces < refused ? absl::OkStatus() : full));
    CHECK(pieces <= refused);
  } while (pieces == refused);
}

}  // namespace
}  // namespace perfkit::exporters
