// Prints stat's numbers: as a table, as perf stat's CSV (-x), or as its JSON (-j).
#pragma once

#include <cstdio>

#include "counting.h"
#include "options.h"

namespace stat_tool {

class Report {
 public:
  // Refuses to go on if the output cannot be written. `options` must outlive it.
  explicit Report(const Options& options);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // Prints one interval of several (-I), or everything.
  void Print(const Measurement& measurement);

 private:
  // CSV has no field for it.
  void TellReasons(const Measurement& measurement);
  void PrintTable(const Measurement& measurement);
  void PrintCsv(const Measurement& measurement, const Row& row, const std::optional<perfkit::MetricValue>& metric);
  void PrintJson(const Measurement& measurement, const Row& row, const std::optional<perfkit::MetricValue>& metric);

  const Options& options_;
  FILE* out_;
  bool told_ = false;  // the reasons
};

// Prints how each event is read, one line for each.
std::string ReadPaths(const perfkit::CounterSet& set);

}  // namespace stat_tool
