// Zones that are left on another thread than entered on: they have no number, and all other numbers stay correct.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/count/frame/zone_tree.h"
#include "tests/count/frame/made_up_reader.h"
#include "tests/count/frame/zones.h"
#include "tests/support/work.h"

namespace perfkit {
namespace count {
namespace {

// Zones, some of them left on another thread. Keeps each open zone with its path and its name in the tree.
class CrossThreadZones {
 public:
  explicit CrossThreadZones(uint64_t seed) : reader_(seed) {
    tree.scratch() = reader_.now();
    tree.BeginFrameAtScratch();
  }
  void Work() {
    const Snapshot before = reader_.now();
    reader_.Work();
    for (const Visit& visit : open_) {
      for (size_t i = 0; i < kEvents; ++i) most[visit.path].values[i] += reader_.now().values[i] - before.values[i];
    }
  }
  void Enter(const char* name) {
    if (open_.size() == 4) return;
    Snapshot* const begin = tree.Enter({name});
    REQUIRE(begin != nullptr);
    *begin = reader_.now();
    begin->times.fill({reader_.now().values[0], reader_.now().values[0]});
    open_.push_back({(open_.empty() ? "" : open_.back().path) + "/" + name, tree.top_entry()});
  }
  void Leave() {
    if (open_.empty()) return;
    Now();
    REQUIRE(!tree.SkipLeave());
    tree.Leave();
    open_.pop_back();
    tree.PopAbandoned();
    PopCrossThread();
  }
  void Stray(size_t which) {
    if (open_.empty()) return;
    Visit& visit = open_[which % open_.size()];
    if (!visit.cross_thread) cross_thread[visit.path] = visit.cross_thread = true;
    tree.Abandon(visit.entry);
    PopCrossThread();
  }
  void Mark() {
    Now();
    tree.EndFrameAtScratch(0, kOneNsATick);
  }
  size_t depth() const { return open_.size(); }

  ZoneTree tree{{.events = kEvents, .multiplexable = 1}};
  std::map<std::string, Sums> most;  // what each path had if it never ended on another thread
  std::map<std::string, bool> cross_thread;

 private:
  struct Visit {
    std::string path;
    uint64_t entry;
    bool cross_thread = false;
  };
  void Now() {
    tree.scratch() = reader_.now();
    tree.scratch().times.fill({reader_.now().values[0], reader_.now().values[0]});
  }
  void PopCrossThread() {
    while (!open_.empty() && open_.back().cross_thread) open_.pop_back();
  }

  MadeUpReader reader_;
  std::vector<Visit> open_;
};

TEST_CASE("zone tree: zones left elsewhere take no more than was theirs and the others lose nothing") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    CrossThreadZones zones(seed + 1000);
    for (int step = 0; step < 600; ++step) {
      zones.Work();
      const uint64_t what = random() % 16;
      if (what < 7) zones.Enter(random() % 2 == 0 ? "a" : "b");
      if (what >= 7 && what < 12) zones.Leave();
      if (what == 12) zones.Stray(random());
      if (what == 13) zones.Mark();
      REQUIRE(zones.tree.depth() == zones.depth());
    }
    zones.Mark();
    CheckLaw(zones.tree);
    for (size_t node = 1; node < zones.tree.size(); ++node) {
      const std::string path = PathOf(zones.tree, node);
      const Sums total = zones.tree.total(node);
      for (size_t i = 0; i < kEvents; ++i) {
        REQUIRE(total.values[i] <= zones.most[path].values[i]);
        if (!zones.cross_thread[path]) REQUIRE(total.values[i] == zones.most[path].values[i]);
      }
      REQUIRE(total.times[0].running_ns == total.values[0]);
    }
    REQUIRE(zones.tree.mismatched() == 0);
  }
}

}  // namespace
}  // namespace count

namespace {

TEST_CASE("frames: a zone that ends on another thread has no number, and changes no other") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  auto cross_thread = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"strays"});
  std::thread([&] { cross_thread.reset(); }).join();
  { PERFKIT_ZONE(frames, "next"); }
  frames.Mark();
  CHECK(frames.Stats().cross_thread == 1);
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  CHECK(Find(zones, "next")->depth == 1);  // not below the one that is gone
  CHECK(Find(zones, "strays")->calls == 0);
}

TEST_CASE("frames: a zone that was open as its thread ended is one mistake, wherever it is left later") {
  std::unique_ptr<FrameCounter> frames;
  std::unique_ptr<FrameCounter::Zone> zone;
  const bool on_worker = GENERATE(false, true);
  if (on_worker) frames = std::make_unique<FrameCounter>(FrameOptions{.events = kEvents});
  std::thread([&] {
    if (!on_worker) frames = std::make_unique<FrameCounter>(FrameOptions{.events = kEvents});
    zone = std::make_unique<FrameCounter::Zone>(*frames, ZoneId{"strays"});
  }).join();
  CHECK(frames->Stats().mismatched == 1);
  zone.reset();
  CHECK(frames->Stats().mismatched == 1);
  CHECK(frames->Stats().cross_thread == 0);
  frames->Mark();
  CHECK(frames->Stats().foreign_marks == (on_worker ? 0 : 1));
}

// Returns the lines of the report that begin with this label, with one blank between their cells.
std::vector<std::string> LinesOf(const std::string& report, const std::string& label) {
  std::vector<std::string> lines;
  std::istringstream text(report);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string cells;
    for (std::string word; words >> word;) cells += cells.empty() ? word : " " + word;
    if (cells.starts_with(label + " ")) lines.push_back(cells);
  }
  return lines;
}

TEST_CASE("frames: what ended on another thread is n/a in the report, and a sum without it a lower bound", "[law]") {
  FrameCounter frames({.events = {"page-faults"}});
  const bool may_count = frames.reason(0).empty();
  frames.Mark();
  const auto stray = [&frames](ZoneId id) {
    auto zone = std::make_unique<FrameCounter::Zone>(frames, id);
    { PERFKIT_ZONE(frames, "inside"); }
    testing::Spin(1000);
    std::thread([&] { zone.reset(); }).join();
  };
  auto alone = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"alone"});
  std::thread([&] { alone.reset(); }).join();
  { PERFKIT_ZONE(frames, "some"); }
  stray({"some"});
  stray({"around"});
  { PERFKIT_ZONE(frames, "next"); }
  frames.Mark();

  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  for (const char* name : {"alone", "some", "around"}) CHECK(Find(zones, name)->at_least);
  for (const char* name : {"", "inside", "next"}) CHECK(!Find(zones, name)->at_least);
  const std::string report = frames.FormatZones();
  INFO(report);
  const size_t tables = may_count ? 2 : 1;
  CHECK(LinesOf(report, "alone") == std::vector<std::string>(tables, "alone 0 n/a n/a n/a n/a n/a n/a"));
  REQUIRE(LinesOf(report, "some").size() == tables);
  for (const std::string& line : LinesOf(report, "some")) CHECK(line.starts_with("some 1 >="));
  // It has at least what its child has; nothing of its own is known.
  for (const std::string& line : LinesOf(report, "around")) {
    CHECK(line.starts_with("around 0 >="));
    CHECK(line.ends_with(" n/a n/a n/a n/a n/a"));
  }
  for (const std::string& line : LinesOf(report, "next")) {
    CHECK(line.find("n/a") == std::string::npos);
    CHECK(line.find(">=") == std::string::npos);
  }
  CHECK(report.find("\n3 zones ended on another thread: not counted") != std::string::npos);
  CHECK(report.find(". Remedy: TaskCounter::Zone for code that changes threads\n") != std::string::npos);
  if (!may_count) return;
  const Validity other_thread{Validity::kOtherThread};
  CHECK(Find(zones, "alone")->total[0].validity == other_thread);
  CHECK(Find(zones, "alone")->self[0].validity == other_thread);
  CHECK(Find(zones, "around")->total[0].validity.counted());
  CHECK(Find(zones, "around")->self[0].validity == other_thread);
  CHECK(Find(zones, "some")->total[0].validity.counted());
}

// A zone that is entered on this thread and left on another, while a zone below it is open here.
void CrossThreadBelowOpenChild(FrameCounter& frames, bool mark) {
  auto cross_thread = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"strays"});
  {
    PERFKIT_ZONE(frames, "child");
    testing::Spin(1000);
    std::thread([&] { cross_thread.reset(); }).join();
    { PERFKIT_ZONE(frames, "grandchild"); }
    if (mark) frames.Mark();
    testing::Spin(1000);
  }
  { PERFKIT_ZONE(frames, "next"); }
}

TEST_CASE("frames: a zone that ends on another thread while its child is open leaves the sums whole", "[law]") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  const bool mark = GENERATE(false, true);
  SECTION("on the marking thread") {
    {
      PERFKIT_ZONE(frames, "outer");
      CrossThreadBelowOpenChild(frames, mark);
    }
    frames.Mark();
    CHECK(Find(frames.zones(), "next")->depth == 2);
  }
  SECTION("outermost on a worker, which ends after it") {
    std::thread([&] { CrossThreadBelowOpenChild(frames, false); }).join();
    CHECK(Find(frames.zones(), "next", "workers")->depth == 1);
  }
  CHECK(frames.Stats().cross_thread == 1);
  CHECK(frames.Stats().mismatched == 0);
  CheckLaw(frames.zones(), frames.size());
}

TEST_CASE("frames: a zone that ends on another thread does not make its parent mismatched") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "outer");
    auto cross_thread = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"strays"});
    std::thread([&] { cross_thread.reset(); }).join();
  }
  frames.Mark();
  CHECK(frames.Stats().cross_thread == 1);
  CHECK(frames.Stats().mismatched == 0);
  CHECK(Find(frames.zones(), "strays")->calls == 0);
  CheckLaw(frames.zones(), frames.size());
}

TEST_CASE("frames: a zone whose calls all ended on other threads has no self, whatever rounding leaves", "[law]") {
  FrameCounter frames({.events = {"page-faults"}});
  frames.Mark();
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    auto job = std::make_unique<FrameCounter::Zone>(frames, ZoneId{name});
    for (const char* const inside : {"first", "second", "third"}) {
      const FrameCounter::Zone zone(frames, {inside});
      testing::Spin(1000);
    }
    std::thread([&] { job.reset(); }).join();
  }
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  size_t at_least = 0;
  for (const ZoneStats& zone : zones) {
    if (!zone.at_least) continue;
    ++at_least;
    CHECK(zone.self_wall_ns == 0);
    CHECK(!zone.self[0].validity.counted());
  }
  CHECK(at_least == 8);
}

TEST_CASE("cross-thread zones: one that ends after its thread was detached is mismatched only", "[frames]") {
  FrameCounter frames({.events = {"page-faults"}});
  std::thread([&] {
    std::unique_ptr<FrameCounter::Zone> zone;
    {
      const FrameCounter::AttachedThread attached = frames.AttachThread("detached");
      zone = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"open"});
    }
    zone.reset();
  }).join();
  CHECK(frames.Stats().mismatched == 1);
  CHECK(frames.Stats().cross_thread == 0);
  CHECK(frames.FormatZones().find("ended on another thread") == std::string::npos);
}

// The memory of an ended thread is used again for the next one.
TEST_CASE("cross-thread zones: one of an ended thread is mismatched, whichever thread leaves it", "[frames]") {
  constexpr uint64_t kTimes = 50;
  FrameCounter frames({.events = {"page-faults"}});
  for (uint64_t i = 0; i < kTimes; ++i) {
    std::unique_ptr<FrameCounter::Zone> zone;
    std::thread([&] { zone = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"stray"}); }).join();
    std::thread([&] {
      const FrameCounter::Zone own(frames, {"own"});
      zone = nullptr;
    }).join();
    CHECK(frames.Stats().mismatched == i + 1);
    CHECK(frames.Stats().cross_thread == 0);
  }
  for (const ZoneStats& zone : frames.zones()) {
    if (zone.name == "own") CHECK(zone.calls == kTimes);
  }
}

}  // namespace
}  // namespace perfkit
