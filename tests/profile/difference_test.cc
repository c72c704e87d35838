// Differences of profiles that were drawn from known distributions: what is found, and how often chance is taken for
// it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <functional>

#include "perfkit/profile_difference.h"
#include "src/profile/interval.h"
#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

// A program with functions of known shares, profiled.
struct Program {
  std::vector<double> shares;
  uint32_t samples = 4000;
  std::function<uint64_t(std::mt19937&)> weight = [](std::mt19937&) { return uint64_t{1'000'000}; };
  std::string build{};  // where it lies: another build has other addresses

  // Each function is called by one of four groups.
  Profile Draw(std::mt19937& random) const {
    ProfileBuilder builder;
    builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    builder.AddThread(1, 1, "app");
    const uint32_t module = builder.Module(build + "/app", build);
    std::vector<uint32_t> stacks;
    for (uint32_t i = 0; i < 4 + shares.size(); ++i) {
      const std::string name = i < 4 ? "group" + std::to_string(i) : "f" + std::to_string(i - 4);
      const uint32_t at = builder.Location(module, 0x1000 * (i + 1) + build.size());
      const ProfileCall call{.function = builder.String(name)};
      builder.SetCalls(at, std::span(&call, 1));
      stacks.push_back(builder.Stack(i < 4 ? ProfileStack::kRoot : stacks[i % 4], at));
    }
    for (uint32_t i = 0; i < samples; ++i) {
      double left = static_cast<double>(random()) / 0x1p32;
      size_t function = 0;
      while (function + 1 < shares.size() && left >= shares[function]) left -= shares[function++];
      builder.AddSample(
          {.time_ns = 1, .weight = weight(random), .stack = stacks[4 + function], .quality = StackQuality::kWhole});
    }
    return builder.Take();
  }
};

// Shares that fall off as those of real programs do; they add up to `sum`.
std::vector<double> FallingShares(size_t functions, double sum = 1) {
  std::vector<double> shares;
  double all = 0;
  for (size_t i = 0; i < functions; ++i) all += shares.emplace_back(1.0 / static_cast<double>(i + 1));
  for (double& share : shares) share *= sum / all;
  return shares;
}

const ProfileDifference::Function* Find(const ProfileDifference& difference, std::string_view name) {
  const auto at = std::find_if(difference.functions.begin(), difference.functions.end(),
                               [&](const ProfileDifference::Function& function) { return function.name == name; });
  return at == difference.functions.end() ? nullptr : &*at;
}

// How many of `trials` independent ones with a chance of 5 % happen at most, but for one case in a million.
size_t AtMost(size_t trials) {
  const double mean = 0.05 * static_cast<double>(trials);
  return static_cast<size_t>(mean + 5 * std::sqrt(mean * 0.95) + 2);
}

struct Marks {
  size_t all = 0, marked = 0;                // functions
  size_t frequent = 0, frequent_marked = 0;  // those with at least 30 samples in each
  size_t nodes = 0, nodes_marked = 0;
};

Marks CountMarks(const Program& before, const Program& after, const DifferenceOptions& options) {
  Marks marks;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const Profile first = before.Draw(random);
    const absl::StatusOr<ProfileDifference> difference = Difference(first, after.Draw(random), options);
    REQUIRE(difference.ok());
    for (const ProfileDifference::Function& function : difference->functions) {
      if (function.name.starts_with("group")) continue;
      ++marks.all;
      marks.marked += function.self.is_noise() ? 0 : 1;
      if (std::min(function.self.before_samples, function.self.after_samples) < 30) continue;
      ++marks.frequent;
      marks.frequent_marked += function.self.is_noise() ? 0 : 1;
    }
    for (const ProfileDifference::Node& node : difference->nodes) {
      ++marks.nodes;
      marks.nodes_marked += node.total.is_noise() ? 0 : 1;
    }
  }
  return marks;
}

void CheckMarks(const Marks& marks) {
  CHECK(marks.marked <= AtMost(marks.all));
  CHECK(marks.frequent_marked <= AtMost(marks.frequent));
  CHECK(marks.nodes_marked <= AtMost(marks.nodes));
}

TEST_CASE("of functions that did not change, at most some 5 % are marked", "[profile][difference]") {
  const Program program{.shares = FallingShares(150)};
  const Marks marks = CountMarks(program, program, {});
  CheckMarks(marks);
  REQUIRE(marks.frequent > 400);
  CHECK(marks.frequent_marked * 100 >= 2 * marks.frequent);  // and not because nothing ever is
}

TEST_CASE("of two numbers of samples, of weights that vary, and per iteration too", "[profile][difference]") {
  Program program{.shares = FallingShares(100)};
  Program longer = program;
  longer.samples = 12'000;
  CheckMarks(CountMarks(program, longer, {}));
  CheckMarks(CountMarks(program, longer, {.before_iterations = 10, .after_iterations = 30}));
  program.weight = [](std::mt19937& random) { return 1'000 + uint64_t{random() % 100} * (random() % 100) * 1'000; };
  CheckMarks(CountMarks(program, program, {}));
  longer.weight = program.weight;
  CheckMarks(CountMarks(program, longer, {.before_iterations = 10, .after_iterations = 30}));
}

TEST_CASE("a change that the samples can resolve is found, with its size", "[profile][difference]") {
  // 10 % to 14 %: six standard deviations of 4,000 samples each.
  Program before{.shares = FallingShares(50, 0.90)}, after{.shares = FallingShares(50, 0.86)};
  before.shares.insert(before.shares.begin(), 0.10);
  after.shares.insert(after.shares.begin(), 0.14);
  size_t covered = 0;
  constexpr size_t kSeeds = 60;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    const Profile first = before.Draw(random);
    const auto difference = Difference(first, after.Draw(random));
    REQUIRE(difference.ok());
    const ProfileDifference::Function* const planted = Find(*difference, "f0");
    REQUIRE(planted != nullptr);
    CHECK(!planted->self.is_noise());
    CHECK(planted->self.change() > 0.02);
    covered += planted->self.low <= 0.04 && 0.04 <= planted->self.high ? 1 : 0;
    CHECK(planted->self.low < planted->self.change());
    CHECK(planted->self.change() < planted->self.high);
  }
  CHECK(kSeeds - covered <= AtMost(kSeeds));
}

TEST_CASE("functions of two builds are matched by name", "[profile][difference]") {
  Program before{.shares = FallingShares(20), .build = "/a"}, after{.shares = FallingShares(20), .build = "/other"};
  std::mt19937 random(1);
  const Profile first = before.Draw(random), second = after.Draw(random);
  const auto difference = Difference(first, second);
  REQUIRE(difference.ok());
  CHECK(difference->functions.size() == 24);
  double self_before = 0, self_after = 0;
  for (const ProfileDifference::Function& function : difference->functions) {
    self_before += function.self.before, self_after += function.self.after;
    CHECK(function.module == "app");
  }
  CHECK(self_before == Approx(1));
  CHECK(self_after == Approx(1));
  CHECK(difference->nodes.size() == 25);
  CHECK(difference->nodes[0].total.before == 1);
  CHECK(difference->nodes[0].total.is_noise());
}

TEST_CASE("code without a name is matched by its address, whatever else is known of it", "[profile][difference]") {
  const auto profile_with = [](bool has_line) {
    ProfileBuilder builder;
    builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    const uint32_t thread = builder.AddThread(1, 1, "main");
    const uint32_t at = builder.Location(builder.Module("/lib/libx.so"), 0x1234);
    const ProfileCall call{.file = builder.String("/src/x.c"), .line = 7};
    if (has_line) builder.SetCalls(at, std::span(&call, 1));
    const uint32_t stack = builder.Stack(ProfileStack::kRoot, at);
    for (uint64_t ns = 1; ns <= 1000; ++ns) {
      builder.AddSample(
          {.time_ns = ns, .weight = 10, .thread = thread, .stack = stack, .quality = StackQuality::kWhole});
    }
    return builder.Take();
  };
  for (const bool first : {false, true}) {
    const auto difference = Difference(profile_with(first), profile_with(!first));
    REQUIRE(difference.ok());
    REQUIRE(difference->functions.size() == 1);
    CHECK(difference->functions[0].self.before == 1);
    CHECK(difference->functions[0].self.after == 1);
  }
}

TEST_CASE("per iteration, twice the work is no change and a slower function is", "[profile][difference]") {
  std::mt19937 random(5);
  Program once{.shares = FallingShares(20)}, twice = once;
  twice.samples = 8'000;
  const Profile before = once.Draw(random), after = twice.Draw(random);
  const auto same = Difference(before, after, {.before_iterations = 100, .after_iterations = 200});
  REQUIRE(same.ok());
  CHECK(same->per_iteration);
  CHECK(same->before_whole == 40e6);
  CHECK(same->after_whole == 40e6);
  CHECK(same->nodes[0].total.before == Approx(40e6));
  const auto slower = Difference(before, after, {.before_iterations = 100, .after_iterations = 150});
  REQUIRE(slower.ok());
  CHECK(!slower->nodes[0].total.is_noise());
  CHECK(Find(*slower, "f0")->self.change() > 0);
  CHECK(!Find(*slower, "f0")->self.is_noise());
}

TEST_CASE("a profile does not differ from itself, and a larger design effect makes intervals wider",
          "[profile][difference]") {
  for (const Profile& profile : {SampleProfile(), RandomProfile(2).Make()}) {
    for (const ProfileEvent& event : profile.events) {
      const auto difference = Difference(profile, profile, {.event = event.name});
      REQUIRE(difference.ok());
      for (const ProfileDifference::Function& function : difference->functions) {
        CHECK(function.self.change() == 0);
        CHECK(function.total.is_noise());
      }
      const auto wider = Difference(profile, profile, {.event = event.name, .design_effect = 4});
      CHECK(wider->functions[0].self.high > difference->functions[0].self.high);
    }
  }
}

TEST_CASE("what can't be compared is refused", "[profile][difference]") {
  const Profile profile = SampleProfile();
  Profile other = SampleProfile();
  const auto refuses = [&](const DifferenceOptions& options) {
    return Difference(profile, other, options).status().code() == absl::StatusCode::kInvalidArgument;
  };
  CHECK(refuses({.event = "cycles"}));
  CHECK(refuses({.before_iterations = 1}));
  CHECK(refuses({.confidence = 1}));
  CHECK(refuses({.design_effect = 0}));
  CHECK(refuses({.before_iterations = std::nan(""), .after_iterations = 1}));
  // Rates by these would be infinite, or no numbers.
  for (const double odd : {std::numeric_limits<double>::denorm_min(), 1e-300, 1e300, HUGE_VAL}) {
    CHECK(refuses({.before_iterations = odd, .after_iterations = 1}));
    CHECK(refuses({.before_iterations = 1, .after_iterations = odd}));
  }
  CHECK(refuses({.design_effect = HUGE_VAL}));
  other.events[0].unit = ProfileUnit::kCount;
  CHECK(refuses({}));
  other.events[0].name = "x";
  CHECK(refuses({}));
  other.samples[0].event = 99;
  CHECK(refuses({.event = "page-faults"}));
  CHECK(!Difference({}, {}).ok());
}

TEST_CASE("an empty profile tells nothing", "[profile][difference]") {
  Profile empty = SampleProfile();
  empty.samples.clear();
  const auto difference = Difference(SampleProfile(), empty);
  REQUIRE(difference.ok());
  for (const ProfileDifference::Function& function : difference->functions) CHECK(function.self.is_noise());
  // Shares of nothing are not known, and not 0.
  CHECK_THAT(FormatReport(*difference),
             Catch::Contains(" ~ -     -   -   60.00      -    60, 0  app") && !Catch::Contains(" 0.00 "));
  CHECK(Difference(empty, empty)->functions.empty());
  CHECK_THAT(FormatReport(*Difference(empty, empty)), Catch::Contains("no call's total changed"));
}

TEST_CASE("the report of a difference has what changed first and what may be noise last", "[profile][difference]") {
  Program before{.shares = {0.3, 0.3, 0.2, 0.15, 0.05}}, after{.shares = {0.3, 0.2, 0.3, 0.14, 0.06}};
  std::mt19937 random(3);
  const Profile first = before.Draw(random);
  const auto difference = Difference(first, after.Draw(random));
  REQUIRE(difference.ok());
  const std::string report = FormatReport(*difference, {.min_percent = 0});
  INFO(report);
  CHECK_THAT(report, Catch::Contains("# difference of cpu-clock: before 4.000 s in 4,000 samples"));
  CHECK_THAT(report, Catch::Contains("[.] f1\n") && Catch::Contains("[.] f2\n") && Catch::Contains("  ~ "));
  CHECK(report.find("[.] f1\n") < report.find("  ~ "));
  CHECK(report.find("[.] f2\n") < report.find("  ~ "));
  CHECK_THAT(FormatReport(*difference, {.min_percent = 1, .max_lines = 1, .children = true}),
             Catch::Contains("more functions") && Catch::Contains("by the change of their total"));
}

TEST_CASE("the difference of a follower says that the samples are another event's", "[profile][difference]") {
  std::mt19937 random(5);
  Program first{.shares = {0.6, 0.4}}, second{.shares = {0.4, 0.6}};
  Profile before = first.Draw(random), after = second.Draw(random);
  for (ProfileSample& sample : before.samples) sample.samples = 0;
  for (ProfileSample& sample : after.samples) sample.samples = 0;
  const auto difference = Difference(before, after);
  REQUIRE(difference.ok());
  CHECK_THAT(FormatReport(*difference, {.min_percent = 0}),
             Catch::Contains(" in another event's samples, after ") && Catch::Contains("  -, -  ") &&
                 !Catch::Contains("0, 0"));
}

TEST_CASE("intervals of known cases", "[profile][difference]") {
  CHECK(NormalQuantile(0.95) == Approx(1.959964));
  CHECK(NormalQuantile(0.99) == Approx(2.575829));
  // Newcombe 1998, table II, method 10.
  const auto newcombe = [](double a, double m, double b, double n) {
    return DifferenceOf(ShareEstimate(b / n, n, 1.959964), ShareEstimate(a / m, m, 1.959964));
  };
  const Estimate a = newcombe(56, 70, 48, 80);
  CHECK(a.value == Approx(0.2));
  CHECK(a.low == Approx(0.0524).margin(0.00006));
  CHECK(a.high == Approx(0.3339).margin(0.00006));
  const Estimate b = newcombe(9, 10, 3, 10);
  CHECK(b.low == Approx(0.1705).margin(0.00006));
  CHECK(b.high == Approx(0.8090).margin(0.00006));
  const Estimate c = newcombe(10, 10, 0, 20);
  CHECK(c.low == Approx(0.6791).margin(0.00006));
  CHECK(c.high == Approx(1.0));
  // The score interval of a count of 10: 10 + 1.92 -+ 1.96 sqrt(10 + 0.96).
  const Estimate rate = RateEstimate(10, 2, 1.959964);
  CHECK(rate.low == Approx(2 * 5.4320).margin(0.001));
  CHECK(rate.high == Approx(2 * 18.4095).margin(0.001));
}

// One sample has six sevenths of the weight, or three quarters: of a single one, nothing is certain.
TEST_CASE("a single sample that has most of the weight is noise, however heavy it is", "[profile][difference]") {
  const auto made = [](uint64_t giga) {
    ProfileBuilder builder;
    builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
    builder.AddThread(1, 1, "app");
    const auto add = [&](const char* function, uint64_t weight, uint32_t samples) {
      builder.AddSample({.weight = weight,
                         .samples = samples,
                         .stack = builder.Stack(ProfileStack::kRoot, builder.Function(function, "/app")),
                         .quality = StackQuality::kWhole});
    };
    add("Rare", giga * 1'000'000'000, 1);
    add("Frequent", 100'000'000'000, 1'000'000);
    return builder.Take();
  };
  const auto difference = Difference(made(600), made(300));
  REQUIRE(difference.ok());
  const ProfileDifference::Function* const rare = Find(*difference, "Rare");
  REQUIRE(rare != nullptr);
  CHECK(rare->self.before == Approx(6.0 / 7));
  CHECK(rare->self.after == Approx(0.75));
  for (const ProfileDifference::Function& function : difference->functions) CHECK(function.self.is_noise());
}

TEST_CASE("squares of any weights fit", "[profile][difference]") {
  const auto made = [](uint64_t heavy) {
    ProfileBuilder builder;
    builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    builder.AddThread(1, 1, "app");
    const uint32_t stack = builder.Stack(ProfileStack::kRoot, builder.Function("Heavy", "/app"));
    for (int i = 0; i < 4; ++i) {
      builder.AddSample({.time_ns = 1, .weight = heavy, .stack = stack, .quality = StackQuality::kWhole});
    }
    const uint32_t light = builder.Stack(ProfileStack::kRoot, builder.Function("Light", "/app"));
    builder.AddSample({.weight = 1, .samples = UINT32_MAX, .stack = light, .quality = StackQuality::kWhole});
    return builder.Take();
  };
  const auto difference = Difference(made(UINT64_MAX / 8), made(UINT64_MAX / 16));
  REQUIRE(difference.ok());
  for (const ProfileDifference::Function& function : difference->functions) CHECK(function.self.is_noise());
}

}  // namespace
}  // namespace perfkit::profile
