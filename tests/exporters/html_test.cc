// The HTML page as a file: its size, what stands in it, and sinks that fail. What it shows: readers/html_check.cc.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "perfkit/exporters.h"
#include "src/exporters/base64_sink.h"
#include "src/exporters/html_data.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/refusing_sink.h"
#include "tests/exporters/written.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::exporters {
namespace {

std::string Page(const Profile& profile) {
  return Written([&](ProfileSink sink) { return WriteHtml(profile, {}, sink); });
}

std::string Base64(std::string_view bytes, size_t piece) {
  std::string text;
  const auto keep = [&](std::string_view letters) {
    text += letters;
    return absl::OkStatus();
  };
  Base64Sink sink(keep);
  for (size_t at = 0; at < bytes.size(); at += piece) CHECK(sink.Write(bytes.substr(at, piece)) == absl::OkStatus());
  CHECK(sink.Finish() == absl::OkStatus());
  return text;
}

TEST_CASE("base64 has the test vectors of RFC 4648, in whatever pieces", "[exporters][html]") {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"},
                                                                   {"\xff\xfe\xfb", "//77"}};
  for (const auto& [bytes, text] : vectors) {
    for (size_t piece = 1; piece <= 7; ++piece) CHECK(Base64(bytes, piece) == text);
  }
}

// Stacks as a program has them: each shares most of its calls with others. Times, threads and order are random.
Profile LargeProfile() {
  std::mt19937_64 random(1);
  ProfileBuilder builder;
  const auto cpu = builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  for (uint32_t i = 0; i < 8; ++i) builder.AddThread(1, 1 + i, "worker " + std::to_string(i));
  std::vector<uint32_t> locations;
  for (uint32_t i = 0; i < 2000; ++i) {
    const std::string name = "game::module" + std::to_string(i % 20) + "::Class<int>::Method" + std::to_string(i);
    locations.push_back(builder.Function(name, "/usr/lib/libgame" + std::to_string(i % 20) + ".so",
                                         "/src/game/file" + std::to_string(i % 200) + ".cc", i));
  }
  std::vector<uint32_t> leaves;
  while (leaves.size() < 3000) {
    uint32_t stack = ProfileStack::kRoot;
    const uint64_t depth = 10 + random() % 31;
    for (uint64_t k = 0; k < depth; ++k) {
      stack = builder.Stack(stack, locations[(k < depth / 2 ? k * 7 : random()) % locations.size()]);
    }
    leaves.push_back(stack);
  }
  uint64_t time_ns = 1'000'000'000;
  for (uint32_t i = 0; i < 100'000; ++i) {
    time_ns += 100'000 + random() % 50'000;
    builder.AddSample({.time_ns = time_ns,
                       .weight = 1'000'000,
                       .thread = static_cast<uint32_t>(random() % 8),
                       .stack = leaves[random() % leaves.size()],
                       .event = cpu,
                       .quality = StackQuality::kWhole});
  }
  return builder.Take();
}

TEST_CASE("the page of 100,000 samples of 3,000 stacks is smaller than 1 MB", "[exporters][html]") {
  const std::string page = Page(LargeProfile());
  CHECK(page.size() < 1'000'000);
  CHECK_THAT(page, Catch::EndsWith("</html>\n"));
}

TEST_CASE("the page loads nothing, and no name of the profile stands in its text", "[exporters][html]") {
  const std::string page = Page(testing::HostileProfile());
  CHECK_THAT(page, !Catch::Contains("http:") && !Catch::Contains("https:") && !Catch::Contains("window.broken"));
  CHECK_THAT(page, Catch::Contains("default-src 'none'"));
  const std::string empty = Page(Profile());
  const std::string_view mark = "id=\"data\">";
  CHECK(page.substr(0, page.find(mark)) == empty.substr(0, empty.find(mark)));
  const auto after = [](const std::string& text) { return text.substr(text.rfind("</script>\n<script>")); };
  CHECK(after(page) == after(empty));
}

TEST_CASE("the page's data is JSON, with all times exact", "[exporters][html]") {
  std::string text;
  const auto keep = [&](std::string_view bytes) {
    text += bytes;
    return absl::OkStatus();
  };
  profile::SinkBuffer out(keep);
  JsonWriter json(out);
  Profile profile = profile::SampleProfile();
  profile.from_ns = 1'050'000'000;  // later than its first samples
  profile.to_ns = profile.from_ns - 1;
  WriteHtmlData(profile, {}, json);
  CHECK(out.Finish() == absl::OkStatus());
  const nlohmann::json data = nlohmann::json::parse(text);
  CHECK(data["span"] == 0);  // a profile that was made by hand may end before it begins
  auto time_ns = static_cast<int64_t>(profile.from_ns);
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    time_ns += data["samples"]["time"][i].get<int64_t>();
    CHECK(time_ns == static_cast<int64_t>(profile.samples[i].time_ns));
  }
}

TEST_CASE("html: whichever piece a sink refuses, its status is the writer's", "[exporters][html]") {
  testing::CheckRefusedPieces(WriteHtml, profile::SampleProfile());
}

}  // namespace
}  // namespace perfkit::exporters
