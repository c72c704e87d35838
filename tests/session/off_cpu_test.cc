// Time off the CPU, by records that are written by hand.
#include "src/session/off_cpu.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace perfkit::session {
namespace {

using Spans = std::vector<OffCpuSpan>;

// A thread of number 100 and index 0, with all spans that were emitted.
struct Watched {
  OffCpu off_cpu;
  Spans spans;

  void Switch(uint64_t time_ns, bool out, bool preempted = false) {
    off_cpu.Switched(0, 100, time_ns, out, preempted, Keep());
  }
  void Ran(uint64_t time_ns) { off_cpu.Ran(0, time_ns, Keep()); }
  void Look(uint64_t at_ns, uint32_t stack, uint64_t times_run = 1, uint32_t holder = ProfileWait::kNoHolder) {
    off_cpu.Looked(0, {.at_ns = at_ns,
                       .times_run = times_run,
                       .stack = stack,
                       .quality = StackQuality::kWhole,
                       .call = {.syscall = 7},
                       .holder = {.thread = holder}});
  }
  std::function<void(const OffCpuSpan&)> Keep() {
    return [this](const OffCpuSpan& span) { spans.push_back(span); };
  }
};

TEST_CASE("who wakes a thread ends the wait that it is in, and no other", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(20, true);
  watched.off_cpu.Woken(0, {.name = "a", .at_ns = 26});
  watched.Switch(30, false);
  watched.off_cpu.Woken(0, {.name = "b", .at_ns = 35});  // it runs: nothing is ended by that
  watched.Switch(40, true);
  watched.off_cpu.Woken(7, {.name = "b", .at_ns = 45});  // no thread that is known
  watched.Switch(50, false);
  REQUIRE(watched.spans.size() == 3);
  CHECK((watched.spans[0].waker == "a" && watched.spans[0].to_ns == 26 && !watched.spans[0].preempted));
  // Then it waits for a CPU.
  CHECK((watched.spans[1].waker.empty() && watched.spans[1].from_ns == 26 && watched.spans[1].to_ns == 30));
  CHECK(watched.spans[1].preempted);
  CHECK((watched.spans[2].waker.empty() && watched.spans[2].duration_ns() == 10 && !watched.spans[2].preempted));
}

TEST_CASE("a snapshot between a wake-up and the run cuts the wait for a CPU", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(20, true);
  watched.off_cpu.Woken(0, {.name = "a", .at_ns = 25});
  watched.off_cpu.CutAt(30, false, watched.Keep());
  watched.Switch(40, false);
  REQUIRE(watched.spans.size() == 3);
  CHECK((watched.spans[0].waker == "a" && watched.spans[0].duration_ns() == 5));
  CHECK((watched.spans[1].preempted && watched.spans[1].duration_ns() == 5));
  CHECK((watched.spans[2].preempted && watched.spans[2].waker.empty() && watched.spans[2].duration_ns() == 10));
  CHECK(watched.off_cpu.TimesOf(0).off_ns == 20);
}

TEST_CASE("a look belongs to the span in which it was made", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(20, true);
  REQUIRE(watched.off_cpu.ToLookAt(20, 20).size() == 1);
  SECTION("in the span that is known") {
    watched.Look(25, 3);
    watched.Switch(30, false);
    REQUIRE(watched.spans.size() == 1);
    CHECK(watched.spans[0].stack == 3);
    CHECK(watched.spans[0].call->syscall == 7);
  }
  SECTION("in a later one, whose records come after the look") {
    watched.Look(45, 3);
    watched.Switch(30, false);
    watched.Switch(40, true);
    CHECK(watched.off_cpu.ToLookAt(100, 46).empty());
    watched.Switch(50, false);
    REQUIRE(watched.spans.size() == 2);
    CHECK(watched.spans[0].stack == ProfileStack::kRoot);
    CHECK_FALSE(watched.spans[0].call);
    CHECK(watched.spans[1].stack == 3);
  }
  SECTION("in all parts of a span that snapshots cut") {
    watched.Look(25, 3);
    watched.off_cpu.CutAt(30, true, watched.Keep());
    watched.off_cpu.CutAt(35, true, watched.Keep());
    watched.Switch(40, false);
    REQUIRE(watched.spans.size() == 3);
    for (const OffCpuSpan& span : watched.spans) CHECK(span.stack == 3);
    watched.Switch(50, true);
    watched.Switch(60, false);
    CHECK(watched.spans[3].stack == ProfileStack::kRoot);
    CHECK(watched.spans[3].from_ns == 50);
    CHECK(watched.spans[3].to_ns == 60);
  }
}

TEST_CASE("a span is looked at again after half as long again, and keeps its last look", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(100, true);
  watched.Look(120, 3, 1, 7);
  CHECK(watched.off_cpu.ToLookAt(UINT64_MAX, 129).empty());
  CHECK(watched.off_cpu.ToLookAt(UINT64_MAX, 130).size() == 1);
  const uint32_t second = GENERATE(7, 8);
  watched.Look(130, 4, 1, second);
  CHECK(watched.off_cpu.ToLookAt(UINT64_MAX, 144).empty());
  watched.Look(145, 5, 1, 8);
  SECTION("all looks are at one wait") {
    watched.Switch(160, false);
    REQUIRE(watched.spans.size() == 1);
    CHECK((watched.spans[0].looked_ns == 145 && watched.spans[0].stack == 5 && watched.spans[0].holder.thread == 8));
    CHECK(watched.spans[0].holder_since_ns == (second == 8 ? 130 : 145));
  }
  SECTION("the last one is at a later wait, whose records are to come") {
    watched.Look(170, 6, 2, 9);
    watched.Switch(160, false);
    watched.Switch(165, true);
    watched.Switch(180, false);
    REQUIRE(watched.spans.size() == 2);
    CHECK((watched.spans[0].looked_ns == 145 && watched.spans[0].holder.thread == 8));
    CHECK(watched.spans[1].looked_ns == 0);
  }
  SECTION("a snapshot cuts the wait: the rest is looked at, too") {
    watched.off_cpu.CutAt(150, true, watched.Keep());
    CHECK(watched.off_cpu.ToLookAt(UINT64_MAX, 151).size() == 1);
    watched.Look(152, 5, 1, 8);
    watched.Switch(160, false);
    REQUIRE(watched.spans.size() == 2);
    CHECK((watched.spans[0].looked_ns == 145 && watched.spans[1].looked_ns == 152));
  }
}

TEST_CASE("a thread is looked at whatever its records say, and not again too soon", "[off_cpu]") {
  Watched watched;
  CHECK(!watched.off_cpu.IsDue(0, 10));
  watched.off_cpu.Begin(0, 100, 10);
  CHECK(watched.off_cpu.IsDue(0, 10));
  const bool runs = GENERATE(true, false);
  watched.Switch(20, !runs, true);
  CHECK((watched.off_cpu.ToLookAt(100, 30).empty() && watched.off_cpu.IsDue(0, 30)));
  REQUIRE(watched.off_cpu.Watched().size() == 1);
  CHECK((watched.off_cpu.Watched()[0].thread == 0 && watched.off_cpu.Watched()[0].tid == 100));
  watched.Look(40, 3);
  CHECK((!watched.off_cpu.IsDue(0, 49) && watched.off_cpu.IsDue(0, 50)));
  // The records of the wait that was looked at come afterwards.
  if (!runs) watched.Switch(25, false);
  watched.Switch(35, true);
  watched.Switch(60, false);
  CHECK((watched.spans.back().from_ns == 35 && watched.spans.back().looked_ns == 40));
  watched.off_cpu.Pause(70, watched.Keep());
  CHECK(!watched.off_cpu.IsDue(0, 80));
  watched.off_cpu.Resume(80);
  watched.off_cpu.End(0, 90, watched.Keep());
  CHECK((!watched.off_cpu.IsDue(0, 95) && watched.off_cpu.Watched().empty()));
}

TEST_CASE("a span without a look has the last stack that was known", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.off_cpu.SetLastStack(0, 5);
  watched.Switch(20, true, true);
  CHECK(watched.off_cpu.ToLookAt(100, 100).empty());  // it could run
  watched.Switch(30, false);
  REQUIRE(watched.spans.size() == 1);
  CHECK(watched.spans[0].stack == 5);
  CHECK(watched.spans[0].quality == StackQuality::kLastKnown);
  CHECK(watched.spans[0].preempted);
}

TEST_CASE("what a thread did before its first record follows from that record", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  SECTION("it leaves its CPU: it was on") {
    watched.Switch(30, true);
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 20);
  }
  SECTION("it comes back: it was off") {
    watched.Switch(30, false);
    CHECK(watched.off_cpu.TimesOf(0).off_ns == 20);
  }
  SECTION("it is sampled: it was on") {
    watched.Ran(20);
    watched.off_cpu.CutAt(30, true, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 20);
  }
}

TEST_CASE("a thread that has no record, and runs, has run all the time", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  REQUIRE(watched.off_cpu.Unknown().size() == 1);
  watched.off_cpu.SeenRunning(0, true);
  watched.off_cpu.CutAt(20, false, watched.Keep());  // its record may still come
  CHECK(watched.off_cpu.TimesOf(0).on_ns + watched.off_cpu.TimesOf(0).off_ns == 0);
  SECTION("at the end it is certain") {
    watched.off_cpu.CutAt(30, true, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 20);
  }
  SECTION("its record has come: it had just begun to run") {
    watched.Switch(28, false);
    watched.off_cpu.CutAt(30, true, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 2);
    CHECK(watched.off_cpu.TimesOf(0).off_ns == 18);
  }
  SECTION("it sleeps meanwhile, without a record: it did all the time") {
    watched.off_cpu.SeenRunning(0, false);
    watched.off_cpu.CutAt(30, true, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).off_ns == 20);
  }
}

TEST_CASE("a thread that ends without any record has run until then", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  SECTION("since it began") {
    watched.off_cpu.End(0, 30, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 20);
  }
  SECTION("since a resume") {
    watched.off_cpu.Pause(20, watched.Keep());
    watched.off_cpu.Resume(50);
    watched.off_cpu.End(0, 80, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 30);
  }
  SECTION("not in a pause") {
    watched.Switch(20, true);
    watched.off_cpu.Pause(30, watched.Keep());
    watched.off_cpu.End(0, 80, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 10);
    CHECK(watched.off_cpu.TimesOf(0).off_ns == 10);
  }
  SECTION("not while the sampler is being stopped: the record of its run may be missing") {
    const bool was_running = GENERATE(false, true);
    watched.off_cpu.SeenRunning(0, was_running);
    watched.off_cpu.KnownUntil(29);
    watched.off_cpu.End(0, 30, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == (was_running ? 20 : 0));
    CHECK(watched.off_cpu.TimesOf(0).off_ns == (was_running ? 0 : 20));
  }
  SECTION("again once it is resumed") {
    watched.off_cpu.KnownUntil(20);
    watched.off_cpu.Pause(20, watched.Keep());
    watched.off_cpu.Resume(50);
    watched.off_cpu.End(0, 80, watched.Keep());
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 30);
  }
}

TEST_CASE("records that are missing are counted, and a sample tells that a thread is back", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(20, true);
  watched.Ran(20);  // as the thread left
  CHECK(watched.off_cpu.missed() == 0);
  SECTION("sampled while off") {
    watched.Ran(40);
    watched.Ran(45);
    watched.Switch(50, true);
    CHECK(watched.off_cpu.missed() == 1);
    CHECK(watched.off_cpu.TimesOf(0).on_ns == 20);
    CHECK(watched.off_cpu.TimesOf(0).off_ns == 20);
  }
  SECTION("out twice") {
    watched.Switch(40, true);
    CHECK(watched.off_cpu.missed() == 1);
  }
  SECTION("in twice") {
    watched.Switch(40, false);
    watched.Switch(50, false);
    CHECK(watched.off_cpu.missed() == 1);
  }
}

TEST_CASE("between a pause and what follows it, no thread is watched", "[off_cpu]") {
  Watched watched;
  watched.off_cpu.Begin(0, 100, 10);
  watched.Switch(20, true);
  watched.off_cpu.Pause(30, watched.Keep());
  watched.off_cpu.Begin(1, 101, 50);  // born in between
  watched.off_cpu.CutAt(70, true, watched.Keep());
  CHECK(watched.off_cpu.ToLookAt(90, 90).empty());
  watched.off_cpu.Resume(80);
  watched.Switch(100, true);
  watched.off_cpu.CutAt(110, true, watched.Keep());
  CHECK(watched.off_cpu.missed() == 0);
  CHECK(watched.off_cpu.TimesOf(0).on_ns == 10 + 20);
  CHECK(watched.off_cpu.TimesOf(0).off_ns == 10 + 10);
  CHECK(watched.off_cpu.TimesOf(1).on_ns + watched.off_cpu.TimesOf(1).off_ns == 30);
}

// Whatever the records say, in whichever order: the time that a thread was watched is on or off, each once.
TEST_CASE("on and off add up to the time watched, to the nanosecond", "[off_cpu]") {
  const auto seed = GENERATE(range(1u, 40u));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  constexpr uint32_t kThreads = 4;
  OffCpu off_cpu;
  Spans spans;
  const auto keep = [&](const OffCpuSpan& span) { spans.push_back(span); };
  std::map<uint32_t, uint64_t> begin_ns, end_ns;
  std::map<uint32_t, bool> ended;
  uint64_t now_ns = 1000;
  const auto reach = [&](uint32_t thread, uint64_t time_ns) {
    begin_ns.try_emplace(thread, time_ns);
    end_ns.try_emplace(thread, begin_ns[thread]);
    if (!ended[thread]) end_ns[thread] = std::max(end_ns[thread], time_ns);
  };
  for (int step = 0; step < 2000; ++step) {
    now_ns += below(50);
    const auto thread = static_cast<uint32_t>(below(kThreads));
    const uint64_t time_ns = below(20) == 0 ? now_ns - below(200) : now_ns;  // some come late
    switch (below(12)) {
      case 0: off_cpu.SetLastStack(thread, static_cast<uint32_t>(below(9))); break;
      case 1:
        off_cpu.Looked(thread, {.at_ns = now_ns - below(100), .stack = 1, .quality = StackQuality::kPart, .call = {}});
        break;
      case 2:
        if (below(20) != 0 || begin_ns.count(thread) == 0) break;
        off_cpu.End(thread, time_ns, keep);
        reach(thread, time_ns);
        ended[thread] = true;
        break;
      case 3:
        off_cpu.CutAt(now_ns, true, keep);
        for (auto& [other, end] : end_ns) reach(other, now_ns);
        break;
      default: off_cpu.Switched(thread, thread, time_ns, below(2) == 0, below(2) == 0, keep); reach(thread, time_ns);
    }
  }
  off_cpu.CutAt(now_ns, true, keep);
  for (auto& [thread, end] : end_ns) reach(thread, now_ns);
  std::map<uint32_t, uint64_t> off_ns, last_ns;
  for (const OffCpuSpan& span : spans) {
    off_ns[span.thread] += span.duration_ns();
    CHECK(span.from_ns < span.to_ns);
    CHECK(span.from_ns >= last_ns[span.thread]);
    CHECK((span.stack == ProfileStack::kRoot) == (span.quality == StackQuality::kNone));
    last_ns[span.thread] = span.to_ns;
  }
  for (const auto& [thread, begin] : begin_ns) {
    const OffCpu::Times times = off_cpu.TimesOf(thread);
    CHECK(times.on_ns + times.off_ns == end_ns[thread] - begin);
    CHECK(times.off_ns == off_ns[thread]);
  }
}

}  // namespace
}  // namespace perfkit::session
