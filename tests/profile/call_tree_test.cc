// Call trees and flat profiles: what adds up, against sums by name.
#include <catch2/catch.hpp>

#include "perfkit/report.h"
#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

constexpr uint32_t kSeeds = 12;

// In each node, self + the children's totals = total; the root's total is the profile's.
void CheckSums(const Profile& profile, const CallTree& tree) {
  for (size_t event = 0; event < profile.events.size(); ++event) {
    CHECK(tree.Total(0, event) == profile.Total(event));
    for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
      const CallTree::Node& node = tree.nodes()[i];
      Profile::Sum sum = tree.Self(i, event);
      for (uint32_t child = node.first_child; child < node.first_child + node.children; ++child) {
        REQUIRE(tree.nodes()[child].parent == i);
        sum.weight += tree.Total(child, event).weight;
        sum.samples += tree.Total(child, event).samples;
      }
      REQUIRE(sum == tree.Total(i, event));
    }
  }
}

void CheckOrder(const CallTree& tree, size_t event) {
  for (uint32_t i = 1; i < tree.nodes().size(); ++i) {
    REQUIRE(tree.nodes()[i].parent < i);
    const bool sibling = i > 1 && tree.nodes()[i - 1].parent == tree.nodes()[i].parent;
    if (sibling) REQUIRE(tree.Total(i - 1, event).weight >= tree.Total(i, event).weight);
  }
}

TEST_CASE("in a call tree children and self add up, and the root is the whole", "[profile][call_tree]") {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomProfile(seed).Make();
    REQUIRE(profile.Check() == absl::OkStatus());
    for (const bool bottom_up : {false, true}) {
      for (const bool by_thread : {false, true}) {
        for (const uint32_t max_depth : {0u, 1u, 3u}) {
          const CallTree tree(profile,
                              {.bottom_up = bottom_up, .by_thread = by_thread, .event = 1, .max_depth = max_depth});
          CheckSums(profile, tree);
          CheckOrder(tree, 1);
        }
      }
    }
  }
}

TEST_CASE("a call tree has each path of names once, with its samples", "[profile][call_tree]") {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomProfile(seed).Make();
    for (const bool by_thread : {false, true}) {
      SumsByName expected, found;
      for (const ProfileSample& sample : profile.samples) {
        std::string path = by_thread ? std::to_string(sample.thread) : "";
        for (const std::string& name : NamesOf(profile, sample.stack)) path += ";" + name;
        AddTo(expected, sample.event, path, {sample.weight, sample.samples});
      }
      const CallTree tree(profile, {.by_thread = by_thread});
      std::vector<std::string> paths{""};
      for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
        const CallTree::Node& node = tree.nodes()[i];
        if (i != 0) {
          paths.push_back(paths[node.parent] + (node.function == CallTree::kNoFunction
                                                    ? std::to_string(node.thread)
                                                    : ";" + FunctionName(profile, tree.functions()[node.function])));
        }
        for (size_t event = 0; event < profile.events.size(); ++event) {
          const Profile::Sum self = tree.Self(i, event);
          if (self.weight == 0) continue;
          CHECK(!found.contains({event, paths[i]}));
          AddTo(found, event, paths[i], self);
        }
      }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a bottom-up tree begins with the functions' selfs", "[profile][call_tree]") {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomProfile(seed).Make();
    SumsByName expected, found;
    for (const ProfileSample& sample : profile.samples) {
      const std::vector<std::string> names = NamesOf(profile, sample.stack);
      if (!names.empty()) AddTo(expected, sample.event, names.back(), {sample.weight, sample.samples});
    }
    const CallTree tree(profile, {.bottom_up = true});
    const CallTree::Node& root = tree.nodes()[0];
    for (uint32_t i = root.first_child; i < root.first_child + root.children; ++i) {
      const std::string name = FunctionName(profile, tree.functions()[tree.nodes()[i].function]);
      for (size_t event = 0; event < profile.events.size(); ++event) {
        if (tree.Total(i, event).weight != 0) AddTo(found, event, name, tree.Total(i, event));
      }
    }
    CHECK(found == expected);
  }
}

// The calls of a stack as the rows of a flat profile, outermost first.
std::vector<std::string> KeysOf(const Profile& profile, const ProfileSample& sample, ReportKey key) {
  if (key == ReportKey::kThread) return {std::to_string(sample.thread)};
  if (key == ReportKey::kTask) return {profile.strings[sample.task]};
  if (key == ReportKey::kFunction) return NamesOf(profile, sample.stack);
  std::vector<std::string> keys;
  for (uint32_t at = sample.stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) {
    const uint32_t location = profile.stacks[at].location, module = profile.locations[location].module;
    const std::string path = module == ProfileLocation::kNoModule ? "" : profile.strings[profile.modules[module].path];
    const bool by_module = key == ReportKey::kModule;
    if (profile.CallsAt(location).empty()) keys.push_back(by_module ? path : profile.UnnamedCode(location));
    for (const ProfileCall& call : profile.CallsAt(location)) {
      keys.push_back(by_module ? path : profile.strings[call.file] + ":" + std::to_string(call.line));
    }
  }
  return {keys.rbegin(), keys.rend()};
}

std::string KeyOf(const Profile& profile, const FlatProfile::Row& row, ReportKey key) {
  switch (key) {
    case ReportKey::kThread: return std::to_string(row.thread);
    case ReportKey::kTask: return profile.strings[row.task];
    case ReportKey::kModule:
      return row.module == ProfileLocation::kNoModule ? "" : profile.strings[profile.modules[row.module].path];
    case ReportKey::kLine:
      if (row.function.line != 0) {
        return profile.strings[row.function.file] + ":" + std::to_string(row.function.line);
      }
      break;
    case ReportKey::kFunction: break;
  }
  return FunctionName(profile, row.function);
}

void CheckFlatProfile(const Profile& profile, const FlatProfileOptions& options) {
  SumsByName self, total, found_self, found_total;
  const auto prefix = [&](uint32_t thread) { return options.by_thread ? std::to_string(thread) + "/" : ""; };
  for (const ProfileSample& sample : profile.samples) {
    std::vector<std::string> keys = KeysOf(profile, sample, options.key);
    for (std::string& key : keys) key = prefix(sample.thread) + key;
    const Profile::Sum sum{sample.weight, sample.samples};
    if (!keys.empty()) AddTo(self, sample.event, keys.back(), sum);
    for (const std::string& name : std::set(keys.begin(), keys.end())) AddTo(total, sample.event, name, sum);
  }
  const FlatProfile flat(profile, options);
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const std::string name = prefix(flat.rows()[i].thread) + KeyOf(profile, flat.rows()[i], options.key);
    for (size_t event = 0; event < profile.events.size(); ++event) {
      if (flat.Self(i, event).weight != 0) AddTo(found_self, event, name, flat.Self(i, event));
      if (flat.Total(i, event).weight != 0) AddTo(found_total, event, name, flat.Total(i, event));
    }
    if (i != 0) CHECK(flat.Self(i - 1, options.event).weight >= flat.Self(i, options.event).weight);
  }
  CHECK(found_self == self);
  CHECK(found_total == total);
}

TEST_CASE("a flat profile's self and total are sums over samples, recursion counted once", "[profile][flat]") {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomProfile(seed).Make();
    for (const ReportKey key : {ReportKey::kFunction, ReportKey::kModule, ReportKey::kLine}) {
      CheckFlatProfile(profile, {.key = key, .event = 2});
      CheckFlatProfile(profile, {.key = key, .event = 2, .by_thread = true});
    }
    CheckFlatProfile(profile, {.key = ReportKey::kThread, .event = 2});
    CheckFlatProfile(profile, {.key = ReportKey::kTask, .event = 2});
  }
}

TEST_CASE("functions without lines are one by name, in a table of lines, too", "[profile][flat]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "app");
  for (const char* const path : {"/before/app", "/after/app"}) {
    builder.AddSample({.time_ns = 1,
                       .weight = 1,
                       .stack = builder.Stack(ProfileStack::kRoot, builder.Function("f", path)),
                       .quality = StackQuality::kWhole});
  }
  const Profile profile = builder.Take();
  for (const ReportKey key : {ReportKey::kFunction, ReportKey::kLine}) {
    CHECK(FlatProfile(profile, {.key = key}).rows().size() == 2);
    CHECK(FlatProfile(profile, {.key = key, .by_name = true}).rows().size() == 1);
  }
}

TEST_CASE("a function's line is the one where most of its own samples are", "[profile][flat]") {
  ProfileBuilder builder;
  const uint32_t module = builder.Module("/bin/app");
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "app");
  for (uint32_t line = 1; line <= 3; ++line) {
    const uint32_t at = builder.Location(module, line);
    const ProfileCall call{.function = builder.String("f"), .file = builder.String("f.cc"), .line = line};
    builder.SetCalls(at, std::span(&call, 1));
    builder.AddSample({.time_ns = line,
                       .weight = line == 2 ? 10u : 1u,
                       .stack = builder.Stack(ProfileStack::kRoot, at),
                       .quality = StackQuality::kWhole});
  }
  const Profile profile = builder.Take();
  const FlatProfile flat(profile);
  REQUIRE(flat.rows().size() == 1);
  CHECK(flat.rows()[0].function.line == 2);
  CHECK(profile.strings[flat.rows()[0].function.file] == "f.cc");
}

TEST_CASE("an empty profile has an empty tree", "[profile][call_tree]") {
  const Profile profile;
  CHECK(CallTree(profile).nodes().size() == 1);
  CHECK(FlatProfile(profile).rows().empty());
}

}  // namespace
}  // namespace perfkit::profile
