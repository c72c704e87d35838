// Prints stat's numbers: as a table, as perf stat's CSV (-x), or as its JSON (-j).
#pragma once

#include <optional>
#include <string>

#include "counting.h"
#include "options.h"
#include "tool/output.h"

namespace stat_tool {

class Report {
 public:
  // Refuses to go on if the output cannot be written. `options` must outlive it.
  explicit Report(const Options& options);

  // Prints one interval of several (-I), or everything.
  void Print(const Measurement& measurement);

  // Ends the output. Returns false, with an error on stderr, if any of it could not be written.
  bool Finish() { return output_.Finish(); }

 private:
  // CSV has no field for it.
  void TellReasons(const Measurement& measurement);
  std::string Table(const Measurement& measurement) const;
  std::string Csv(const Measurement& measurement, const Row& row,
                  const std::optional<perfkit::MetricValue>& metric) const;
  std::string Json(const Measurement& measurement, const Row& row,
                   const std::optional<perfkit::MetricValue>& metric) const;

  const Options& options_;
  tool::Output output_;
  bool told_ = false;  // the reasons
};

// Prints how each event is read, one line for each.
std::string ReadPaths(const perfkit::CounterSet& set);

}  // namespace stat_tool
