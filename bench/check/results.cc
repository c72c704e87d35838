// Reads Google Benchmark's JSON, which has one "key": value on each line, so that no other JSON need be read.
#include "bench/check/results.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace bench {
namespace {

struct Line {
  std::string_view key, value;
};

// Parses `  "key": value,`, without the quotes of a string.
std::optional<Line> ParseLine(std::string_view line) {
  const size_t open = line.find('"');
  const size_t middle = line.find("\": ");
  if (open == line.npos || middle == line.npos || middle <= open) return std::nullopt;
  std::string_view value = line.substr(middle + 3);
  if (value.ends_with(',')) value.remove_suffix(1);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return Line{line.substr(open + 1, middle - open - 1), value};
}

double Quantile(std::vector<double> values, double q) {
  const auto at = values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// "Snapshot512K/iterations:5/manual_time": the case, and how it was run.
constexpr std::string_view kManualTime = "/manual_time";
std::string_view CaseOf(std::string_view run_name) {
  for (const std::string_view how : {std::string_view("/iterations:"), std::string_view("/repeats:"), kManualTime}) {
    run_name = run_name.substr(0, run_name.find(how));
  }
  return run_name;
}

// Benchmarks print their times in the unit that they choose (benchmark::TimeUnit). nullopt: another one.
std::optional<double> NanosecondsIn(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [name, ns] : kUnits) {
    if (name == unit) return ns;
  }
  return std::nullopt;
}

// One entry of the array "benchmarks", while it is being read.
struct Entry {
  std::string name, error;
  std::map<std::string, double, std::less<>> numbers;
  bool iteration = false, manual = false;
  std::optional<double> unit_ns;

  void Take(const Line& line) {
    if (line.key == "run_name") name = CaseOf(line.value), manual = line.value.ends_with(kManualTime);
    if (line.key == "run_type") iteration = line.value == "iteration";
    if (line.key == "time_unit") unit_ns = NanosecondsIn(line.value);
    if (line.key == "error_message") error = line.value;
    double value = 0;
    const char* const end = line.value.data() + line.value.size();
    const auto [parsed, failed] = std::from_chars(line.value.data(), end, value);
    if (failed == std::errc() && parsed == end) numbers.emplace(line.key, value);
  }
  void FinishInto(Results& results) const {
    if (name.empty() || !iteration) return;
    Case& measured = results[name];
    const auto time = numbers.find(manual ? "real_time" : "cpu_time");
    if (!error.empty()) measured.error = error;
    if (!error.empty() || time == numbers.end() || !unit_ns) return;
    measured.ns.push_back(time->second * *unit_ns);
    for (const auto& [key, value] : numbers) measured.counters[key].push_back(value);
  }
};

}  // namespace

std::optional<double> QuantileOf(const Results& results, std::string_view name, double q) {
  const auto found = results.find(name);
  if (found == results.end() || found->second.ns.empty()) return std::nullopt;
  return Quantile(found->second.ns, q);
}

std::optional<double> Median(const Results& results, std::string_view name) { return QuantileOf(results, name, 0.5); }

std::optional<double> CounterOf(const Results& results, std::string_view name, std::string_view counter) {
  const auto found = results.find(name);
  if (found == results.end()) return std::nullopt;
  const auto values = found->second.counters.find(counter);
  if (values == found->second.counters.end()) return std::nullopt;
  return Quantile(values->second, 0.5);
}

double Spread(const Case& measured) {
  if (measured.ns.empty()) return 0;
  return (Quantile(measured.ns, 0.75) - Quantile(measured.ns, 0.25)) / Quantile(measured.ns, 0.5);
}

std::optional<Results> ParseResults(std::string_view json) {
  const size_t start = json.find("\"benchmarks\": [");
  if (start == json.npos) return std::nullopt;
  json.remove_prefix(start);
  Results results;
  Entry entry;
  while (!json.empty()) {
    const size_t end = std::min(json.find('\n'), json.size());
    const std::string_view line = json.substr(0, end);
    if (line.find_first_not_of(" ") != line.npos && line[line.find_first_not_of(" ")] == '}') {
      entry.FinishInto(results);
      entry = {};
    } else if (const auto parsed = ParseLine(line)) {
      entry.Take(*parsed);
    }
    json.remove_prefix(std::min(end + 1, json.size()));
  }
  return results;
}

}  // namespace bench
