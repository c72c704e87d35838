// The groups of ended threads are bounded.
#include "src/count/frame/thread_groups.h"

#include <catch2/catch.hpp>
#include <string>

namespace perfkit::count {
namespace {

TEST_CASE("thread groups: ended threads beyond the maximum of names share a group, and lose no counts") {
  constexpr size_t kThreads = EndedThreads::kMaxNames + 50;
  EndedThreads ended;
  for (size_t i = 0; i < kThreads; ++i) {
    ZoneTree tree({.events = 1, .max_zones = 4, .max_depth = 4});
    tree.scratch() = {};
    tree.BeginFrameAtScratch();
    *tree.Enter({"job"}) = {};
    tree.Leave();
    tree.EndFrameAtScratch(0, 1);
    ended.Add("thread " + std::to_string(i), tree);
    ended.Add("thread 0", tree);
  }
  CHECK(ended.groups().size() == EndedThreads::kMaxNames + 1);
  CHECK(ended.groups().back().name == "(more threads)");
  uint64_t calls = 0;
  for (const ThreadGroup& group : ended.groups()) calls += group.zones.nodes()[1].total.calls;
  CHECK(calls == 2 * kThreads);
}

}  // namespace
}  // namespace perfkit::count
