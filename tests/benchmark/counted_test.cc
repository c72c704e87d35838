// Known work in benchmark loops, read from the library's own rows: no PMU needed.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>

#include "tests/benchmark/capture.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using testing::Column;
using testing::FreshPages;
using testing::Row;
using testing::RunBenchmark;

// Faults `pages` times a round, in whatever loop `loop` makes of the state.
template <class Loop>
void TouchIn(Loop&& loop, FreshPages& pages) {
  for ([[maybe_unused]] auto _ : loop) {
    pages.Touch(0, pages.pages());
    pages.Forget();
  }
}

void Warm(FreshPages& pages) {
  pages.Touch(0, pages.pages());
  pages.Forget();
}

TEST_CASE("a touch of 256 pages is 256 faults, at any number of threads") {
  const int threads = GENERATE(1, 2, 3, 8, 64);
  CAPTURE(threads);
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(256);
        Warm(pages);
        TouchIn(counted(state, {"page-faults"}), pages);
      },
      4, threads);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].iterations == 4 * threads);
  CHECK(Column(rows[0], "page-faults") == 256);
  CHECK(rows[0].report_label.empty());
}

TEST_CASE("columns can be read at the end of the loop, before the loop object ends") {
  double in_loop = -1, after = -1;
  RunBenchmark(
      [&](benchmark::State& state) {
        FreshPages pages(256);
        Warm(pages);
        auto loop = counted(state, {"minor-faults"});
        const auto read = [&] {
          for (const auto& [name, counter] : state.counters) {
            if (name.starts_with("minor-faults")) return testing::FaultsAnIteration(counter.value);
          }
          return -1.0;
        };
        for ([[maybe_unused]] auto _ : loop) {
          pages.Touch(0, 256);
          pages.Forget();
          in_loop = read();
        }
        after = read();
      },
      4);
  CHECK(in_loop == -1);
  CHECK(after == 256);
}

TEST_CASE("a metric of faults has a known answer, at any number of threads", "[metric]") {
  const int threads = GENERATE(1, 3);
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(256);
        Warm(pages);
        TouchIn(counted(state, {"task-clock"}, {"half = page-faults / 2", "busy = page-faults / task-clock [/ns]"}),
                pages);
      },
      4, threads);
  REQUIRE(rows.size() == 1);
  const bool user_only = rows[0].counters.contains("half:u");
  const std::string u = user_only ? ":u" : "";
  CHECK(Column(rows[0], "half" + u) == 128);
  const auto raw = [&](const std::string& column) { return double{rows[0].counters.at(column)}; };
  CHECK(raw("busy" + u + "[/ns]") == Approx(2 * raw("half" + u) / raw("task-clock[ns]")));
  CHECK_FALSE(rows[0].counters.contains("page-faults"));
  CHECK(rows[0].report_label.empty());
}

TEST_CASE("a metric without its counts has no column, and the label says why", "[metric]") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        for (auto _ : counted(state, {"page-faults"}, {"ipa = page-faults / allocations", "x = (page-faults"})) {
          asm volatile("");
        }
      },
      16);
  REQUIRE(rows.size() == 1);
  CHECK_THAT(rows[0].report_label,
             StartsWith("ipa n/a (allocations: ") && Contains("; x = (page-faults n/a (character 17: expected"));
}

TEST_CASE("an event that is asked for twice has its column") {
  for (const char* list : {"page-faults,page-faults", "page-faults:u,page-faults", "page-faults,page-faults:u"}) {
    CAPTURE(list);
    const std::vector<Row> rows = RunBenchmark(
        [&](benchmark::State& state) {
          FreshPages pages(16);
          Warm(pages);
          TouchIn(counted(state, list), pages);
        },
        4, 2);
    REQUIRE(rows.size() == 1);
    CHECK(Column(rows[0], "page-faults") == 16);
    CHECK(rows[0].report_label.empty());
  }
}

TEST_CASE("threads that do different work are averaged over all rounds") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16 * (1 + static_cast<size_t>(state.thread_index())));
        Warm(pages);
        TouchIn(counted(state, {"page-faults"}), pages);
      },
      8, 4);
  REQUIRE(rows.size() == 1);
  CHECK(Column(rows[0], "page-faults") == 16 * (1 + 2 + 3 + 4) / 4.0);
}

TEST_CASE("only the threads that are counted are divided by") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16);
        Warm(pages);
        if (state.thread_index() == 0) {
          TouchIn(state, pages);
        } else {
          TouchIn(counted(state, {"page-faults"}), pages);
        }
      },
      8, 3);
  REQUIRE(rows.size() == 1);
  CHECK(Column(rows[0], "page-faults") == 16);
}

TEST_CASE("what happens while timing is paused is not counted") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(32), others(64);
        Warm(pages);
        for (auto _ : counted(state, {"page-faults"})) {
          state.PauseTiming();
          pages.Forget();
          others.Touch(0, 64);
          others.Forget();
          state.ResumeTiming();
          pages.Touch(0, 32);
        }
      },
      16);
  REQUIRE(rows.size() == 1);
  CHECK(Column(rows[0], "page-faults") == 32);
}

TEST_CASE("an empty loop costs nothing: the loop's own part is taken off") {
  double min_ns = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::vector<Row> rows = RunBenchmark(
        [](benchmark::State& state) {
          for (auto _ : counted(state, {"page-faults", "task-clock", "context-switches"})) asm volatile("");
        },
        1 << 22);
    REQUIRE(rows.size() == 1);
    CHECK(Column(rows[0], "page-faults") == 0);
    CHECK(Column(rows[0], "task-clock[ns]") >= 0);
    min_ns = std::min(min_ns, Column(rows[0], "task-clock[ns]"));
  }
  // Without calibration this is a tenth of the loop's own 0.3 ns or more; noise of the machine may add to it.
  if (!testing::kSanitized) CHECK(min_ns < 5);  // whose own part takes as long
}

TEST_CASE("what has no number has no column, and the label says why") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        for (auto _ : counted(state, {"page-faults", "allocations", "page-fualts"})) asm volatile("");
      },
      16);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].counters.size() == 1);
  CHECK(Column(rows[0], "page-faults") == 0);
  CHECK_THAT(rows[0].report_label, StartsWith("allocations n/a (") && Contains("; page-fualts n/a ("));
}

TEST_CASE("a benchmark's own label stands before what has no number") {
  const auto body = [](benchmark::State& state) {
    for (auto _ : counted(state, {"allocations"})) asm volatile("");
    state.SetLabel("mine");
  };
  for (const int threads : {1, 4}) {
    const std::vector<Row> rows = RunBenchmark(body, 16, threads);
    REQUIRE(rows.size() == 1);
    CHECK_THAT(rows[0].report_label, StartsWith("mine; allocations n/a ("));
  }
}

TEST_CASE("a label from before the loop stands before what has no number, whichever thread set it") {
  const int by = GENERATE(0, 1, 3);
  const auto body = [by](benchmark::State& state) {
    if (state.thread_index() == by) state.SetLabel("ahead");
    for (auto _ : counted(state, {"allocatons"})) asm volatile("");
  };
  CHECK_THAT(RunBenchmark(body, 16, 4).at(0).report_label, StartsWith("ahead; allocatons n/a ("));
}

TEST_CASE("the label of one run does not stick to the next") {
  const bool ahead = GENERATE(false, true), bare = GENERATE(false, true);
  const auto labelled = [&](benchmark::State& state) {
    if (ahead) state.SetLabel("mine");
    if (bare) {
      for (auto _ : state) asm volatile("");
    } else {
      for (auto _ : counted(state, {"allocatons"})) asm volatile("");
    }
    if (!ahead) state.SetLabel("mine");
  };
  RunBenchmark(labelled, 16, 2);
  const auto other = [](benchmark::State& state) {
    for (auto _ : counted(state, {"allocatons"})) asm volatile("");
  };
  CHECK_THAT(RunBenchmark(other, 16, 2).at(0).report_label, StartsWith("allocatons n/a ("));
}

TEST_CASE("the label of a benchmark that is skipped does not stick to the next") {
  const int skip = GENERATE(0, 1, 2);
  CAPTURE(skip);
  RunBenchmark(
      [skip](benchmark::State& state) {
        if (skip == 0) state.SkipWithError("before its label");
        state.SetLabel("mine");
        if (skip == 1) state.SkipWithError("after its label");
        if (skip <= 1) return;
        for (auto _ : counted(state, {"allocatons"})) {
          state.SkipWithError("in the loop");
          break;
        }
      },
      16, 2);
  const auto other = [](benchmark::State& state) {
    for (auto _ : counted(state, {"allocatons"})) asm volatile("");
  };
  CHECK_THAT(RunBenchmark(other, 16, 2).at(0).report_label, StartsWith("allocatons n/a ("));
}

TEST_CASE("the note of one run does not stick to the next") {
  const bool ahead = GENERATE(false, true);
  RunBenchmark(
      [](benchmark::State& state) {
        for (auto _ : counted(state, {"allocations"})) asm volatile("");
      },
      16);
  const std::vector<Row> rows = RunBenchmark(
      [ahead](benchmark::State& state) {
        if (ahead) state.SetLabel("plain");
        for (auto _ : state) asm volatile("");
        if (!ahead) state.SetLabel("plain");
      },
      16);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].report_label == "plain");
}

TEST_CASE("repetitions keep their columns, and so do their aggregates") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16);
        Warm(pages);
        TouchIn(counted(state, {"page-faults", "allocations"}), pages);
      },
      8, 2, 3);
  REQUIRE(rows.size() == 3 + 4);  // mean, median, stddev, cv
  for (const Row& row : rows) {
    const bool spread = row.aggregate_name == "stddev" || row.aggregate_name == "cv";
    CHECK(Column(row, "page-faults") == (spread ? 0 : 16));
    CHECK_THAT(row.report_label, StartsWith("allocations n/a ("));
  }
}

TEST_CASE("a benchmark that breaks off disturbs neither its threads nor the next run") {
  const auto some_fail = [](benchmark::State& state) {
    if (state.thread_index() == 1) state.SkipWithError("before the loop");
    FreshPages pages(16);
    Warm(pages);
    for (auto _ : counted(state, {"page-faults"})) {
      pages.Touch(0, 16);
      pages.Forget();
      if (state.thread_index() != 2) continue;
      state.SkipWithError("in the loop");
      break;
    }
  };
  CHECK(RunBenchmark(some_fail, 8, 4).at(0).counters.empty());
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16);
        Warm(pages);
        TouchIn(counted(state, {"page-faults"}), pages);
      },
      8, 4);
  CHECK(Column(rows.at(0), "page-faults") == 16);
}

TEST_CASE("a region that ends on another thread has no numbers, and says why") {
  const bool paused = GENERATE(false, true);  // a first part that began and ended on one thread
  CAPTURE(paused);
  const EventSpec events[] = {"page-faults", "task-clock"};
  BenchmarkRegion region(&region, events);
  region.Start();
  if (paused) {
    BenchmarkRegion::Pause(&region);
    BenchmarkRegion::Resume(&region);
  }
  std::thread([&] { region.Stop(1); }).join();
  const std::optional<BenchmarkRow> row = region.Leave();
  REQUIRE(row.has_value());
  CHECK(row->columns.empty());
  CHECK_THAT(row->note, Contains("page-faults, task-clock n/a (began and ended on different threads)"));
}

TEST_CASE("the environment says which counters, unless the loop does") {
  setenv("PERFKIT_COUNTERS", "minor-faults,context-switches", 1);
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16);
        Warm(pages);
        TouchIn(counted(state), pages);
      },
      8);
  unsetenv("PERFKIT_COUNTERS");
  CHECK(Column(rows.at(0), "minor-faults") == 16);
  CHECK(Column(rows.at(0), "context-switches") >= 0);
  CHECK(Column(rows.at(0), "page-faults") == -1);
}

TEST_CASE("events may be given as a list or as one text") {
  const auto columns = [](auto&&... events) {
    return RunBenchmark(
               [&](benchmark::State& state) {
                 for ([[maybe_unused]] auto _ : counted(state, events...)) asm volatile("");
               },
               8)
        .at(0)
        .counters.size();
  };
  CHECK(columns("page-faults,minor-faults") == 2);
  CHECK(columns(std::initializer_list<EventSpec>{"page-faults", event::kContextSwitches}) == 2);
  const auto one = [](benchmark::State& state) {
    for (auto _ : counted(state, {"page-faults"})) asm volatile("");
  };
  CHECK(RunBenchmark(one, 8).at(0).counters.size() == 1);
  const auto two = [](benchmark::State& state) {  // not a text that begins and ends at these addresses
    for (auto _ : counted(state, {"page-faults", "minor-faults"})) asm volatile("");
  };
  CHECK(RunBenchmark(two, 8).at(0).counters.size() == 2);
}

TEST_CASE("where perf is forbidden, getrusage counts what it can and the rest says n/a") {
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kPerfEventOpen, EPERM);
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        FreshPages pages(16);
        Warm(pages);
        TouchIn(counted(state, {event::kPageFaults, event::kCycles}), pages);
      },
      8, 2);
  CHECK(Column(rows.at(0), "page-faults") == 16);
  CHECK_THAT(rows.at(0).report_label, StartsWith("cycles n/a ("));
}

}  // namespace
}  // namespace perfkit
