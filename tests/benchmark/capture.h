// Runs one benchmark in this process and hands its rows over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "perfkit/benchmark.h"
#include "tests/support/work.h"

namespace perfkit::testing {

class Capture : public ::benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& report) override { rows.insert(rows.end(), report.begin(), report.end()); }

  std::vector<Run> rows;
};

using Row = ::benchmark::BenchmarkReporter::Run;

// `body` for `iterations` on each of `threads`; `repetitions` rows, and after them their aggregates.
inline std::vector<Row> RunBenchmark(const std::function<void(::benchmark::State&)>& body, int64_t iterations,
                                     int threads = 1, int repetitions = 1) {
  Capture capture;
  ::benchmark::RegisterBenchmark("under_test", body)
      ->Iterations(iterations)
      ->Threads(threads)
      ->Repetitions(repetitions);
  ::benchmark::RunSpecifiedBenchmarks(&capture, "all");
  ::benchmark::ClearRegisteredBenchmarks();
  return capture.rows;
}

// The column of an event, whatever its name says about its worth; -1: there is none.
inline double Column(const Row& row, const std::string& event) {
  for (const char* worth : {"", ":u"}) {
    const auto found = row.counters.find(event + worth);
    if (found != row.counters.end()) return FaultsAnIteration(found->second.value);
  }
  return -1;
}

}  // namespace perfkit::testing
