// The results of a run of Google Benchmark, read from its JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// CPU time of the measuring thread, not elapsed time, so that time taken by other programs is excluded. For cases that
// measure themselves (UseManualTime), their own time.
struct Case {
  std::vector<double> ns;                                            // One for each repetition.
  std::map<std::string, std::vector<double>, std::less<>> counters;  // All other numbers, one for each repetition.
  std::string error;                                                 // Why there are none; "" if there are.
};

using Results = std::map<std::string, Case, std::less<>>;

// Returns a quantile of a case's repetitions, from 0 (the minimum) to 1; nullopt if it was not measured.
std::optional<double> QuantileOf(const Results& results, std::string_view name, double q);
std::optional<double> Median(const Results& results, std::string_view name);
// Returns the median of a case's counter.
std::optional<double> CounterOf(const Results& results, std::string_view name, std::string_view counter);
// Returns the distance between the quartiles, as a part of the median.
double Spread(const Case& measured);

// Parses the output of --benchmark_format=json, without aggregates. Returns nullopt for other text.
std::optional<Results> ParseResults(std::string_view json);

}  // namespace bench
