// The checker of the benchmark: what it reads, how it judges, and that no bar can hold by accident.
#include <catch2/catch.hpp>
#include <string>

#include "bench/check/bars.h"
#include "bench/check/report.h"
#include "bench/check/results.h"

namespace {

// Entries as Google Benchmark 1.7.1 prints them.
std::string Entry(const std::string& name, const std::string& cpu_time, const std::string& type = "iteration") {
  return "    {\n      \"name\": \"" + name + "\",\n      \"family_index\": 0,\n      \"run_name\": \"" + name +
         "\",\n      \"run_type\": \"" + type + "\",\n      \"repetitions\": 3,\n      \"iterations\": 1000,\n" +
         "      \"real_time\": 9.9e+05,\n      \"cpu_time\": " + cpu_time + ",\n      \"time_unit\": \"ns\"\n    },\n";
}

std::string Failed(const std::string& name) {
  return "    {\n      \"run_name\": \"" + name +
         "\",\n      \"run_type\": \"iteration\",\n      \"error_occurred\": true,\n"
         "      \"error_message\": \"no such event\",\n      \"cpu_time\": 0.0000000000000000e+00\n    },\n";
}

std::string Json(const std::string& entries) {
  return "{\n  \"context\": {\n    \"date\": \"today\",\n    \"caches\": [\n      {\n        \"type\": \"Data\"\n"
         "      }\n    ]\n  },\n  \"benchmarks\": [\n" +
         entries + "  ]\n}\n";
}

}  // namespace

TEST_CASE("bars: the median over repetitions, by CPU time, aggregates left out") {
  const auto results =
      bench::ParseResults(Json(Entry("Read1/raw", "3.0e+02") + Entry("Read1/raw", "1.0e+02") +
                               Entry("Read1/raw", "2.0e+02") + Entry("Read1/raw", "9.0e+09", "aggregate")));
  REQUIRE(results);
  CHECK(results->size() == 1);
  CHECK(bench::Median(*results, "Read1/raw") == 200);
  CHECK(bench::QuantileOf(*results, "Read1/raw", 0) == 100);
  CHECK(!bench::Median(*results, "Read1/perfkit"));
  CHECK(bench::Spread(results->at("Read1/raw")) == Approx(0.5).margin(0.5));
}

TEST_CASE("bars: a case that times itself is read by its own time, under its own name") {
  const auto results = bench::ParseResults(Json(Entry("Snapshot512K/iterations:5/manual_time", "3.0e+02") +
                                                Entry("Throughput/1Mps/iterations:1/repeats:1/manual_time", "2.0e+02") +
                                                Entry("Gate/pair", "1.0e+02")));
  REQUIRE(results);
  CHECK(bench::Median(*results, "Snapshot512K") == 9.9e+05);
  CHECK(bench::Median(*results, "Throughput/1Mps") == 9.9e+05);
  CHECK(bench::Median(*results, "Gate/pair") == 100);
}

TEST_CASE("bars: times are nanoseconds, whatever unit they are printed in") {
  const auto printed_in = [](const std::string& unit) {
    std::string entry = Entry("Stop/100k", "2.5e+00");
    entry.replace(entry.find("\"ns\""), 4, "\"" + unit + "\"");
    return bench::Median(bench::ParseResults(Json(entry)).value(), "Stop/100k");
  };
  CHECK(printed_in("ns") == 2.5);
  CHECK(printed_in("us") == 2.5e3);
  CHECK(printed_in("ms") == 2.5e6);
  CHECK(printed_in("s") == 2.5e9);
  CHECK(!printed_in("min"));
}

TEST_CASE("bars: a case that failed has a reason and no number") {
  const auto results = bench::ParseResults(Json(Failed("Scope4/papi") + Entry("Scope4/perfkit_group", "1.0")));
  REQUIRE(results);
  CHECK(!bench::Median(*results, "Scope4/papi"));
  CHECK(results->at("Scope4/papi").error == "no such event");
  for (const bench::Judged& one : bench::Judge(*results, bench::Suites()[0].bars)) {
    CHECK(!one.ratio);
    CHECK(!one.holds());
  }
}

TEST_CASE("bars: what is no output of the benchmark is no result") {
  CHECK(!bench::ParseResults(""));
  CHECK(!bench::ParseResults("Segmentation fault"));
  const auto empty = bench::ParseResults(Json(""));
  REQUIRE(empty);
  CHECK(empty->empty());
  // Cut short anywhere: never a crash, never a number that was not there.
  const std::string whole = Json(Entry("Read1/raw", "3.0e+02"));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto cut = bench::ParseResults(whole.substr(0, size));
    if (cut && !cut->empty()) CHECK(bench::Median(*cut, "Read1/raw") == 300);
  }
}

TEST_CASE("bars: a case's counters are read beside its time") {
  std::string entry = Entry("Unwind/xz/perfkit", "3.0e+02");
  entry.insert(entry.find("      \"time_unit\""), "      \"allocations\": 2.5e-01,\n      \"label\": \"12 x\",\n");
  const auto results = bench::ParseResults(Json(entry));
  REQUIRE(results);
  CHECK(bench::Median(*results, "Unwind/xz/perfkit") == 300);
  CHECK(bench::CounterOf(*results, "Unwind/xz/perfkit", "allocations") == 0.25);
  CHECK(!bench::CounterOf(*results, "Unwind/xz/perfkit", "label"));
  CHECK(!bench::CounterOf(*results, "Unwind/xz/libdwfl", "allocations"));
}

TEST_CASE("bars: a star is one word, and never none") {
  CHECK(bench::Matches("Unwind/*/perfkit", "Unwind/xz/perfkit"));
  CHECK(!bench::Matches("Unwind/*/perfkit", "Unwind/xz/perfkit_batch"));
  CHECK(!bench::Matches("Unwind/*/perfkit", "Stream/xz/perfkit"));
  CHECK(!bench::Matches("Unwind/*/perfkit", "Unwind//perfkit"));
  CHECK(!bench::Matches("Unwind/*/perfkit", "Unwind/perfkit"));
  CHECK(!bench::Matches("Unwind/*/perfkit", "Unwind/a/b/perfkit"));
  CHECK(bench::Matches("Gate/pair", "Gate/pair"));
  CHECK(!bench::Matches("Gate/pair", "Gate/pairs"));
}

namespace {

// As many workloads as a bar of all needs; the names of all bars' cases in one of them.
std::string In(const char* pattern, size_t workload) {
  std::string name = pattern;
  if (const size_t star = name.find('*'); star != name.npos) name.replace(star, 1, "w" + std::to_string(workload));
  return name;
}

}  // namespace

TEST_CASE("bars: of all workloads the geometric mean, or the largest counter, or nothing where one is missing") {
  const bench::Bar time{"Unwind/*/perfkit", "Unwind/*/libdwfl", 0.5, "time"};
  const bench::Bar counter{
      .name = "Unwind/*/perfkit", .floor = nullptr, .limit = 0, .what = "allocations", .counter = "allocations"};
  const std::vector<bench::Bar> bars = {time, counter};
  bench::Results results;
  for (size_t i = 0; i < bench::kMinWorkloads; ++i) {
    CHECK(!bench::Judge(results, bars)[0].ratio);
    CHECK(!bench::Judge(results, bars)[1].ratio);
    bench::Case& held = results[In(time.name, i)];
    held.ns = {i == 0 ? 32.0 : 1.0};
    held.counters["allocations"] = {i == 1 ? 3.0 : 0.0};
    results[In(time.floor, i)].ns = {1};
  }
  CHECK(bench::Judge(results, bars)[0].ratio == Approx(2));  // the fifth root of 32
  CHECK(bench::Judge(results, bars)[1].ratio == 3);
  // A workload that fell out, on one side or both, takes the bar with it.
  results[In(time.name, 9)].error = "not captured";
  CHECK(!bench::Judge(results, bars)[0].ratio);
  CHECK(!bench::Judge(results, bars)[0].holds());
  CHECK(!bench::Judge(results, bars)[1].ratio);
  results.erase(In(time.name, 9));
  CHECK(bench::Judge(results, bars)[0].ratio == Approx(2));
  results[In(time.floor, 0)] = {};
  CHECK(!bench::Judge(results, bars)[0].ratio);
  results[In(time.name, 0)].counters.clear();
  CHECK(!bench::Judge(results, bars)[1].ratio);
}

TEST_CASE("bars: a workload that a bar is without need not be measured, but all others") {
  const std::vector<bench::Bar> bars = {
      {.name = "Unwind/*/perfkit", .floor = "Unwind/*/libunwind", .limit = 1, .what = "time", .without = "w9"}};
  bench::Results results;
  for (const size_t workload : {0, 1, 2, 3, 99}) {
    results[In(bars[0].name, workload)].ns = {1};
    results[In(bars[0].floor, workload)].ns = {2};
  }
  CHECK(bench::Judge(results, bars)[0].ratio == Approx(0.5));
  results[In(bars[0].name, 9)].ns = {1000};
  results[In(bars[0].floor, 9)].error = "other frames";
  CHECK(bench::Judge(results, bars)[0].ratio == Approx(0.5));
  results[In(bars[0].floor, 99)] = {};
  CHECK(!bench::Judge(results, bars)[0].ratio);
}

TEST_CASE("bars: each holds at its limit and not above, and compares names of the contract") {
  const bench::Suite& suite = bench::Suites()[GENERATE(range(size_t{0}, bench::Suites().size()))];
  INFO(suite.program);
  const auto bars = suite.bars;
  const auto names = suite.names;
  for (const bench::Bar& bar : bars) {
    INFO(bar.name << " to " << (bar.floor != nullptr ? bar.floor : "nothing"));
    const bool of_all = std::string(bar.name).find('*') != std::string::npos;
    for (const char* name : {bar.name, bar.floor}) {
      if (name == nullptr) continue;
      size_t found = 0;
      for (const char* known : names) found += bench::Matches(name, known);
      CHECK(found >= (of_all ? bench::kMinWorkloads : 1));
      if (!of_all) CHECK(found == 1);
    }
    CHECK((bar.counter == nullptr || bar.floor == nullptr));
    for (const bool above : {false, true}) {
      bench::Results results;
      const double floor = bar.floor != nullptr ? 1000 : 1;
      const double value = floor * (bar.limit == 0 ? above * 0.001 : bar.limit * (above ? 1.001 : 0.999));
      for (size_t i = 0; i < bench::kMinWorkloads; ++i) {
        if (bar.floor != nullptr) results[In(bar.floor, i)].ns = {floor};
        results[In(bar.name, i)].ns = {value};
        if (bar.counter != nullptr) results[In(bar.name, i)].counters[bar.counter] = {value};
      }
      for (const bench::Judged& one : bench::Judge(results, bars)) {
        if (one.bar != &bar) continue;
        REQUIRE(one.ratio);
        CHECK(one.holds() == !above);
      }
    }
  }
}

TEST_CASE("bars: the page says what did not hold, and what was not measured") {
  bench::Results results;
  results["Read1/raw"].ns = {100};
  results["Read1/perfkit"].ns = {200};
  results["Scope4/papi"].error = "built without PAPI";
  const std::vector<bench::Judged> judged = bench::Judge(results, bench::Suites()[0].bars);
  const std::string page = bench::FormatPage(results, judged);
  CHECK(page.find("| `Read1/perfkit` | `Read1/raw` | 2.000 | 1.05 | NO |") != std::string::npos);
  CHECK(page.find("| `Scope4/papi` | built without PAPI | |") != std::string::npos);
  CHECK(page.find("not measured") != std::string::npos);
  CHECK(page.find("| `count_bench` | 21 | 0.03 s |") != std::string::npos);
  CHECK(page.find("| kernel | Linux ") != std::string::npos);
  CHECK(bench::FormatBars(judged).find("NO") != std::string::npos);
}
