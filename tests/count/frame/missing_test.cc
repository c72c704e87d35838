// Snapshots in which events lack at random: a sum that lacks a part says so, and only such a sum does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/count/frame/zone_merge.h"
#include "src/count/frame/zone_tree.h"
#include "tests/count/frame/made_up_reader.h"

namespace perfkit::count {
namespace {

// What is true of one zone: which events lack in all of it, and in this frame; the frames that each event has.
struct Truth {
  uint32_t missing = 0, in_frame = 0;
  bool touched = false;
  std::array<uint64_t, kEvents> frames{};
};

// A tree whose snapshots lack events, and what has to be known of it.
class HoledZones {
 public:
  explicit HoledZones(uint64_t seed) : random_(seed), reader_(seed) {
    Read(tree.scratch());
    mark_missing_ = tree.scratch().missing;
    tree.BeginFrameAtScratch();
  }
  void Enter(const char* name) {
    if (open_.size() == 3) return;
    Snapshot* const begin = tree.Enter({name});
    Read(*begin);
    open_.push_back({(open_.empty() ? "" : open_.back().path) + "/" + name, begin->missing});
    truth[open_.back().path].touched = true;
  }
  void Leave() {
    if (open_.empty()) return;
    Read(tree.scratch());
    tree.Leave();
    truth[open_.back().path].in_frame |= open_.back().missing | tree.scratch().missing;
    open_.pop_back();
  }
  void Mark() {
    Read(tree.scratch());
    const uint32_t missing = tree.scratch().missing;
    for (Visit& visit : open_) {
      truth[visit.path].in_frame |= visit.missing | missing;
      visit.missing = missing;
    }
    truth[""].touched = true;
    truth[""].in_frame = mark_missing_ | missing;
    mark_missing_ = missing;
    tree.EndFrameAtScratch(number_++, kOneNsATick);
    for (auto& [path, zone] : truth) {
      if (!zone.touched) continue;
      for (size_t i = 0; i < kEvents; ++i) zone.frames[i] += (zone.in_frame >> i & 1) == 0;
      zone.missing |= zone.in_frame;
      last_missing[path] = zone.in_frame;
      zone.in_frame = 0;
      zone.touched = false;
    }
    for (const Visit& visit : open_) truth[visit.path].touched = true;
  }

  ZoneTree tree{{.events = kEvents, .multiplexable = 0b10}};
  std::map<std::string, Truth> truth;
  std::map<std::string, uint32_t> last_missing;

 private:
  struct Visit {
    std::string path;
    uint32_t missing;
  };
  void Read(Snapshot& out) {
    reader_.Work();
    out = reader_.now();
    out.times[1] = {out.ticks, out.ticks};
    out.missing = random_() % 8 == 0 ? static_cast<uint32_t>(random_()) & ((1u << kEvents) - 1) : 0;
  }

  std::mt19937_64 random_;
  MadeUpReader reader_;
  uint64_t number_ = 0;
  uint32_t mark_missing_ = 0;
  std::vector<Visit> open_;
};

HoledZones RandomZones(uint64_t seed) {
  std::mt19937_64 random(seed + 1000);
  HoledZones zones(seed);
  const std::vector<const char*> names = {"a", "b", "c"};
  for (int step = 0; step < 60; ++step) {
    const uint64_t what = random() % 8;
    if (what < 3) zones.Enter(names[random() % names.size()]);
    if (what >= 3 && what < 6) zones.Leave();
    if (what == 6) zones.Mark();
  }
  zones.Mark();
  return zones;
}

TEST_CASE("zone tree: a sum lacks an event exactly if one of its snapshots does") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    HoledZones zones = RandomZones(seed);
    for (size_t node = 0; node < zones.tree.size(); ++node) {
      const std::string path = PathOf(zones.tree, node);
      const Truth& truth = zones.truth[path];
      REQUIRE(zones.tree.total(node).missing == truth.missing);
      REQUIRE(zones.tree.last(node).missing == zones.last_missing[path]);
      for (size_t i = 0; i < kEvents; ++i) {
        if (i == 1) continue;  // multiplexed: also left out where it never ran
        REQUIRE(zones.tree.histogram(node, 1 + i).count() == truth.frames[i]);
      }
    }
  }
}

TEST_CASE("zone merge: what lacks on one thread lacks in the sum and in the self of its parent") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    HoledZones first = RandomZones(2 * seed), second = RandomZones(2 * seed + 1);
    ZoneMerge merge(kEvents);
    merge.Add(first.tree);
    merge.Add(second.tree);
    std::vector<std::string> paths;
    for (size_t node = 0; node < merge.nodes().size(); ++node) {
      const ZoneMerge::Node& zone = merge.nodes()[node];
      paths.push_back(node == 0 ? "" : paths[zone.parent] + "/" + zone.name);
      REQUIRE(zone.total.missing == (first.truth[paths[node]].missing | second.truth[paths[node]].missing));
    }
    for (size_t node = 1; node < merge.nodes().size(); ++node) {
      const ZoneMerge::Node& zone = merge.nodes()[node];
      REQUIRE((zone.total.missing & ~merge.Self(zone.parent).missing) == 0);
    }
  }
}

TEST_CASE("zone tree: a gap in the records is a hole in its frame and zone, and in no later one") {
  ZoneTree tree({.events = 2});
  tree.SetGapped(0b01);
  Snapshot at{};
  // As a set's snapshots are after `gaps` gaps.
  const auto read = [&](uint32_t gaps) -> const Snapshot& {
    at.missing = gaps == 0 ? 0 : gaps << detail::kGapShift | 0b01;
    for (uint64_t& value : at.values) value += 10;
    return at;
  };
  const auto frame = [&](uint32_t gaps_before, uint32_t gaps_after, uint64_t number) {
    *tree.Enter({"zone"}) = read(gaps_before);
    tree.scratch() = read(gaps_after);
    tree.Leave();
    tree.scratch() = read(gaps_after);
    tree.EndFrameAtScratch(number, kOneNsATick);
  };
  tree.scratch() = read(0);
  tree.BeginFrameAtScratch();
  frame(0, 0, 0);
  CHECK((tree.last(0).missing == 0 && tree.last(1).missing == 0));
  frame(0, 1, 1);
  CHECK((tree.last(0).missing == 0b01 && tree.last(1).missing == 0b01));
  frame(1, 1, 2);
  CHECK((tree.last(0).missing == 0 && tree.last(1).missing == 0));
  CHECK((tree.last(0).values[0] == 30 && tree.last(1).values[0] == 10));
  frame(2, 2, 3);  // before the zone
  CHECK((tree.last(0).missing == 0b01 && tree.last(1).missing == 0));
  frame(detail::kMaxGaps, detail::kMaxGaps, 4);  // gaps are not known any more
  CHECK((tree.last(0).missing == 0b01 && tree.last(1).missing == 0b01));
  // A sum with a hole is no sum.
  CHECK((tree.total(0).missing == 0b01 && tree.total(1).missing == 0b01));
  CHECK(tree.histogram(0, 1).count() == 2);
  CHECK(tree.histogram(1, 1).count() == 3);
  CHECK(tree.histogram(0, 2).count() == 5);
}

TEST_CASE("zone tree: an event that was never on the PMU in a frame lacks in its record, and in no sum") {
  ZoneTree tree({.events = 1, .multiplexable = 1});
  Snapshot at{};
  tree.scratch() = at;
  tree.BeginFrameAtScratch();
  FrameRecord visit;
  // A frame of 100 ns, with a zone in all of it.
  const auto frame = [&](uint64_t counted, uint64_t running_ns, uint64_t number) {
    const Snapshot begin = at;
    *tree.Enter({"zone"}) = begin;
    at.ticks += 100;
    at.values[0] += counted;
    at.times[0].enabled_ns += 100;
    at.times[0].running_ns += running_ns;
    tree.scratch() = at;
    tree.Leave();
    tree.CountSince(begin, kOneNsATick, visit);
    tree.EndFrameAtScratch(number, kOneNsATick);
  };
  const auto missing_is = [&](uint32_t mask) {
    return tree.last(0).missing == mask && tree.last(1).missing == mask && visit.missing == mask;
  };
  frame(7, 100, 0);
  CHECK(missing_is(0));
  frame(0, 0, 1);
  CHECK(missing_is(1));
  frame(5, 50, 2);  // For a part of it.
  CHECK(missing_is(0));
  CHECK((tree.last(0).values[0] == 5 && tree.last(1).values[0] == 5 && visit.values[0] == 5));
  for (const size_t node : {0, 1}) {
    CHECK(tree.total(node).missing == 0);
    CHECK(tree.total(node).values[0] == 12);
    CHECK(tree.total(node).times[0].enabled_ns == 300);
    CHECK(tree.histogram(node, 1).count() == 2);
  }
}

}  // namespace
}  // namespace perfkit::count
