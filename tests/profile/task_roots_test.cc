// Tasks as the outermost calls of stacks.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "perfkit/report.h"
#include "tests/profile/random_profile.h"

namespace perfkit::profile {
namespace {

using Names = std::vector<std::string>;

// The tasks of these tests, and their calls.
const std::map<std::string, Names> kTaskCalls = {
    {"", {}},
    {"level", {"level"}},
    {"level/load", {"level", "level/load"}},
    {"level/load > file", {"level", "level/load", "file"}},
    {"level > file/parse/json", {"level", "file", "file/parse", "file/parse/json"}},
    {"(more tasks) > file", {"(more tasks)", "file"}},
    {"/odd//names/", {"/odd", "/odd/", "/odd//names", "/odd//names/"}},
};

Profile WithTasks(uint32_t seed) {
  Profile profile = RandomProfile(seed).Make();
  std::vector<uint32_t> tasks;
  for (const auto& [task, calls] : kTaskCalls) {
    tasks.push_back(task.empty() ? 0 : static_cast<uint32_t>(profile.strings.size()));
    if (!task.empty()) profile.strings.push_back(task);
  }
  std::mt19937 random(seed);
  for (ProfileSample& sample : profile.samples) sample.task = tasks[random() % tasks.size()];
  return profile;
}

TEST_CASE("a stack that is rooted at its task has the task's calls, then its own", "[profile][tasks]") {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Profile profile = WithTasks(seed), rooted = RootedAtTasks(profile);
    REQUIRE(rooted.Check() == absl::OkStatus());
    REQUIRE(rooted.samples.size() == profile.samples.size());
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      ProfileSample sample = rooted.samples[i];
      Names expected = kTaskCalls.at(profile.strings[sample.task]);
      const Names own = NamesOf(profile, profile.samples[i].stack);
      if (own.empty()) expected.clear();
      expected.insert(expected.end(), own.begin(), own.end());
      CHECK(NamesOf(rooted, sample.stack) == expected);
      sample.stack = profile.samples[i].stack;
      CHECK(sample.weight == profile.samples[i].weight);
      CHECK(sample.quality == profile.samples[i].quality);
    }
    for (size_t event = 0; event < profile.events.size(); ++event) CHECK(rooted.Total(event) == profile.Total(event));
    // Equal stacks of a task are one.
    std::set<std::pair<uint32_t, uint32_t>> before, after;
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      before.emplace(profile.samples[i].task, profile.samples[i].stack);
      after.emplace(profile.samples[i].task, rooted.samples[i].stack);
    }
    CHECK(before.size() == after.size());
  }
}

TEST_CASE("the total of a task's call is that of all that it awaits", "[profile][tasks]") {
  const Profile profile = WithTasks(7);
  std::map<std::string, uint64_t> expected, found;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != 0 || sample.stack == ProfileStack::kRoot) continue;
    const Names& calls = kTaskCalls.at(profile.strings[sample.task]);
    if (!calls.empty()) expected[calls[0]] += sample.weight;
  }
  const Profile rooted = RootedAtTasks(profile);
  const CallTree tree(rooted);
  const CallTree::Node& root = tree.nodes()[0];
  for (uint32_t i = root.first_child; i < root.first_child + root.children; ++i) {
    const std::string name = FunctionName(rooted, tree.functions()[tree.nodes()[i].function]);
    if (expected.count(name) != 0) found[name] += tree.Total(i, 0).weight;
  }
  CHECK(found == expected);
}

TEST_CASE("a profile without tasks is rooted at none", "[profile][tasks]") {
  Profile profile = RandomProfile(1).Make();
  for (ProfileSample& sample : profile.samples) sample.task = 0;
  const Profile rooted = RootedAtTasks(profile);
  CHECK(rooted.stacks.size() == profile.stacks.size());
  CHECK(rooted.modules.size() == profile.modules.size());
  CHECK(SumsByStack(rooted) == SumsByStack(profile));
}

TEST_CASE("rooted profiles merge as the profiles do", "[profile][tasks]") {
  const Profile profile = WithTasks(3);
  Profile merged = profile, rooted = RootedAtTasks(profile);
  merged.Merge(WithTasks(4));
  rooted.Merge(RootedAtTasks(WithTasks(4)));
  REQUIRE(rooted.Check() == absl::OkStatus());
  CHECK(SumsByStack(rooted) == SumsByStack(RootedAtTasks(merged)));
  const Profile again = RootedAtTasks(merged);
  Profile self = again;
  self.Merge(again);
  CHECK(self.locations.size() == again.locations.size());
}

}  // namespace
}  // namespace perfkit::profile
