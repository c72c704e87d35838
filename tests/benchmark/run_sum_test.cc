// Sums over threads, and how worth becomes names: exact, scaled, missing.
#include "src/benchmark/adapter/run_sum.h"

#include <catch2/catch.hpp>
#include <map>
#include <thread>

namespace perfkit::adapter {
namespace {

using Columns = std::map<std::string, double>;

Columns ColumnsOf(const BenchmarkRow& row) {
  Columns columns;
  for (const BenchmarkColumn& column : row.columns) columns[column.name] = column.value;
  return columns;
}

TEST_CASE("an exact number keeps its plain name") {
  const BenchmarkRow row = MakeRow({{.name = "page-faults", .why_not = "", .value = 512}}, 2, 1);
  CHECK(ColumnsOf(row) == Columns{{"page-faults", 256}});
  CHECK(row.note.empty());
}

TEST_CASE("a multiplexed number never has the plain name") {
  const Tally tally{.name = "cycles", .why_not = "", .value = 1000, .enabled_ns = 100, .running_ns = 62};
  const BenchmarkRow row = MakeRow({tally}, 10, 1);
  CHECK(ColumnsOf(row) == Columns{{"cycles(scaled)", 100}, {"cycles(covered%)", 62}});
}

TEST_CASE("what is missing is named once for each reason, and has no column") {
  const BenchmarkRow row = MakeRow({{.name = "cycles", .why_not = "no PMU"},
                                    {.name = "page-faults", .why_not = "", .value = 4},
                                    {.name = "allocations", .why_not = "not counted"},
                                    {.name = "instructions", .why_not = "no PMU"}},
                                   4, 1);
  CHECK(ColumnsOf(row) == Columns{{"page-faults", 1}});
  CHECK(row.note == "cycles, instructions n/a (no PMU); allocations n/a (not counted)");
}

// Metrics with the events that they need, which have no columns.
std::vector<WantedMetric> Metrics(std::string_view list) {
  Choice choice;
  AddMetrics(choice, list);
  return choice.metrics;
}

Tally Part(const std::string& event, double value) {
  return {.name = event + "[x]", .why_not = "", .value = value, .event = event, .for_metrics = true};
}

TEST_CASE("a metric is of the sums of all threads, for one iteration", "[metric]") {
  const std::vector<WantedMetric> metrics =
      Metrics("ipc = instructions / cycles; half = page-faults / 2 [faults]; rate = page-faults / seconds");
  const std::vector<Tally> tallies = {Part("instructions", 300), Part("cycles", 100), Part("page-faults", 40)};
  const BenchmarkRow row = MakeRow(tallies, 10, 1, metrics);
  CHECK(ColumnsOf(row) == Columns{{"ipc", 3}, {"half[faults]", 2}});
  CHECK(row.note == "rate n/a (the elapsed time is not known: pass wall_ns, or divide by task-clock)");
}

TEST_CASE("a metric is worth what its weakest part is", "[metric]") {
  std::vector<Tally> tallies = {Part("instructions", 300), Part("cycles", 100)};
  tallies[0].enabled_ns = 100;
  tallies[0].running_ns = 40;
  tallies[0].user_only = tallies[1].user_only = true;
  const std::vector<WantedMetric> metrics = Metrics("ipc = instructions / cycles");
  CHECK(ColumnsOf(MakeRow(tallies, 10, 1, metrics)) == Columns{{"ipc:u(scaled)", 3}, {"ipc:u(covered%)", 40}});
  tallies[1].user_only = false;
  CHECK(MakeRow(tallies, 10, 1, metrics).note == "ipc n/a (instructions is of user space only, and cycles is not)");
  tallies[1] = {.name = "cycles", .why_not = "no PMU", .event = "cycles", .for_metrics = true};
  const BenchmarkRow without = MakeRow(tallies, 10, 1, metrics);
  CHECK(without.columns.empty());
  CHECK(without.note == "ipc n/a (cycles: no PMU)");
  tallies = {Part("instructions", 300), Part("cycles", 0)};
  CHECK(MakeRow(tallies, 10, 1, metrics).note == "ipc n/a (division by 0)");
  CHECK(MakeRow({Part("instructions", 1), Part("cycles", 1)}, 10, 2, metrics).note ==
        "ipc n/a (instructions: not counted on every thread)");
}

TEST_CASE("a metric whose column has the name of another one has no column", "[metric]") {
  Tally event = Part("page-faults", 40);
  event.name = "page-faults:u";
  event.user_only = true;
  event.for_metrics = false;
  const BenchmarkRow row = MakeRow({event}, 10, 1, Metrics("page-faults = 3 * page-faults; a = page-faults"));
  CHECK(ColumnsOf(row) == Columns{{"page-faults:u", 4}, {"a:u", 4}});
  CHECK(row.columns.size() == 2);
  CHECK(row.note == "page-faults:u n/a (a column is called 'page-faults:u')");
}

TEST_CASE("no iteration, no number") {
  const BenchmarkRow row = MakeRow({{.name = "page-faults", .why_not = "", .value = 4}}, 0, 1);
  CHECK(row.columns.empty());
  CHECK(row.note == "page-faults n/a (no iteration)");
}

TEST_CASE("the first to leave gets the sum, all get the note, and the sum of the run is empty afterwards") {
  RunSum sum;
  const std::vector<Tally> tallies{{.name = "page-faults", .why_not = "", .value = 10},
                                   {.name = "cycles", .why_not = "no PMU"}};
  for (int run = 0; run < 2; ++run) {
    sum.Arrive(5, tallies);
    sum.Arrive(5, tallies);
    const BenchmarkRow first = sum.Leave();
    const BenchmarkRow second = sum.Leave();
    CHECK(second.columns.empty());
    CHECK(ColumnsOf(first) == Columns{{"page-faults", 2}});
    CHECK(first.note == "cycles n/a (no PMU)");
    CHECK(second.note == first.note);
  }
}

TEST_CASE("a sum with a hole is no sum") {
  RunSum sum;
  sum.Arrive(1, {{.name = "page-faults", .why_not = "", .value = 10}});
  SECTION("one thread could not count it") {
    sum.Arrive(1, {{.name = "page-faults", .why_not = "no descriptor left"}});
    CHECK(sum.Leave().note == "page-faults n/a (no descriptor left)");
  }
  SECTION("one thread did not ask for it") {
    sum.Arrive(1, {});
    CHECK(sum.Leave().note == "page-faults n/a (not counted on every thread)");
  }
  CHECK(sum.Leave().columns.empty());
}

TEST_CASE("two events of one column name are no threads of each other") {
  RunSum sum;
  const Tally written{.name = "page-faults:u", .why_not = "", .value = 10, .event = "page-faults:u"};
  Tally other = written;
  other.event = "page-faults";
  other.for_metrics = GENERATE(false, true);
  for (int thread = 0; thread < 2; ++thread) sum.Arrive(1, {written, other});
  const BenchmarkRow row = sum.Leave();
  CHECK(ColumnsOf(row) == Columns{{"page-faults:u", 10}});
  CHECK(row.note.empty());
  sum.Leave();
}

TEST_CASE("coverage of a run is that of all its threads' time") {
  RunSum sum;
  sum.Arrive(1, {{.name = "cycles", .why_not = "", .value = 10, .enabled_ns = 100, .running_ns = 100}});
  sum.Arrive(1, {{.name = "cycles", .why_not = "", .value = 30, .enabled_ns = 100, .running_ns = 50}});
  CHECK(ColumnsOf(sum.Leave()) == Columns{{"cycles(scaled)", 20}, {"cycles(covered%)", 75}});
  sum.Leave();
}

TEST_CASE("energy of the machine counts once, however many threads measure it") {
  RunSum sum;
  sum.Arrive(1, {{.name = "power/energy-pkg/[Joules]", .why_not = "", .value = 8, .of_machine = true}});
  sum.Arrive(1, {{.name = "power/energy-pkg/[Joules]", .why_not = "", .value = 6, .of_machine = true}});
  CHECK(ColumnsOf(sum.Leave()) == Columns{{"power/energy-pkg/[Joules]", 4}});
  sum.Leave();
}

TEST_CASE("threads may arrive and leave in any order") {
  RunSum sum;
  constexpr int kThreads = 16;
  for (int run = 0; run < 50; ++run) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&sum, t] { sum.Arrive(1, {{.name = "n", .why_not = "", .value = 1.0 * t}}); });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    std::vector<BenchmarkRow> rows(kThreads);
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { rows[static_cast<size_t>(t)] = sum.Leave(); });
    for (std::thread& thread : threads) thread.join();
    size_t writers = 0;
    for (const BenchmarkRow& row : rows) {
      if (row.columns.empty()) continue;
      ++writers;
      CHECK(ColumnsOf(row) == Columns{{"n", 7.5}});
    }
    CHECK(writers == 1);
  }
}

const std::vector<Tally> kMissing{{.name = "cycles", .why_not = "no PMU"}};

void SetLabel(RunSum& sum, const std::string& label, bool begun) {
  sum.SetLabel(&label, "", begun, [](const std::string&) {});
}

TEST_CASE("a label that a thread sets first is not lost to the note of another that is late") {
  RunSum sum;
  for (int i = 0; i < 2; ++i) sum.Arrive(1, {{.name = "cycles", .why_not = "no PMU"}});
  const std::string note = sum.Leave().note;
  CHECK(note == "cycles n/a (no PMU)");
  std::string set;
  const auto take = [&](const std::string& text) { set = text; };
  const std::string label = "mine";
  sum.SetLabel(&label, note, true, take);
  CHECK(set == "mine; " + note);
  sum.SetLabel(nullptr, note, true, take);
  CHECK(set == "mine; " + note);
}

TEST_CASE("a label from before the loop is kept, one of the last run is not") {
  RunSum sum;
  SetLabel(sum, "ahead", false);
  sum.Begin();
  SetLabel(sum, "by another thread", false);
  sum.Begin();
  sum.Arrive(1, kMissing);
  sum.Arrive(1, kMissing);
  CHECK(sum.Leave().label == "by another thread; cycles n/a (no PMU)");
  CHECK(sum.Leave().label.empty());  // one thread sets it
  sum.End();
  sum.End();
  SetLabel(sum, "after", true);
  sum.Begin();
  sum.Arrive(1, kMissing);
  CHECK(sum.Leave().label == "cycles n/a (no PMU)");
}

TEST_CASE("a label of a skipped run is not kept for the next") {
  RunSum sum;
  SetLabel(sum, "of a skipped one", false);
  sum.End();
  sum.Begin();
  sum.Arrive(1, kMissing);
  CHECK(sum.Leave().label == "cycles n/a (no PMU)");
}

TEST_CASE("a run that misses nothing leaves the label alone") {
  RunSum sum;
  SetLabel(sum, "mine", false);
  sum.Begin();
  sum.Arrive(1, {{.name = "page-faults", .why_not = "", .value = 1}});
  CHECK(sum.Leave().label.empty());
}

}  // namespace
}  // namespace perfkit::adapter
