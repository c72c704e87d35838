// What a run of Google Benchmark found, read from the JSON that it prints.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// CPU time of the measuring thread, not wall time: what other programs took of the machine meanwhile is not in it. Of
// cases that time themselves (UseManualTime): what they say.
struct Case {
  std::vector<double> ns;                                            // one a repetition
  std::map<std::string, std::vector<double>, std::less<>> counters;  // all other numbers that it has, likewise
  std::string error;                                                 // why it has none
};

using Results = std::map<std::string, Case, std::less<>>;

// Of the repetitions of a case, from 0 (the least) to 1; nothing when it was not measured.
std::optional<double> QuantileOf(const Results& results, std::string_view name, double q);
std::optional<double> Median(const Results& results, std::string_view name);
// The median of one of its counters.
std::optional<double> CounterOf(const Results& results, std::string_view name, std::string_view counter);
// How far apart the middle half of the repetitions lies, as a part of the median.
double Spread(const Case& measured);

// Reads the output of --benchmark_format=json. Aggregates are left out. Nothing when it is no such output.
std::optional<Results> ParseResults(std::string_view json);

}  // namespace bench
