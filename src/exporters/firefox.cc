// Firefox's processed profile, version 66, gzipped: what samply writes, and all current readers take
// (github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md).
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/exporters.h"
#include "src/exporters/accounting_text.h"
#include "src/exporters/firefox_tables.h"
#include "src/exporters/firefox_threads.h"
#include "src/exporters/gzip_sink.h"
#include "src/exporters/json_writer.h"
#include "src/profile/event_choice.h"

namespace perfkit {
namespace {

using exporters::FirefoxTime;
using exporters::JsonWriter;

// All times count from here: no time there may be negative.
uint64_t EarliestTime(const Profile& profile) {
  uint64_t earliest = profile.from_ns;
  const auto consider = [&](uint64_t time_ns) { earliest = std::min(earliest, time_ns); };
  const auto first =
      std::find_if(profile.samples.begin(), profile.samples.end(), [](const auto& sample) { return !sample.merged(); });
  if (first != profile.samples.end()) consider(first->time_ns);
  for (const ProfileZone& zone : profile.zones) consider(zone.from_ns);
  for (const ProfileTaskPart& part : profile.task_parts) consider(part.from_ns);
  for (const ProfileCounter& counter : profile.counters) {
    if (!counter.points.empty()) consider(counter.points[0].time_ns);
  }
  return earliest;
}

// Milliseconds from one sample to the next: the weight of a single sample of a clock is its period. 1 if the event is
// no clock, as readers need a number.
double Interval(const Profile& profile, size_t event) {
  for (const ProfileSample& sample : profile.samples) {
    const bool is_clock = profile.events[sample.event].unit == ProfileUnit::kNanoseconds;
    if (sample.event == event && is_clock && sample.samples == 1) return static_cast<double>(sample.weight) / 1e6;
  }
  return 1;
}

void WriteCategory(JsonWriter& json, std::string_view name, std::string_view color) {
  json.BeginObject().Member("name", name).Member("color", color).Key("subcategories").BeginArray();
  for (const char* const mark : {"Other", "guess by frame pointer", "taken from an earlier stack"}) json.String(mark);
  json.EndArray().EndObject();
}

void WriteAccounting(const Profile& profile, JsonWriter& json) {
  json.Key("extra").BeginArray().BeginObject().Member("label", "perfkit").Key("entries").BeginArray();
  size_t number = 0;
  for (const std::string& line : exporters::AccountingLines(profile)) {
    json.BeginObject().Member("label", absl::StrFormat("accounting %d", ++number));
    json.Member("format", "string").Member("value", line).EndObject();
  }
  json.EndArray().EndObject().EndArray();
}

// Fields that readers require are there even if they say nothing of a native program (pages, extensions, debug).
void WriteMeta(const Profile& profile, size_t event, uint64_t from_ns, JsonWriter& json) {
  json.Key("meta").BeginObject().Key("categories").BeginArray();
  WriteCategory(json, "Other", "grey");  // FirefoxCategory
  WriteCategory(json, "User", "blue");
  WriteCategory(json, "Kernel", "orange");
  json.EndArray().Member("debug", false).Key("extensions").BeginObject().Member("length", 0);
  for (const char* const name : {"baseURL", "id", "name"}) json.Key(name).BeginArray().EndArray();
  json.EndObject().Member("interval", Interval(profile, event)).Member("preprocessedProfileVersion", 66);
  json.Member("processType", 0).Member("product", profile.program.empty() ? "perfkit" : profile.program);
  json.Member("importedFrom", "perfkit").Member("oscpu", "Linux");
  json.Key("sampleUnits").BeginObject().Member("time", "ms").Member("eventDelay", "ms");
  json.Member("threadCPUDelta", "µs").EndObject();
  json.Member("startTime", FirefoxTime(from_ns + profile.realtime_offset_ns, 0));
  json.Member("startTimeAsClockMonotonicNanosecondsSinceBoot", from_ns);
  json.Member("profilingStartTime", FirefoxTime(profile.from_ns, from_ns));
  json.Member("profilingEndTime", FirefoxTime(std::max(profile.to_ns, profile.from_ns), from_ns));
  json.Member("symbolicated", true).Key("pausedRanges").BeginArray().EndArray().Member("version", 24);
  json.Member("usesOnlyOneStackType", true).Member("sourceCodeIsNotOnSearchfox", true);
  WriteAccounting(profile, json);
  exporters::WriteFirefoxMarkerSchemas(json);
  json.EndObject();
}

// The graph adds up what it is given: each point is written as its difference from the one before. What is no number
// changes nothing.
void WriteCounter(const Profile& profile, const ProfileCounter& counter, uint64_t from_ns, JsonWriter& json) {
  constexpr const char* kUnits[] = {"number", "ns", "bytes"};
  const bool is_bytes = counter.unit == ProfileUnit::kBytes;
  const std::string& name = profile.strings[counter.name];
  const bool is_thread = counter.thread != ProfileCounter::kWholeProcess;
  const uint32_t thread = is_thread ? counter.thread : 0;
  const std::string pid = profile.threads.empty() ? "0" : std::to_string(profile.threads[thread].pid);
  json.BeginObject().Member("category", "perfkit").Member("name", name);
  json.Member("description", is_thread ? "of thread " + profile.strings[profile.threads[thread].name]
                                       : std::string("of the whole process"));
  json.Member("mainThreadIndex", 0).Member("pid", pid).Key("samples").BeginObject();
  json.Member("length", counter.points.size()).Key("count").BeginArray();
  double last = 0;
  for (const ProfileCounter::Point& point : counter.points) {
    const double value = std::isfinite(point.value) ? point.value : last;
    json.Value(value - last);
    last = value;
  }
  json.EndArray().Key("number").BeginArray();
  for (size_t i = 0; i < counter.points.size(); ++i) json.Value(0);
  json.EndArray().Key("timeDeltas").BeginArray();
  uint64_t last_ns = from_ns;
  for (const ProfileCounter::Point& point : counter.points) {
    json.Value(FirefoxTime(point.time_ns, last_ns));
    last_ns = point.time_ns;
  }
  json.EndArray().EndObject().Key("display").BeginObject().Member("graphType", "line-accumulated");
  json.Member("unit", kUnits[static_cast<size_t>(counter.unit)]).Member("color", "blue");
  json.Key("markerSchemaLocation").Null().Member("sortWeight", 50).Member("label", name);
  json.Key("tooltipRows").BeginArray().BeginObject().Member("type", "value").Member("source", "accumulated");
  json.Key("format").BeginObject().Member("unit", is_bytes ? "bytes" : "number").EndObject();
  json.Member("label", "above the least value shown").EndObject().EndArray().EndObject().EndObject();
}

}  // namespace

absl::Status WriteFirefox(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  size_t event = 0;
  if (!options.event.empty() || !profile.events.empty()) {
    const absl::StatusOr<size_t> chosen = profile::ChooseEvent(profile, options.event);
    if (!chosen.ok()) return chosen.status();
    event = *chosen;
  }
  exporters::GzipSink gzip(sink);
  const auto compress = [&](std::string_view bytes) { return gzip.Write(bytes); };
  profile::SinkBuffer out(compress);
  JsonWriter json(out);
  const uint64_t from_ns = EarliestTime(profile);
  const exporters::FirefoxTables tables(profile);
  json.BeginObject();
  WriteMeta(profile, event, from_ns, json);
  tables.WriteLibs(json);
  tables.WriteShared(json);
  exporters::WriteFirefoxThreads(profile, tables, event, from_ns, options, json);
  json.Key("pages").BeginArray().EndArray().Key("profilerOverhead").BeginArray().EndArray();
  json.Key("counters").BeginArray();
  for (const ProfileCounter& counter : profile.counters) WriteCounter(profile, counter, from_ns, json);
  json.EndArray().EndObject();
  if (absl::Status status = out.Finish(); !status.ok()) return status;
  return gzip.Finish();
}

}  // namespace perfkit
