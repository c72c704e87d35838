// The data of the HTML page, as columns that index each other. Columns compress better than rows, and small differences
// better than times. Names are known by their index: those of code without a name are made here, and follow the
// profile's own strings. The tables go out one column after the other, so that no second copy of a profile is held.
// html/data.js is the reader: what changes here has to change there.
#include "src/exporters/html_data.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/exporters/accounting_text.h"
#include "src/exporters/zones_and_tasks.h"
#include "src/profile/stack_losses.h"
#include "src/profile/wait_text.h"

namespace perfkit::exporters {
namespace {

// Whether the location, or one of its calls, goes by its address.
bool IsUnnamed(const Profile& profile, const ProfileLocation& location, uint32_t index) {
  if (location.calls == 0) return true;
  for (const ProfileCall& call : profile.CallsAt(index)) {
    if (call.function == 0) return true;
  }
  return false;
}

// A column of times, each as its difference from the one before; the first from the profile's beginning.
template <class Table, class Time>
void TimeColumn(JsonWriter& json, std::string_view name, const Table& table, uint64_t from_ns, Time&& time) {
  uint64_t last_ns = from_ns;
  Column(json, name, table, [&](const auto& entry) {
    const auto difference = static_cast<int64_t>(time(entry) - last_ns);
    last_ns = time(entry);
    return difference;
  });
}

void WriteNames(const Profile& profile, JsonWriter& json) {
  json.Key("names").BeginArray();
  for (const std::string& name : profile.strings) json.String(name);
  for (uint32_t i = 0; i < profile.locations.size(); ++i) {
    if (IsUnnamed(profile, profile.locations[i], i)) json.String(profile.UnnamedCode(i));
  }
  json.EndArray();
}

void WriteEvents(const Profile& profile, JsonWriter& json) {
  json.Key("events").BeginArray();
  for (const ProfileEvent& event : profile.events) {
    json.BeginObject().Member("name", event.name).Member("unit", ProfileUnitName(event.unit));
    json.Member("off_cpu", event.name == kOffCpuEvent).Member("user_only", event.user_only);
    const auto& kernel = event.accounting;
    json.Key("accounting").BeginObject();
    json.Member("counted", kernel.counted).Member("counted_is_lower_bound", kernel.counted_is_lower_bound);
    json.Member("delivered", kernel.delivered).Member("duplicates", kernel.duplicates).Member("lost", kernel.lost);
    json.Member("paused", kernel.paused).Member("malformed", kernel.malformed).Member("foreign", kernel.foreign);
    json.Member("throttled", kernel.throttled).Member("unsampled_ns", kernel.unsampled_ns);
    json.Key("stacks_not_taken").BeginObject();
    for (const auto& [what, count] : profile::kStackLosses) {
      if (kernel.stacks.*count != 0) json.Member(what, kernel.stacks.*count);
    }
    json.EndObject().EndObject().EndObject();
  }
  json.EndArray();
}

void WriteAccounting(const ProfileAccounting& accounting, JsonWriter& json) {
  json.Key("accounting").BeginObject();
  json.Member("times_forgotten", accounting.times_forgotten).Member("stacks_forgotten", accounting.stacks_forgotten);
  json.Member("dumps_dropped", accounting.dumps_dropped);
  json.Member("addresses_forgotten", accounting.addresses_forgotten)
      .Member("waits_forgotten", accounting.waits_forgotten);
  json.Member("zones_forgotten", accounting.zones_forgotten).Member("frames_dropped", accounting.frames_dropped);
  json.Member("task_parts_forgotten", accounting.task_parts_forgotten);
  json.Member("task_records_lost", accounting.task_records_lost);
  json.Member("zone_records_lost", accounting.zone_records_lost).Member("switches_lost", accounting.switches_lost);
  json.Member("side_band_lost", accounting.side_band_lost).Member("unattributed", accounting.unattributed);
  json.Member("own_cpu_ns", accounting.own_cpu_ns).Member("naming_cpu_ns", accounting.naming_cpu_ns);
  json.Member("kernel_cpu_ns", accounting.kernel_cpu_ns).EndObject();
  json.Key("notes").BeginArray();
  for (const std::string& note : accounting.notes) json.String(note);
  json.EndArray();
}

void WriteThreads(const Profile& profile, JsonWriter& json) {
  const auto column = [&](std::string_view name, auto member) {
    Column(json, name, profile.threads, [&](const ProfileThread& thread) { return thread.*member; });
  };
  json.Key("threads").BeginObject();
  column("pid", &ProfileThread::pid);
  column("tid", &ProfileThread::tid);
  column("name", &ProfileThread::name);
  column("ended", &ProfileThread::ended);
  column("on", &ProfileThread::on_ns);
  column("off", &ProfileThread::off_ns);
  json.EndObject();
}

void WriteCode(const Profile& profile, JsonWriter& json) {
  json.Key("modules").BeginObject();
  Column(json, "path", profile.modules, [](const ProfileModule& module) { return module.path; });
  json.EndObject().Key("calls").BeginObject();
  Column(json, "function", profile.calls, [](const ProfileCall& call) { return call.function; });
  Column(json, "file", profile.calls, [](const ProfileCall& call) { return call.file; });
  Column(json, "line", profile.calls, [](const ProfileCall& call) { return call.line; });
  Column(json, "inlined", profile.calls, [](const ProfileCall& call) { return call.inlined ? 1 : 0; });
  json.EndObject().Key("locations").BeginObject();
  Column(json, "module", profile.locations, [](const ProfileLocation& location) {
    return location.module == ProfileLocation::kNoModule ? int64_t{-1} : int64_t{location.module};
  });
  Column(json, "kernel", profile.locations, [](const ProfileLocation& location) { return location.kernel ? 1 : 0; });
  Column(json, "first", profile.locations, [](const ProfileLocation& location) { return location.first_call; });
  Column(json, "calls", profile.locations, [](const ProfileLocation& location) { return location.calls; });
  // Counts as WriteNames does: both visit the locations in order and take those that are unnamed.
  auto next_name = static_cast<uint32_t>(profile.strings.size());
  uint32_t index = 0;
  Column(json, "name", profile.locations,
         [&](const ProfileLocation& location) { return IsUnnamed(profile, location, index++) ? next_name++ : 0; });
  json.EndObject();
}

void WriteStacks(const Profile& profile, JsonWriter& json) {
  json.Key("stacks").BeginObject();
  uint32_t index = 0;
  Column(json, "up", profile.stacks, [&](const ProfileStack& stack) {
    const uint32_t self = index++;
    // Parents come first, so that the difference is at least 1 and 0 is free for "none".
    return stack.parent == ProfileStack::kRoot ? 0 : self - stack.parent;
  });
  Column(json, "location", profile.stacks, [](const ProfileStack& stack) { return stack.location; });
  Column(json, "flags", profile.stacks,
         [](const ProfileStack& stack) { return (stack.is_guess ? 1 : 0) | (stack.is_stitched ? 2 : 0); });
  json.EndObject();
}

// The index of a stack or a wait, from 1 on; 0: there is none.
uint64_t OneBased(uint32_t index) { return index == UINT32_MAX ? 0 : uint64_t{index} + 1; }

void WriteSamples(const Profile& profile, JsonWriter& json) {
  size_t merged = 0;
  while (merged < profile.samples.size() && profile.samples[merged].merged()) ++merged;
  // Merged samples are the first (Profile::samples): the column of times begins after them.
  const auto with_time = std::span(profile.samples).subspan(merged);
  uint64_t merged_samples = 0;
  for (const ProfileSample& sample : std::span(profile.samples).first(merged)) merged_samples += sample.samples;
  json.Member("merged_samples", merged_samples);
  const auto column = [&](std::string_view name, auto&& value) { Column(json, name, profile.samples, value); };
  column("wait_of", [](const ProfileSample& sample) { return OneBased(sample.wait); });
  json.Key("samples").BeginObject().Member("merged", merged);
  TimeColumn(json, "time", with_time, profile.from_ns, [](const ProfileSample& sample) { return sample.time_ns; });
  column("weight", [](const ProfileSample& sample) { return sample.weight; });
  column("samples", [](const ProfileSample& sample) { return sample.samples; });
  column("thread", [](const ProfileSample& sample) { return sample.thread; });
  column("stack", [](const ProfileSample& sample) { return OneBased(sample.stack); });
  column("event", [](const ProfileSample& sample) { return sample.event; });
  column("quality", [](const ProfileSample& sample) { return static_cast<unsigned>(sample.quality); });
  json.EndObject();
}

void WriteTimeline(const Profile& profile, JsonWriter& json) {
  const ZonesAndTasks zones(profile);
  json.Key("waits").BeginObject();
  Column(json, "preempted", profile.waits, [](const ProfileWait& wait) { return wait.preempted ? 1 : 0; });
  json.Key("text").BeginArray();
  for (const ProfileWait& wait : profile.waits) json.String(profile::WaitText(profile, wait));
  json.EndArray().EndObject().Key("zones").BeginObject();
  TimeColumn(json, "from", zones.list(), profile.from_ns, [](const ProfileZone& zone) { return zone.from_ns; });
  Column(json, "length", zones.list(), [](const ProfileZone& zone) { return zone.to_ns - zone.from_ns; });
  Column(json, "thread", zones.list(), [](const ProfileZone& zone) { return zone.thread; });
  Column(json, "name", zones.list(), [](const ProfileZone& zone) { return zone.name; });
  Column(json, "cause", zones.list(), [](const ProfileZone& zone) { return zone.cause; });
  Column(json, "is_frame", zones.list(), [](const ProfileZone& zone) { return zone.is_frame ? 1 : 0; });
  json.EndObject().Key("counters").BeginArray();
  for (const ProfileCounter& counter : profile.counters) {
    json.BeginObject().Member("name", counter.name).Member("unit", ProfileUnitName(counter.unit));
    json.Member("thread", counter.thread == ProfileCounter::kWholeProcess ? int64_t{-1} : int64_t{counter.thread});
    using Point = ProfileCounter::Point;
    TimeColumn(json, "times", counter.points, profile.from_ns, [](const Point& point) { return point.time_ns; });
    Column(json, "values", counter.points, [](const Point& point) { return point.value; });
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

void WriteHtmlData(const Profile& profile, const WriteOptions& options, JsonWriter& json,
                   absl::FunctionRef<void()> add_members) {
  const auto progress = [&](double done) {
    if (options.progress != nullptr) options.progress(done, options.progress_argument);
  };
  json.BeginObject().Member("program", profile.program);
  json.Member("span", profile.to_ns - std::min(profile.from_ns, profile.to_ns));
  json.Key("qualities").BeginArray();
  for (const StackQuality quality : {StackQuality::kWhole, StackQuality::kPart, StackQuality::kLeafOnly,
                                     StackQuality::kLastKnown, StackQuality::kNone}) {
    json.String(StackQualityName(quality));
  }
  json.EndArray();
  WriteNames(profile, json);
  WriteEvents(profile, json);
  WriteAccounting(profile.accounting, json);
  WriteThreads(profile, json);
  WriteCode(profile, json);
  WriteStacks(profile, json);
  progress(0.2);
  WriteSamples(profile, json);
  progress(0.9);
  WriteTimeline(profile, json);
  add_members();
  json.EndObject();
  progress(1);
}

}  // namespace perfkit::exporters
