// Folded stacks: their sums, their order, and names that hold separators.
#include <catch2/catch.hpp>
#include <sstream>

#include "perfkit/profile_builder.h"
#include "perfkit/profile_writer.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

std::string Folded(const Profile& profile, std::string event = {}) {
  std::string text;
  CHECK(WriteFolded(profile, {.event = std::move(event)}, [&](std::string_view bytes) {
          text += bytes;
          return absl::OkStatus();
        }) == absl::OkStatus());
  return text;
}

TEST_CASE("folded lines add up to the event's total", "[profile][folded]") {
  const Profile profile = SampleProfile();
  for (size_t i = 0; i < profile.events.size(); ++i) {
    std::istringstream lines(Folded(profile, profile.events[i].name));
    uint64_t sum = 0;
    for (std::string line; std::getline(lines, line);) sum += std::stoull(line.substr(line.rfind(' ')));
    CHECK(sum == profile.Total(i).weight);
  }
}

TEST_CASE("folded lines begin with the thread, and go from the root to the innermost inlined call",
          "[profile][folded]") {
  CHECK_THAT(Folded(SampleProfile()),
             Catch::Contains("app-42;_start;main;Work(int, char const*);Hot;Inlined<T> 45000000\n"));
  CHECK_THAT(Folded(SampleProfile()),
             Catch::Contains("worker \"1\", <a>-43;_start;main;[libbare.so]+0x1234 2000000\n"));
}

TEST_CASE("a name with control characters stays on its line", "[profile][folded]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  builder.AddThread(7, 7, "a\rb\vc\fd\ne\x7f");
  builder.AddSample({.time_ns = 1, .weight = 3});
  CHECK(Folded(builder.Take()) == "a b c d e -7 3\n");
}

TEST_CASE("names that are no UTF-8 are valid text in folded lines", "[profile][folded]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  builder.AddThread(7, 7, "\xc3\xbc\xff");
  const uint32_t stack = builder.Stack(ProfileStack::kRoot, builder.Function("f\xc3(", "/bin/app"));
  builder.AddSample({.time_ns = 1, .weight = 3, .stack = stack});
  CHECK(Folded(builder.Take()) == "\xc3\xbc\xef\xbf\xbd-7;f\xef\xbf\xbd( 3\n");
}

TEST_CASE("a profile without events has no lines", "[profile][folded]") {
  CHECK(Folded(Profile()).empty());
  CHECK_FALSE(WriteFolded(Profile(), {.event = "cpu-clock"}, [](std::string_view) { return absl::OkStatus(); }).ok());
}

TEST_CASE("an unknown event is refused with those that there are", "[profile][folded]") {
  const absl::Status status =
      WriteFolded(SampleProfile(), {.event = "cycles"}, [](std::string_view) { return absl::OkStatus(); });
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("cpu-clock, page-faults, off-cpu"));
}

TEST_CASE("a sink that fails ends the writing with its status", "[profile][folded]") {
  CHECK(WriteFolded(SampleProfile(), {}, [](std::string_view) { return absl::DataLossError("full"); }) ==
        absl::DataLossError("full"));
}

}  // namespace
}  // namespace perfkit::profile
