// Zones that end on another thread, or never: their trees' sums, quantiles and flags.
#include <catch2/catch.hpp>

#include "src/count/frame/zone_tree.h"
#include "tests/count/frame/made_up_reader.h"

namespace perfkit::count {
namespace {

TEST_CASE("zone tree: an abandoned zone has no number of its own") {
  MadeUpReader reader(6);
  ZoneTree tree({.events = kEvents});
  Enter(tree, reader, "outer");
  Enter(tree, reader, "strays");
  const uint64_t cross_thread = tree.top_entry();
  reader.Work();
  Enter(tree, reader, "child");
  reader.Work();
  Leave(tree, reader);
  reader.Work();
  tree.Abandon(cross_thread);
  CHECK(tree.depth() == 1);
  Leave(tree, reader);
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.total(2).values[0] == tree.total(3).values[0]);
  CHECK(tree.total(2).ticks == tree.total(3).ticks);
  CHECK(tree.total(2).calls == 0);
  CHECK(tree.total(2).at_least);
  for (const size_t node : {0, 1, 3}) CHECK(!tree.total(node).at_least);
  CHECK(tree.last(2).missing == ~0u);
  CHECK(tree.last(1).missing == 0);
  CheckLaw(tree);
  tree.Abandon(0);
  tree.Abandon(cross_thread);
  CHECK(tree.depth() == 0);
}

TEST_CASE("zone tree: a frame in which a zone was abandoned is in no quantile of that zone") {
  MadeUpReader reader(7);
  ZoneTree tree({.events = kEvents});
  BeginFrame(tree, reader.now());
  const auto count_one = [&](uint64_t frame) {
    Enter(tree, reader, "zone");
    reader.Work();
    Leave(tree, reader);
    EndFrame(tree, reader.now(), frame);
  };
  count_one(0);
  CHECK(!tree.total(1).at_least);
  Enter(tree, reader, "zone");
  const uint64_t cross_thread = tree.top_entry();
  Enter(tree, reader, "child");
  tree.Abandon(cross_thread);
  EndFrame(tree, reader.now(), 1);
  CHECK(tree.last(1).missing == ~0u);
  reader.Work();
  Leave(tree, reader);
  tree.PopAbandoned();
  EndFrame(tree, reader.now(), 2);  // It was on the stack until then, below its child.
  CHECK(tree.last(1).missing == ~0u);
  count_one(3);
  CHECK(tree.last(1).missing == 0);
  CHECK(tree.total(1).at_least);
  CHECK(tree.total(1).calls == 2);
  CHECK(tree.frames(1) == 4);
  for (size_t which = 0; which <= kEvents; ++which) CHECK(tree.histogram(1, which).count() == 2);
  CHECK(tree.histogram(2, 0).count() == 2);
  CheckLaw(tree);
}

TEST_CASE("zone tree: zones that are open when their thread ends were never left, except abandoned ones") {
  MadeUpReader reader(8);
  ZoneTree tree({.events = kEvents, .max_depth = 3});
  BeginFrame(tree, reader.now());
  tree.CountNeverLeft();
  CHECK(tree.mismatched() == 0);
  Enter(tree, reader, "strays");
  const uint64_t cross_thread = tree.top_entry();
  for (const char* name : {"open", "too", "dropped"}) Enter(tree, reader, name);
  tree.Abandon(cross_thread);
  tree.CountNeverLeft();
  CHECK(tree.mismatched() == 3);
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.mismatched() == 3);
}

TEST_CASE("zone tree: an abandoned zone lacks what the zones below it lack") {
  ZoneTree tree({.events = 2});
  const Snapshot at{};
  BeginFrame(tree, at);
  *tree.Enter({"strays"}) = at;
  const uint64_t cross_thread = tree.top_entry();
  *tree.Enter({"child"}) = at;
  tree.scratch() = at;
  tree.scratch().missing = 0b10;
  tree.Leave();
  tree.Abandon(cross_thread);
  EndFrame(tree, at, 0);
  CHECK(tree.last(1).missing == ~0u);
  CHECK(tree.total(1).missing == 0b10);
}

}  // namespace
}  // namespace perfkit::count
