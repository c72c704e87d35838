// Merging takes times and waits, never sums.
#include "src/session/merge_samples.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::session {
namespace {

using Key = std::tuple<uint32_t, uint16_t, uint32_t, uint32_t, StackQuality>;
using Sums = std::map<Key, std::pair<uint64_t, uint64_t>>;

Sums SumsOf(const Profile& profile) {
  Sums sums;
  for (const ProfileSample& sample : profile.samples) {
    auto& [weight, samples] = sums[{sample.thread, sample.event, sample.stack, sample.task, sample.quality}];
    weight += sample.weight, samples += sample.samples;
  }
  return sums;
}

TEST_CASE("sums by thread, event, stack, task and quality stay exactly", "[merge_samples]") {
  std::mt19937 random(GENERATE(range(1u, 20u)));
  const auto below = [&](uint64_t limit) { return random() % limit; };
  ProfileBuilder builder;
  builder.AddEvent({.name = "a"});
  builder.AddEvent({.name = "b"});
  std::array<uint32_t, 8> stacks{};
  for (uint32_t& stack : stacks) {
    stack =
        builder.Stack(ProfileStack::kRoot, builder.Function(std::string(1, static_cast<char>('a' + below(26))), "m"));
  }
  for (uint32_t i = 0; i < 5; ++i) builder.AddThread(1, i, "t");
  const uint32_t preempted = builder.AddWait({.preempted = true});
  const std::array<uint32_t, 3> tasks = {0, builder.String("path"), builder.String("mesh")};
  Profile& profile = builder.profile();
  uint64_t singles = 0, waits = 0;
  for (uint64_t turn = 0; turn < 20; ++turn) {
    const uint64_t count = below(300);
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t wait = ProfileSample::kNoWait;
      if (below(4) == 0)
        wait = below(2) == 0 ? preempted : builder.AddWait({.syscall = static_cast<int32_t>(below(300))});
      waits += wait != ProfileSample::kNoWait;
      builder.AddSample({.time_ns = 1 + below(10'000),
                         .weight = random(),
                         .samples = static_cast<uint32_t>(below(2)),
                         .thread = static_cast<uint32_t>(below(5)),
                         .stack = stacks[below(stacks.size())],
                         .wait = wait,
                         .event = static_cast<uint16_t>(below(2)),
                         .quality = static_cast<StackQuality>(below(4)),
                         .task = tasks[below(3)],
                         .task_number = below(100)});
      singles += profile.samples.back().samples;
    }
    const Sums before = SumsOf(profile);
    const auto single = [](const ProfileSample& sample) { return !sample.merged(); };
    const auto singles_before = std::count_if(profile.samples.begin(), profile.samples.end(), single);
    MergeOldest(profile, preempted);
    CHECK(SumsOf(profile) == before);
    CHECK(profile.Check() == absl::OkStatus());
    CHECK(std::count_if(profile.samples.begin(), profile.samples.end(), single) == singles_before / 2);
    CHECK(profile.waits[preempted].preempted);
  }
  uint64_t single_samples = 0, single_waits = 0, merged = 0;
  for (const ProfileSample& sample : profile.samples) {
    merged += sample.merged();
    if (sample.merged()) {
      CHECK((sample.wait == ProfileSample::kNoWait && sample.task_number == 0));
      continue;
    }
    single_samples += sample.samples;
    single_waits += sample.wait != ProfileSample::kNoWait;
  }
  CHECK(profile.accounting.times_forgotten == singles - single_samples);
  CHECK(profile.accounting.waits_forgotten == waits - single_waits);
  CHECK(merged <= 5 * 2 * 8 * 3 * 4);
  CHECK(profile.waits.size() <= single_waits + 1);
}

// Two events, three threads, two modules with many places each; the stack of a module as a whole is its first one.
TEST_CASE("the lightest rows keep their module, the heaviest their stacks, and sums stay exactly", "[merge_samples]") {
  std::mt19937 random(GENERATE(range(1u, 20u)));
  constexpr uint32_t kPlaces = 200, kModules = 2, kThreads = 3, kEvents = 2, kMaxRows = 100;
  ProfileBuilder builder;
  builder.AddEvent({.name = "a"});
  builder.AddEvent({.name = "b"});
  for (uint32_t i = 0; i < kThreads; ++i) builder.AddThread(1, i, "t");
  for (uint32_t i = 0; i < kModules * kPlaces; ++i)
    builder.Stack(ProfileStack::kRoot, builder.Location(i / kPlaces, i));
  const auto other_of = [](uint32_t stack) { return stack / kPlaces * kPlaces; };
  Profile& profile = builder.profile();
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint16_t event = random() % kEvents;
    builder.AddSample({.weight = (random() % 1000 + 1) * (event == 0 ? 1 : 1'000'000),
                       .thread = static_cast<uint32_t>(random() % kThreads),
                       .stack = static_cast<uint32_t>(random() % (kModules * kPlaces)),
                       .event = event,
                       .quality = random() % 2 == 0 ? StackQuality::kWhole : StackQuality::kLeafOnly});
  }
  builder.AddSample({.time_ns = 1, .weight = 1, .stack = 1, .quality = StackQuality::kWhole});  // a single one
  using ModuleKey = std::tuple<uint32_t, uint16_t, uint32_t>;
  const auto by_module = [&] {
    std::map<ModuleKey, std::pair<uint64_t, uint64_t>> sums;
    for (const ProfileSample& sample : profile.samples) {
      auto& [weight, samples] = sums[{sample.thread, sample.event, sample.stack / kPlaces}];
      weight += sample.weight, samples += sample.samples;
    }
    return sums;
  };
  const auto with_stack = [&] {
    uint64_t sum = 0;
    for (const ProfileSample& sample : profile.samples)
      sum += sample.quality == StackQuality::kWhole ? sample.samples : 0;
    return sum;
  };
  const auto before = by_module();
  const uint64_t stacks = with_stack();
  MergeLightest(profile, kMaxRows, other_of);
  CHECK(by_module() == before);
  CHECK(profile.samples.size() <= kMaxRows / 2 + 2 * kThreads * kEvents * kModules + 1);
  CHECK(profile.accounting.stacks_forgotten == stacks - with_stack());
  CHECK(profile.accounting.stacks_forgotten > 0);
  CHECK(profile.samples.back().time_ns == 1);
  CHECK(profile.samples.back().stack == 1);
  const std::vector<ProfileSample> kept = profile.samples;
  MergeLightest(profile, kept.size(), other_of);
  CHECK(profile.samples.size() == kept.size());
}

TEST_CASE("merged samples lose the memory that they touched, the others keep it", "[merge_samples]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  builder.AddThread(1, 1, "t");
  const uint32_t preempted = builder.AddWait({.preempted = true});
  for (uint64_t i = 0; i < 6; ++i) {
    builder.AddSample({.time_ns = i + 1, .weight = 1, .memory = builder.AddMemory({4096 * i, 4096 * i + 4096, 0})});
  }
  Profile& profile = builder.profile();
  MergeSamples(profile, preempted, [](const ProfileSample& sample) { return sample.time_ns % 2 == 0; });
  REQUIRE(profile.Check() == absl::OkStatus());
  REQUIRE((profile.samples.size() == 4 && profile.memory.size() == 3));
  CHECK((profile.samples[0].weight == 3 && profile.samples[0].memory == ProfileSample::kNoMemory));
  for (size_t i = 1; i < 4; ++i) {
    CHECK(profile.memory[profile.samples[i].memory].from == 4096 * (profile.samples[i].time_ns - 1));
  }
}

TEST_CASE("there may be nothing to merge", "[merge_samples]") {
  ProfileBuilder builder;
  const uint32_t preempted = builder.AddWait({.preempted = true});
  MergeOldest(builder.profile(), preempted);
  CHECK(builder.profile().samples.empty());
  CHECK(builder.profile().waits.size() == 1);
}

TEST_CASE("a number of samples that does not fit in one row is in two", "[merge_samples]") {
  constexpr uint32_t kSamples = 3'000'000'000;
  Profile profile;
  profile.events.resize(1);
  profile.threads.resize(1);
  profile.waits.resize(1);
  for (const uint32_t samples : {kSamples, kSamples, 5u}) {
    profile.samples.push_back({.weight = samples, .samples = samples});
  }
  MergeSamples(profile, 0, [](const ProfileSample&) { return false; });
  CHECK(profile.samples.size() == 2);
  CHECK(profile.Total(0) == Profile::Sum{2 * uint64_t{kSamples} + 5, 2 * uint64_t{kSamples} + 5});
}

}  // namespace
}  // namespace perfkit::session
