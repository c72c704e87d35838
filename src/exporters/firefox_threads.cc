// Threads of a Firefox profile. Such a thread has one table of samples with weights of one unit, so a thread of the
// profile becomes several: one for each event, and one for merged samples of an event, which have no times. The first
// has the markers (zones, waits), too.
//
// The samples are not copied: their indexes are sorted by thread and event, and each column is written from one part of
// them.
#include "src/exporters/firefox_threads.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/exporters/accounting_text.h"
#include "src/exporters/unique_tids.h"
#include "src/exporters/zones_and_tasks.h"
#include "src/profile/wait_text.h"

namespace perfkit::exporters {
namespace {

using Indexes = std::span<const uint32_t>;

// Indexes from 0 to `size`, in the order of `key`.
template <class Key>
std::vector<uint32_t> Sorted(size_t size, Key&& key) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return order;
}

// Those of `order` for which `key` is `value`.
template <class Key, class Value>
Indexes Part(const std::vector<uint32_t>& order, const Value& value, Key&& key) {
  const auto from = std::lower_bound(order.begin(), order.end(), value,
                                     [&](uint32_t index, const Value& wanted) { return key(index) < wanted; });
  const auto to = std::upper_bound(from, order.end(), value,
                                   [&](const Value& wanted, uint32_t index) { return wanted < key(index); });
  return {from, to};
}

class ThreadsWriter {
 public:
  ThreadsWriter(const Profile& profile, const FirefoxTables& tables, size_t main_event, uint64_t from_ns,
                JsonWriter& json)
      : profile_(profile),
        threads_(WithUniqueTids(profile)),
        markers_(profile),
        tables_(tables),
        main_event_(main_event),
        from_ns_(from_ns),
        json_(json) {
    samples_ = Sorted(profile.samples.size(), [&](uint32_t i) { return KeyOf(i); });
    zones_ = Sorted(markers_.list().size(),
                    [&](uint32_t i) { return std::pair(markers_.list()[i].thread, markers_.list()[i].from_ns); });
  }

  void Write(const WriteOptions& options) {
    json_.Key("threads").BeginArray();
    if (profile_.threads.empty()) WriteThread({}, 0, main_event_, {}, "no threads", "", true);  // readers need one
    for (uint32_t thread = 0; thread < profile_.threads.size() && !json_.failed(); ++thread) {
      WriteEvents(thread);
      if (options.progress == nullptr) continue;
      const double done = static_cast<double>(thread + 1) / static_cast<double>(profile_.threads.size());
      options.progress(0.3 + 0.7 * done, options.progress_argument);
    }
    json_.EndArray();
  }

 private:
  using Key = std::tuple<uint32_t, size_t, bool>;  // thread, event, merged

  Key KeyOf(uint32_t index) const {
    const ProfileSample& sample = profile_.samples[index];
    return {sample.thread, sample.event, sample.merged()};
  }

  Indexes SamplesOf(const Key& key) const {
    return Part(samples_, key, [&](uint32_t i) { return KeyOf(i); });
  }

  void WriteEvents(uint32_t thread) {
    const ProfileThread& of_thread = threads_[thread];
    const std::string name = profile_.ThreadName(thread);
    WriteThread(of_thread, thread, main_event_, SamplesOf({thread, main_event_, false}), name, "", true);
    for (size_t event = 0; event < profile_.events.size(); ++event) {
      const std::string& of = profile_.events[event].name;
      const Indexes timed = SamplesOf({thread, event, false}), merged = SamplesOf({thread, event, true});
      if (event != main_event_ && !timed.empty()) {
        WriteThread(of_thread, thread, event, timed, name + " (" + of + ")", absl::StrFormat(".%d", event), false);
      }
      if (!merged.empty()) {
        WriteThread(of_thread, thread, event, merged, name + " (" + of + ", times unknown)",
                    absl::StrFormat(".%d.m", event), false);
      }
    }
  }

  void WriteThread(const ProfileThread& thread, uint32_t index, size_t event, Indexes samples, std::string_view name,
                   std::string_view tid_suffix, bool with_markers) {
    json_.BeginObject().Member("name", name).Member("isMainThread", with_markers && thread.tid == thread.pid);
    json_.Key("pausedRanges").BeginArray().EndArray().Member("pid", std::to_string(thread.pid));
    json_.Member("processName", profile_.program).Key("processShutdownTime").Null();
    json_.Member("processStartupTime", 0).Member("processType", "default");
    // Readers have no times before the file's begin: the profile may be a part of a longer one.
    json_.Member("registerTime", FirefoxTime(std::max(thread.first_ns, from_ns_), from_ns_));
    // Readers tell threads apart by tid, which may be a string: "42.1" is event 1 of thread 42.
    json_.Member("tid", std::to_string(thread.tid) + std::string(tid_suffix)).Key("unregisterTime");
    if (thread.last_ns == 0) {
      json_.Null();
    } else {
      json_.Value(FirefoxTime(std::max(thread.last_ns, from_ns_), from_ns_));
    }
    json_.Member("showMarkersInTimeline", true);
    WriteSamples(event, samples);
    WriteMarkers(index, with_markers);
    json_.EndObject();
  }

  void WriteSamples(size_t event, Indexes samples) {
    const ProfileUnit unit = profile_.events.empty() ? ProfileUnit::kCount : profile_.events[event].unit;
    constexpr const char* kWeightTypes[] = {"samples", "tracing-ms", "bytes"};
    json_.Key("samples").BeginObject().Member("length", samples.size());
    json_.Member("weightType", kWeightTypes[static_cast<size_t>(unit)]).Key("stack").BeginArray();
    for (const uint32_t i : samples) {
      const uint32_t stack = profile_.samples[i].stack;
      if (stack == ProfileStack::kRoot) {
        json_.Null();
      } else {
        json_.Value(tables_.StackOf(stack));
      }
    }
    json_.EndArray().Key("timeDeltas").BeginArray();
    // Times are differences, since a column of small numbers compresses better.
    uint64_t last_ns = from_ns_;
    for (const uint32_t i : samples) {
      const uint64_t time_ns = profile_.samples[i].merged() ? from_ns_ : profile_.samples[i].time_ns;
      json_.Value(FirefoxTime(time_ns, last_ns));
      last_ns = time_ns;
    }
    json_.EndArray().Key("weight").BeginArray();
    for (const uint32_t i : samples) {
      const uint64_t weight = profile_.samples[i].weight;
      if (unit == ProfileUnit::kNanoseconds) {
        json_.Value(static_cast<double>(weight) / 1e6);
      } else {
        json_.Value(weight);
      }
    }
    json_.EndArray().EndObject();
  }

  // Writes one column of the markers of a thread: first its zones, then its waits.
  template <class OfZone, class OfWait>
  void MarkerColumn(std::string_view name, Indexes zones, Indexes waits, OfZone&& of_zone, OfWait&& of_wait) {
    json_.Key(name).BeginArray();
    for (const uint32_t i : zones) of_zone(markers_.list()[i]);
    for (const uint32_t i : waits) of_wait(profile_.samples[i]);
    json_.EndArray();
  }

  void WriteMarkers(uint32_t thread, bool with_markers) {
    Indexes zones, waits;
    if (with_markers) {
      zones = Part(zones_, thread, [&](uint32_t i) { return markers_.list()[i].thread; });
      waits = SamplesOf({thread, profile_.EventIndex(kOffCpuEvent), false});
    }
    const auto column = [&](std::string_view name, auto&& of_zone, auto&& of_wait) {
      MarkerColumn(name, zones, waits, of_zone, of_wait);
    };
    const auto number = [&](auto value) { return [this, value](const auto&) { json_.Value(value); }; };
    json_.Key("markers").BeginObject().Member("length", zones.size() + waits.size());
    const auto other = static_cast<unsigned>(FirefoxCategory::kOther);
    column("category", number(other), number(other));
    column(
        "data", [&](const ProfileZone& zone) { WriteZone(zone); }, [&](const ProfileSample& wait) { WriteWait(wait); });
    column(
        "endTime", [&](const ProfileZone& zone) { json_.Value(FirefoxTime(zone.to_ns, from_ns_)); },
        [&](const ProfileSample& wait) { json_.Value(FirefoxTime(wait.time_ns + wait.weight, from_ns_)); });
    column(
        "name", [&](const ProfileZone& zone) { json_.Value(zone.name); },
        [&](const ProfileSample&) { json_.Value(tables_.wait_name()); });
    constexpr int kInterval = 1;
    column("phase", number(kInterval), number(kInterval));
    column(
        "startTime", [&](const ProfileZone& zone) { json_.Value(FirefoxTime(zone.from_ns, from_ns_)); },
        [&](const ProfileSample& wait) { json_.Value(FirefoxTime(wait.time_ns, from_ns_)); });
    json_.EndObject();
  }

  // Not "cause": readers take a field of that name for a stack.
  void WriteZone(const ProfileZone& zone) {
    json_.BeginObject().Member("type", zone.is_frame ? "Frame" : "Zone");
    if (zone.cause != 0) json_.Member("late", profile_.strings[zone.cause]);
    json_.EndObject();
  }

  void WriteWait(const ProfileSample& sample) {
    json_.BeginObject().Member("type", "Wait");
    const std::string reason =
        sample.wait == ProfileSample::kNoWait ? "" : profile::WaitText(profile_, profile_.waits[sample.wait]);
    if (!reason.empty()) json_.Member("reason", reason);
    json_.Member("stack_quality", StackQualityName(sample.quality)).EndObject();
  }

  const Profile& profile_;
  const std::vector<ProfileThread> threads_;
  const ZonesAndTasks markers_;
  const FirefoxTables& tables_;
  const size_t main_event_;
  const uint64_t from_ns_;
  JsonWriter& json_;
  std::vector<uint32_t> samples_, zones_;
};

void WriteSchema(JsonWriter& json, std::string_view name, std::string_view label,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  json.BeginObject().Member("name", name).Key("display").BeginArray();
  for (const char* const place : {"marker-chart", "marker-table", "timeline-overview"}) json.String(place);
  json.EndArray().Member("chartLabel", label).Member("tooltipLabel", label).Member("tableLabel", label);
  json.Key("fields").BeginArray();
  for (const auto& [key, text] : fields) {
    json.BeginObject().Member("key", key).Member("label", text).Member("format", "string").EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

void WriteFirefoxThreads(const Profile& profile, const FirefoxTables& tables, size_t event, uint64_t from_ns,
                         const WriteOptions& options, JsonWriter& json) {
  ThreadsWriter(profile, tables, event, from_ns, json).Write(options);
}

void WriteFirefoxMarkerSchemas(JsonWriter& json) {
  json.Key("markerSchema").BeginArray();
  WriteSchema(json, "Zone", "{marker.name}", {{"late", "Late because"}});
  WriteSchema(json, "Frame", "{marker.name}", {{"late", "Late because"}});
  WriteSchema(json, "Wait", "{marker.name}: {marker.data.reason}",
              {{"reason", "Waited for"}, {"stack_quality", "Its stack is"}});
  json.EndArray();
}

}  // namespace perfkit::exporters
