// The fields of CSV and the keys of JSON are those of perf stat (man perf-stat, "CSV FORMAT"), in its order:
//
//   [time,]value,unit,event,[spread,]time on a counter,percentage of the time,metric,its unit
//
// What perfkit cannot say stays empty: an event that nothing can multiplex has no time on a counter of its own.
#include "report.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace stat_tool {
namespace {

constexpr char kNotCounted[] = "<not counted>";

template <class... Args>
std::string Text(const char* format, Args... args) {
  char text[64];
  snprintf(text, sizeof(text), format, args...);
  return text;
}

bool HasNumber(const Row& row) {
  const perfkit::Count& count = row.cells.count;
  return count.validity.counted() && (count.time_enabled_ns == 0 || count.time_running_ns > 0);
}

std::string ValueOf(const Row& row) {
  if (!HasNumber(row)) return kNotCounted;
  const uint64_t value = row.cells.count.scaled().value_or(row.cells.count.value);
  if (row.cells.scale == 1) return Text("%" PRIu64, value);
  return Text("%.2f", static_cast<double>(value) * row.cells.scale);
}

// As RFC 4180: in quotes if it holds the separator, quotes doubled.
std::string CsvField(const std::string& field, const std::string& separator) {
  if (field.find(separator) == field.npos && field.find('"') == field.npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string JsonString(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? Text("\\u%04x", c) : std::string(1, c);
  }
  return quoted + '"';
}

FILE* OpenOrRefuse(const std::string& path) {
  if (path.empty()) return stdout;
  FILE* const file = fopen(path.c_str(), "we");
  if (file == nullptr) Refuse("cannot write " + path + ": " + strerror(errno));
  return file;
}

}  // namespace

Report::Report(const Options& options)
    : options_(options),
      output_("stat", options.output.empty() ? "the standard output" : options.output, OpenOrRefuse(options.output)) {}

void Report::Print(const Measurement& measurement) {
  std::vector<perfkit::NamedCount> named;
  for (const Row& row : measurement.rows) named.push_back({row.cells.name, row.cells.count, row.cells.scale});
  if (options_.format == Format::kTable) output_.Write(Table(measurement));
  if (options_.format == Format::kCsv && !std::exchange(told_, true)) TellReasons(measurement);
  for (size_t i = 0; i < measurement.rows.size(); ++i) {
    const Row& row = measurement.rows[i];
    const auto metric = HasNumber(row) ? perfkit::MetricFor(named, i, measurement.wall_ns) : std::nullopt;
    if (options_.format == Format::kCsv) output_.Write(Csv(measurement, row, metric));
    if (options_.format == Format::kJson) output_.Write(Json(measurement, row, metric));
  }
  output_.Flush();  // a reader wants each interval at once
}

void Report::TellReasons(const Measurement& measurement) {
  for (const Row& row : measurement.rows) {
    if (!HasNumber(row)) fprintf(stderr, "stat: %s: %s\n", row.event.c_str(), row.cells.reason.c_str());
  }
}

std::string Report::Table(const Measurement& measurement) const {
  std::vector<perfkit::TableRow> rows;
  for (const Row& row : measurement.rows) rows.push_back(row.cells);
  const std::string table = perfkit::FormatRows(rows, measurement.wall_ns);
  if (!options_.interval) {
    std::string text = absl::StrFormat("%s\nTotal time: %.6f s", table, static_cast<double>(measurement.wall_ns) / 1e9);
    if (measurement.wall_spread) {
      absl::StrAppendFormat(&text, "  (mean of %d runs, +- %.2f %%)", measurement.runs, 100 * *measurement.wall_spread);
    }
    return text + '\n';
  }
  std::string text;
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at) + 1;
    absl::StrAppendFormat(&text, "%12.6f  %s", measurement.ended_s, table.substr(at, end - at));
    at = end;
  }
  return text;
}

std::string Report::Csv(const Measurement& measurement, const Row& row,
                        const std::optional<perfkit::MetricValue>& metric) const {
  const perfkit::Count& count = row.cells.count;
  std::vector<std::string> fields;
  if (options_.interval) fields.push_back(Text("%.9f", measurement.ended_s));
  fields.insert(fields.end(), {ValueOf(row), row.cells.unit, row.event});
  if (options_.runs > 1) fields.push_back(row.spread ? Text("%.2f%%", 100 * *row.spread) : "");
  fields.push_back(count.time_running_ns > 0 ? Text("%" PRIu64, count.time_running_ns) : "");
  fields.push_back(HasNumber(row) ? Text("%.2f", 100 * count.coverage()) : "");
  fields.push_back(metric ? Text("%.3f", metric->value) : "");
  fields.push_back(metric ? std::string(metric->unit) : "");
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    line += (i == 0 ? "" : options_.separator) + CsvField(fields[i], options_.separator);
  }
  return line + '\n';
}

std::string Report::Json(const Measurement& measurement, const Row& row,
                         const std::optional<perfkit::MetricValue>& metric) const {
  const perfkit::Count& count = row.cells.count;
  std::string line = "{";
  if (options_.interval) line += Text("\"interval\" : %.9f, ", measurement.ended_s);
  line += "\"counter-value\" : " + JsonString(ValueOf(row)) + ", \"unit\" : " + JsonString(row.cells.unit) +
          ", \"event\" : " + JsonString(row.event);
  if (row.spread) line += Text(", \"variance\" : %.2f", 100 * *row.spread);
  if (count.time_running_ns > 0) line += Text(", \"event-runtime\" : %" PRIu64, count.time_running_ns);
  if (HasNumber(row)) line += Text(", \"pcnt-running\" : %.2f", 100 * count.coverage());
  if (!HasNumber(row) && !row.cells.reason.empty()) line += ", \"reason\" : " + JsonString(row.cells.reason);
  if (metric)
    line += Text(", \"metric-value\" : %.6f, ", metric->value) +
            "\"metric-unit\" : " + JsonString(std::string(metric->unit));
  return line + "}\n";
}

std::string ReadPaths(const perfkit::CounterSet& set) {
  std::string text;
  for (size_t i = 0; i < set.size(); ++i) {
    const absl::Status reason = set.reason(i);
    const std::string how(reason.ok() ? std::string(perfkit::ReadPathName(set.path(i)))
                                      : std::string(reason.message()));
    std::string name(set.name(i));
    name.resize(std::max<size_t>(name.size(), 28), ' ');
    text += "  " + name + " " + how + "\n";
  }
  return text;
}

}  // namespace stat_tool
