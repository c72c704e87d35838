// Callgrind's format as callgrind_annotate reads it: the same self and total for every function and event.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "perfkit/profile_writer.h"
#include "perfkit/report.h"
#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit::profile {
namespace {

using testing::Run;
using testing::RunCommand;
using testing::TempFolder;

std::string Callgrind(const Profile& profile) {
  std::string text;
  CHECK(WriteCallgrind(profile, {}, [&](std::string_view bytes) {
          text += bytes;
          return absl::OkStatus();
        }) == absl::OkStatus());
  return text;
}

// Weights of functions by event and name.
using Weights = std::map<std::pair<size_t, std::string>, uint64_t>;

// "1,234": a number of callgrind_annotate's; "." is 0.
uint64_t NumberOf(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return text == "." ? 0 : std::stoull(text);
}

// The numbers that callgrind_annotate shows. Nothing may be wrong with the file.
Weights Annotated(const std::string& path, bool inclusive, size_t events) {
  const Run run = RunCommand("callgrind_annotate --threshold=100 --auto=no --show-percs=no --inclusive=" +
                             std::string(inclusive ? "yes " : "no ") + path);
  INFO(run.output);
  CHECK(run.exit_code == 0);
  CHECK(run.output.find("WARNING") == std::string::npos);
  Weights weights;
  std::istringstream lines(run.output);
  bool functions = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" file:function")) functions = true;
    std::istringstream cells(line);
    std::vector<std::string> numbers(events);
    for (std::string& number : numbers) cells >> number;
    std::string name;
    if (!functions || !std::getline(cells >> std::ws, name)) continue;
    if (numbers[0].find_first_not_of("0123456789.,") != std::string::npos) continue;
    name = name.substr(name.find(':') + 1);
    if (name.ends_with(']')) name = name.substr(0, name.rfind(" ["));
    if (name == "[all]") continue;
    for (size_t event = 0; event < events; ++event) {
      if (NumberOf(numbers[event]) != 0) weights[{event, name}] += NumberOf(numbers[event]);
    }
  }
  return weights;
}

void CheckAgainstFlat(const Profile& profile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/callgrind.out.1";
  REQUIRE(WriteProfile(profile, path) == absl::OkStatus());
  const FlatProfile flat(profile);
  Weights self, total;
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const std::string name = FunctionName(profile, flat.rows()[i].function);
    for (size_t event = 0; event < profile.events.size(); ++event) {
      if (const uint64_t weight = flat.Self(i, event).weight; weight != 0) self[{event, name}] += weight;
      if (const uint64_t weight = flat.Total(i, event).weight; weight != 0) total[{event, name}] += weight;
    }
  }
  CHECK(Annotated(path, false, profile.events.size()) == self);
  CHECK(Annotated(path, true, profile.events.size()) == total);
}

TEST_CASE("callgrind_annotate shows the self and total of every function and event", "[profile][callgrind]") {
  if (RunCommand("command -v callgrind_annotate").exit_code != 0) SKIP_TEST("there is no callgrind_annotate");
  CheckAgainstFlat(SampleProfile());
  for (uint32_t seed = 0; seed < 6; ++seed) CheckAgainstFlat(RandomProfile(seed).Make());
}

TEST_CASE("a callgrind file, whole", "[profile][callgrind]") {
  ProfileBuilder builder;
  builder.profile().program = "app";
  builder.profile().accounting.notes = {"stacks:\nlive"};
  builder.AddEvent({.name = "cpu clock:u", .unit = ProfileUnit::kNanoseconds});
  builder.AddEvent({.name = "page-faults"});
  builder.profile().events[1].accounting.lost = 3;
  builder.AddThread(1, 1, "app");
  const uint32_t main = builder.Stack(ProfileStack::kRoot, builder.Function("main", "/bin/app", "/src/main.cc", 10));
  const uint32_t self = builder.Function("Self", "/bin/app", "/src/main.cc", 20);
  const uint32_t deep = builder.Stack(builder.Stack(main, self), self);
  builder.AddSample({.time_ns = 1, .weight = 5, .stack = deep, .quality = StackQuality::kWhole});
  builder.AddSample({.time_ns = 2, .weight = 2, .stack = main, .event = 1, .quality = StackQuality::kWhole});
  builder.AddSample({.time_ns = 3, .weight = 1, .event = 1});
  CHECK(Callgrind(builder.Take()) == R"(# callgrind format
version: 1
creator: perfkit
cmd: app
desc: page-faults: 3 samples lost
desc: stacks: live
event: cpu_clock_u : cpu clock:u (nanoseconds)
event: page-faults : page-faults (count)
positions: line
events: cpu_clock_u page-faults
summary: 5 3

ob=(1) /bin/app
fl=(1) /src/main.cc
fn=(1) main
10 0 2
cob=(1)
cfi=(1)
cfn=(2) Self
calls=1 20
10 5 0

ob=(1)
fl=(1)
fn=(2)
20 5 0
cob=(1)
cfi=(1)
cfn=(2)
calls=1 20
20 0 0

ob=(2) ???
fl=(2) ???
fn=(3) [all]
0 0 1
cob=(1)
cfi=(1)
cfn=(1)
calls=2 10
0 5 2
)");
}

TEST_CASE("names of any bytes leave callgrind's lines whole", "[profile][callgrind]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "app");
  const std::string names[] = {std::string(10'000, 't'), "a\nfn=(1)", "\xff", "(7) seven", " ", "calls=1 2"};
  uint32_t stack = ProfileStack::kRoot;
  for (const std::string& name : names) {
    stack = builder.Stack(stack, builder.Function(name, name, name, 1));
    builder.AddSample({.time_ns = 1, .weight = 1, .stack = stack, .quality = StackQuality::kWhole});
  }
  const Profile profile = builder.Take();
  const std::string text = Callgrind(profile);
  CHECK_THAT(text, Catch::Contains("events: cycles cycles_2\n"));
  CHECK_THAT(text, Catch::Contains("fn=(2) a fn=(1)\n"));
  CHECK_THAT(text, Catch::Contains("fn=(4) (7) seven\n"));
  CHECK_THAT(text, Catch::Contains("fn=(5) ???\n"));
  CHECK(Callgrind(Profile()).starts_with("# callgrind format\n"));
}

TEST_CASE("a sink that fails ends a callgrind file with its status", "[profile][callgrind]") {
  CHECK(WriteCallgrind(SampleProfile(), {}, [](std::string_view) { return absl::DataLossError("full"); }) ==
        absl::DataLossError("full"));
}

TEST_CASE("callgrind's files are known by extension or prefix", "[profile][callgrind]") {
  const TempFolder folder;
  for (const std::string name : {"/work.callgrind", "/callgrind.out.1234", "/callgrind.out.work.3"}) {
    REQUIRE(WriteProfile(SampleProfile(), folder.path() + name) == absl::OkStatus());
    CHECK(RunCommand("head -n 1 " + folder.path() + name).output == "# callgrind format\n");
  }
  CHECK(WriteProfile(SampleProfile(), folder.path() + "/callgrind.out.folded") == absl::OkStatus());
  CHECK_THAT(RunCommand("head -n 1 " + folder.path() + "/callgrind.out.folded").output, Catch::Contains(";_start"));
  std::filesystem::create_directory(folder.path() + "/callgrind.out.d");
  CHECK(!WriteProfile(SampleProfile(), folder.path() + "/callgrind.out.d/work").ok());
}

}  // namespace
}  // namespace perfkit::profile
