// A thread's log tells the same as its tree, whenever it begins and whatever it loses.
#include "src/count/frame/zone_log.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/count/frame/made_up_reader.h"

namespace perfkit::count {
namespace {

constexpr uint64_t kEpoch = 7;

// A tree with its log, in the order in which FrameCounterImpl calls both.
class LoggedTree {
 public:
  LoggedTree(uint64_t seed, size_t log_words)
      : reader_(seed), tree({.events = kEvents, .max_zones = 400, .max_depth = 4}), log(tree, log_words) {
    Begin();
  }
  void Begin() {
    reader_.Work();
    tree.scratch() = reader_.now();
    tree.BeginFrameAtScratch();
  }
  void Enter(const char* name) {
    reader_.Work();
    if (Snapshot* const begin = tree.Enter({name}); begin != nullptr) reader_.Read(*begin);
    log.Follow(tree, 0);
  }
  void Leave() {
    reader_.Work();
    log.Follow(tree, 0);
    uint64_t ticks = 0;
    if (!tree.SkipLeave()) {
      reader_.Read(tree.scratch());
      ticks = tree.scratch().ticks;
      tree.Leave();
    }
    log.Follow(tree, ticks);
  }
  // Leaves everything and ends the frame, so that the totals are closed.
  void Close() {
    while (tree.depth() != 0) Leave();
    reader_.Work();
    tree.scratch() = reader_.now();
    tree.EndFrameAtScratch(0, kOneNsATick);
  }

 private:
  MadeUpReader reader_;

 public:
  ZoneTree tree;
  ZoneLog log;
};

// What a log says: the ticks of each path, in all visits of it.
struct Told {
  std::map<std::string, uint64_t> ticks;
  uint64_t records = 0, lost = 0;
  struct Open {
    std::string path;
    uint64_t begin_ticks = 0;
    bool abandoned = false;
  };
  std::vector<Open> open;

  void Read(ZoneLog& log, uint64_t epoch = kEpoch) {
    log.Read(epoch, [&](const ZoneRecord& record) { Add(log, record); });
  }
  void Add(const ZoneLog& log, const ZoneRecord& record) {
    ++records;
    if (record.kind == ZoneRecordKind::kEnter) {
      const std::string around = open.empty() ? "" : open.back().path;
      REQUIRE(log.zone(record.id).name != nullptr);
      open.push_back({around + "/" + log.zone(record.id).name, record.words[0]});
    } else if (record.kind == ZoneRecordKind::kLeave) {
      REQUIRE(!open.empty());
      REQUIRE(record.words[0] >= open.back().begin_ticks);
      if (!open.back().abandoned) ticks[open.back().path] += record.words[0] - open.back().begin_ticks;
      open.pop_back();
    } else if (record.kind == ZoneRecordKind::kAbandon) {
      open.at(record.words[0]).abandoned = true;
    } else if (record.kind == ZoneRecordKind::kGap) {
      open.clear();
      lost += record.words[2];
    }
  }
};

const char* const kNames[] = {"a", "b", "c"};

TEST_CASE("a log has each zone's time, to the tick", "[frame][recording]") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    LoggedTree zones(seed, 1 << 12);
    zones.log.Start(kEpoch);
    Told told;
    for (int i = 0; i < 2000; ++i) {
      if (random() % 2 == 0) {
        zones.Enter(kNames[random() % 3]);
      } else {
        zones.Leave();  // also without a zone
      }
      if (random() % 50 == 0) told.Read(zones.log);
    }
    zones.Close();
    told.Read(zones.log);
    CHECK(told.open.empty());
    for (size_t node = 1; node < zones.tree.size(); ++node) {
      CHECK(told.ticks[PathOf(zones.tree, node)] == zones.tree.total(node).ticks);
    }
  }
}

TEST_CASE("a log that begins inside zones begins with them", "[frame][recording]") {
  LoggedTree zones(1, 1 << 10);
  zones.Enter("a");
  zones.Enter("b");
  zones.log.Start(kEpoch);
  zones.Leave();
  Told told;
  told.Read(zones.log);
  REQUIRE(told.open.size() == 1);
  CHECK(told.open[0].path == "/a");
  CHECK(told.ticks.count("/a/b") == 1);
  zones.Close();
  told.Read(zones.log);
  CHECK(told.ticks["/a"] == zones.tree.total(1).ticks);
  CHECK(told.ticks["/a/b"] == zones.tree.total(2).ticks);
}

TEST_CASE("what a log has no room for is counted, and the zones that are open are told again", "[frame][recording]") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    LoggedTree zones(seed, 256);
    zones.log.Start(kEpoch);
    Told told;
    bool was_lost = false;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 400; ++i) {
        if (zones.tree.depth() < 4 && random() % 2 == 0) {
          zones.Enter(kNames[random() % 3]);
        } else {
          zones.Leave();
        }
      }
      was_lost = was_lost || zones.log.CurrentLoss().records != 0;
      told.Read(zones.log);
      zones.Enter("d");  // there is room again
      told.Read(zones.log);
      CHECK(zones.log.CurrentLoss().records == 0);
      REQUIRE(told.open.size() == zones.tree.open_depth());
      for (size_t depth = 1; depth <= told.open.size(); ++depth) {
        CHECK(told.open[depth - 1].path == PathOf(zones.tree, zones.tree.OpenAt(depth).zone));
      }
    }
    CHECK(was_lost);
    CHECK(told.lost > 0);
  }
}

TEST_CASE("a zone that ends on another thread is said to, and its neighbours keep their times", "[frame][recording]") {
  LoggedTree zones(3, 1 << 10);
  zones.log.Start(kEpoch);
  zones.Enter("a");
  zones.Enter("b");
  const uint64_t entry = zones.tree.top_entry();
  zones.Enter("c");
  zones.log.Abandon(entry);
  zones.tree.Abandon(entry);  // stays below c
  zones.log.Follow(zones.tree, 0);
  Told told;
  told.Read(zones.log);
  REQUIRE(told.open.size() == 3);
  CHECK(told.open[1].abandoned);
  zones.Leave();
  zones.tree.PopAbandoned();
  zones.log.Follow(zones.tree, 0);
  zones.Close();
  told.Read(zones.log);
  CHECK(told.open.empty());
  CHECK(told.ticks.count("/a/b") == 0);
  CHECK(told.ticks["/a/b/c"] == zones.tree.total(3).ticks);
  CHECK(told.ticks["/a"] == zones.tree.total(1).ticks);
}

TEST_CASE("a reader gets nothing of what was written for another", "[frame][recording]") {
  LoggedTree zones(4, 1 << 10);
  zones.Enter("a");
  Told told;
  told.Read(zones.log);
  CHECK(told.records == 0);  // there was no reader
  zones.log.Start(kEpoch);
  zones.Enter("b");
  zones.log.Start(kEpoch + 1);
  zones.Leave();
  told.Read(zones.log, kEpoch + 1);
  CHECK(told.open.size() == 1);
  CHECK(told.records == 4);  // begin, a, b, the end of b
  zones.log.Start(0);
  zones.Leave();
  told.Read(zones.log, kEpoch + 1);
  CHECK(told.records == 4);
}

}  // namespace
}  // namespace perfkit::count
