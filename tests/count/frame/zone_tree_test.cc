// The laws of zones under random sequences, against a model that is too simple to be wrong.
#include "src/count/frame/zone_tree.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/count/frame/made_up_reader.h"

namespace perfkit::count {
namespace {

// Each path of zones has a sum; every piece of work is added to every path that is open when it is done.
class Model {
 public:
  void Enter(const std::string& name) { open_.push_back(open_.back() + "/" + name); }
  void Leave() { open_.pop_back(); }
  void Did(const Snapshot& before, const Snapshot& after) {
    for (const std::string& path : open_) {
      total[path].ticks += after.ticks - before.ticks;
      for (size_t i = 0; i < kEvents; ++i) total[path].values[i] += after.values[i] - before.values[i];
    }
  }
  size_t depth() const { return open_.size() - 1; }
  std::map<std::string, Sums> total;

 private:
  std::vector<std::string> open_{""};
};

TEST_CASE("zone tree: random zones and marks agree with the model, exactly", "[slow]") {
  const std::vector<const char*> names = {"physics", "solve", "draw", "audio", "net"};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    MadeUpReader reader(seed + 1000);
    ZoneTree tree({.events = kEvents});
    Model model;
    Snapshot at{};
    reader.Read(at);
    BeginFrame(tree, at);
    uint64_t frames = 0;
    for (int step = 0; step < 4000; ++step) {
      const Snapshot before = reader.now();
      reader.Work();
      model.Did(before, reader.now());
      const uint64_t what = random() % 16;
      if (what < 8 && model.depth() < 4) {  // 5 + 25 + 125 zones at most before the limit: 3 levels
        if (model.depth() == 3) continue;
        const char* name = names[random() % names.size()];
        model.Enter(name);
        Enter(tree, reader, name);
      } else if (what < 15 && model.depth() > 0) {
        model.Leave();
        Leave(tree, reader);
      } else if (what == 15) {
        reader.Read(at);
        const FrameRecord& record = EndFrame(tree, at, frames);
        REQUIRE(record.number == frames++);
        CheckLaw(tree);
      }
    }
    reader.Read(at);
    EndFrame(tree, at, frames);
    CheckLaw(tree);
    REQUIRE(tree.dropped() == 0);
    REQUIRE(tree.mismatched() == 0);
    for (size_t node = 0; node < tree.size(); ++node) {
      const Sums& expected = model.total[PathOf(tree, node)];
      REQUIRE(tree.total(node).ticks == expected.ticks);
      for (size_t i = 0; i < kEvents; ++i) REQUIRE(tree.total(node).values[i] == expected.values[i]);
    }
  }
}

TEST_CASE("zone tree: a zone open across a mark is split at that snapshot") {
  MadeUpReader reader(1);
  ZoneTree tree({.events = kEvents});
  Snapshot start{}, mark{}, end{};
  reader.Read(start);
  BeginFrame(tree, start);
  Enter(tree, reader, "long");
  reader.Work();
  reader.Read(mark);
  EndFrame(tree, mark, 0);
  CHECK(tree.last(1).values[0] == mark.values[0] - start.values[0]);
  CHECK(tree.last(1).wall_ns == mark.ticks - start.ticks);
  reader.Work();
  Leave(tree, reader);
  reader.Read(end);
  EndFrame(tree, end, 1);
  CHECK(tree.last(1).number == 1);
  CHECK(tree.last(1).values[0] == end.values[0] - mark.values[0]);
  CHECK(tree.total(1).calls == 1);
  CHECK(tree.frames(1) == 2);
  CHECK(tree.histogram(1, 1).count() == 2);
}

TEST_CASE("zone tree: only zones of the frame enter their histograms") {
  MadeUpReader reader(2);
  ZoneTree tree({.events = kEvents});
  Snapshot at{};
  BeginFrame(tree, at);
  for (uint64_t frame = 0; frame < 100; ++frame) {
    if (frame % 10 == 0) {
      Enter(tree, reader, "rare");
      Leave(tree, reader);
    }
    reader.Read(at);
    EndFrame(tree, at, frame);
  }
  CHECK(tree.frames(ZoneTree::kRoot) == 100);
  CHECK(tree.frames(1) == 10);
  CHECK(tree.histogram(1, 0).count() == 10);
  CHECK(tree.last(1).number == 90);
}

TEST_CASE("zone tree: equal names at different addresses are one zone") {
  MadeUpReader reader(3);
  ZoneTree tree({.events = kEvents});
  const std::string a = "same", b = "same", c = "other";
  for (const std::string* name : {&a, &b, &a, &c, &b}) {
    Enter(tree, reader, name->c_str());
    Leave(tree, reader);
  }
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.size() == 3);
  CHECK(std::string(tree.name(1)) == "same");
}

TEST_CASE("zone tree: each of many siblings is found wherever its name is") {
  MadeUpReader reader(8);
  ZoneTree tree({.events = kEvents, .max_zones = 1000});
  // One address a text would fill the tree's index at the most; these are many more.
  std::vector<std::vector<std::string>> copies;
  for (int copy = 0; copy < 5; ++copy) {
    std::vector<std::string>& names = copies.emplace_back();
    for (int i = 0; i < 1000; ++i) names.push_back("zone " + std::to_string(i));
  }
  for (int round = 0; round < 2; ++round) {
    for (const std::vector<std::string>& names : copies) {
      for (const std::string& name : names) {
        Enter(tree, reader, name.c_str());
        Leave(tree, reader);
      }
    }
  }
  EndFrame(tree, reader.now(), 0);
  REQUIRE(tree.size() == 1001);
  REQUIRE(tree.dropped() == 0);
  for (size_t node = 1; node < tree.size(); ++node) {
    REQUIRE(tree.name(node) == copies[0][node - 1]);
    REQUIRE(tree.total(node).calls == 2 * copies.size());
  }
}

TEST_CASE("zone tree: one name below many parents is a zone of each") {
  MadeUpReader reader(9);
  ZoneTree tree({.events = kEvents, .max_zones = 1000});
  std::vector<std::string> parents;
  for (int i = 0; i < 500; ++i) parents.push_back(std::to_string(i));
  for (int round = 0; round < 2; ++round) {
    for (const std::string& parent : parents) {
      Enter(tree, reader, parent.c_str());
      Enter(tree, reader, "same");
      Leave(tree, reader);
      Leave(tree, reader);
    }
  }
  EndFrame(tree, reader.now(), 0);
  REQUIRE(tree.size() == 1001);
  for (size_t node = 1; node < tree.size(); ++node) REQUIRE(tree.total(node).calls == 2);
}

TEST_CASE("zone tree: a name may die after its zone was seen") {
  MadeUpReader reader(3);
  ZoneTree tree({.events = kEvents});
  {
    const std::string name(200, 'n');
    Enter(tree, reader, name.c_str());
    Leave(tree, reader);
  }
  EndFrame(tree, reader.now(), 0);
  CHECK(std::string(tree.name(1)) == std::string(200, 'n'));
}

TEST_CASE("zone tree: names that differ only at their end are zones of their own") {
  MadeUpReader reader(3);
  ZoneTree tree({.events = kEvents, .max_zones = 600});
  constexpr size_t kLongest = 300;
  std::vector<std::string> names;
  for (size_t size = 1; size <= kLongest; ++size) {
    names.push_back(std::string(size - 1, 'n') + "a");
    names.push_back(std::string(size - 1, 'n') + "b");
  }
  for (const std::string& name : names) {
    Enter(tree, reader, name.c_str());
    Leave(tree, reader);
  }
  EndFrame(tree, reader.now(), 0);
  REQUIRE(tree.size() == 1 + names.size());
  for (size_t node = 1; node < tree.size(); ++node) REQUIRE(tree.name(node) == names[node - 1]);
}

TEST_CASE("zone tree: what is too deep or too many is dropped, counted, and stays in the parent") {
  MadeUpReader reader(4);
  SECTION("deep") {
    ZoneTree tree({.events = kEvents, .max_depth = 3});
    for (int i = 0; i < 10; ++i) {
      Enter(tree, reader, "down");
      reader.Work();
    }
    CHECK(tree.depth() == 10);
    for (int i = 0; i < 10; ++i) Leave(tree, reader);
    CHECK(tree.depth() == 0);
    EndFrame(tree, reader.now(), 0);
    CHECK(tree.dropped() == 7);
    CHECK(tree.mismatched() == 0);
    CHECK(tree.size() == 4);
    CHECK(tree.total(1).ticks == tree.total(0).ticks);
    CheckLaw(tree);
  }
  SECTION("many") {
    ZoneTree tree({.events = kEvents, .max_zones = 4});
    std::vector<std::string> names;
    for (int i = 0; i < 10; ++i) names.push_back("zone " + std::to_string(i));
    for (const std::string& name : names) {
      Enter(tree, reader, name.c_str());
      Enter(tree, reader, "inner");  // below a dropped one: dropped as well, not hung on its parent
      reader.Work();
      Leave(tree, reader);
      Leave(tree, reader);
    }
    CHECK(tree.depth() == 0);
    EndFrame(tree, reader.now(), 0);
    CHECK(tree.size() == 5);
    CHECK(tree.dropped() == 16);
    CheckLaw(tree);
  }
  SECTION("without a name") {
    ZoneTree tree({.events = kEvents});
    Enter(tree, reader, nullptr);
    Leave(tree, reader);
    EndFrame(tree, reader.now(), 0);
    CHECK(tree.dropped() == 1);
    CHECK(tree.size() == 1);
  }
}

TEST_CASE("zone tree: mismatched leaves are counted, and harm nothing") {
  MadeUpReader reader(5);
  ZoneTree tree({.events = kEvents});
  Leave(tree, reader);
  Enter(tree, reader, "outer");
  const uint64_t outer = tree.top_entry();
  Enter(tree, reader, "never left");
  Enter(tree, reader, "neither");
  reader.Work();
  reader.Read(tree.scratch());
  CHECK(!tree.UnwindTo(outer + 1000));
  CHECK(!tree.UnwindTo(0));
  REQUIRE(tree.UnwindTo(outer));
  CHECK(tree.top_entry() == outer);
  Leave(tree, reader);
  CHECK(tree.depth() == 0);
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.mismatched() == 3);
  CHECK(tree.total(3).ticks == tree.total(0).ticks);
  CheckLaw(tree);
}

TEST_CASE("zone tree: a hole is told in the record and kept out of the histogram") {
  ZoneTree tree({.events = 2, .never = 0b10});
  Snapshot at{};
  BeginFrame(tree, at);
  at.values[0] = 10;
  EndFrame(tree, at, 0);
  CHECK(tree.last(0).missing == 0b10);
  at.missing = 0b11;
  EndFrame(tree, at, 1);
  CHECK(tree.last(0).missing == 0b11);
  at.missing = 0b10;
  at.values[0] = 30;
  EndFrame(tree, at, 2);  // begins at a snapshot with a hole
  CHECK(tree.last(0).missing == 0b11);
  EndFrame(tree, at, 3);
  CHECK(tree.last(0).missing == 0b10);
  CHECK(tree.histogram(0, 1).count() == 2);
  CHECK(tree.histogram(0, 2).count() == 0);
  CHECK(tree.histogram(0, 0).count() == 4);
}

TEST_CASE("zone tree: multiplexed values enter the histogram scaled") {
  ZoneTree tree({.events = 1, .multiplexable = 0b1});
  Snapshot at{};
  BeginFrame(tree, at);
  at.values[0] = 10;
  at.times[0] = {100, 50};
  EndFrame(tree, at, 0);
  CHECK(tree.histogram(0, 1).max() == 20);
  CHECK(tree.total(0).values[0] == 10);
  CHECK(tree.total(0).times[0].running_ns == 50);
  at.times[0] = {200, 50};  // not once on a counter: no estimate
  EndFrame(tree, at, 1);
  CHECK(tree.histogram(0, 1).count() == 1);
}

TEST_CASE("zone tree: a dropped frame leaves no trace") {
  MadeUpReader reader(7);
  ZoneTree tree({.events = kEvents});
  BeginFrame(tree, reader.now());
  Enter(tree, reader, "zone");
  reader.Work();
  tree.DropFrame();
  CHECK(tree.depth() == 0);
  BeginFrame(tree, reader.now());
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.total(0).ticks == 0);
  CHECK(tree.total(1).ticks == 0);
  CHECK(tree.frames(1) == 0);
}

}  // namespace
}  // namespace perfkit::count
