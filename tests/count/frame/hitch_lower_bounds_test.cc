// Hitches of frames whose numbers are lower bounds: these are told as no cause.
#include <catch2/catch.hpp>
#include <string>

#include "src/count/frame/hitch_watch.h"
#include "tests/count/frame/made_up_reader.h"

namespace perfkit::count {
namespace {

TEST_CASE("hitches: an event that was off the PMU for a part of the frame tells no cause") {
  for (const uint64_t running_ns : {100, 99, 50, 0}) {
    ZoneTree tree({.events = 1, .multiplexable = 1});
    tree.scratch() = {};
    tree.BeginFrameAtScratch();
    Snapshot end{};
    end.ticks = 1000;
    end.values[0] = running_ns;
    end.times[0] = {100, running_ns};
    HitchWatch watch(10, {}, {});
    watch.Substitute({.page_faults = 0});
    const Hitch& hitch = watch.Explain(EndFrame(tree, end, 0), tree);
    INFO(hitch.cause);
    CHECK(hitch.faults_known == (running_ns == 100));
    CHECK(std::string(hitch.cause) == (running_ns == 100 ? "100 page faults" : "the kernel does not tell"));
  }
}

TEST_CASE("worst zone: none of which a call ended on another thread in this frame") {
  ZoneTree tree({.events = 1});
  Snapshot now{};
  tree.scratch() = now;
  tree.BeginFrameAtScratch();
  // "job" ends on another thread after "inside"; then the frame does something else.
  const auto frame = [&](uint64_t number, uint64_t inside_ns, uint64_t rest_ns) -> const FrameRecord& {
    *tree.Enter({"job"}) = now;
    const uint64_t job = tree.top_entry();
    *tree.Enter({"inside"}) = now;
    now.ticks += inside_ns;
    tree.scratch() = now;
    tree.Leave();
    tree.Abandon(job);
    now.ticks += rest_ns;
    return EndFrame(tree, now, number);
  };
  HitchWatch watch(16'000, {}, {});
  for (uint64_t i = 0; i < 40; ++i) frame(i, 5000, 0);
  const Hitch& elsewhere = watch.Explain(frame(40, 5000, 20'000), tree);
  CHECK(std::string(elsewhere.worst_zone).empty());
  CHECK(elsewhere.worst_excess_ns == 0);
  const Hitch& inside = watch.Explain(frame(41, 25'000, 0), tree);
  CHECK(std::string(inside.worst_zone) == "inside");
  CHECK(inside.worst_excess_ns >= 19'800);  // A median is at most 1/32 too high.
  CHECK(inside.worst_excess_ns <= 20'000);
}

}  // namespace
}  // namespace perfkit::count
