// Chrome's JSON trace events ("Trace Event Format",
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
//
// Zones, frames and waits are complete events ("X"). Those of one thread have to nest: what does not (by hand, or a
// wait that a zone ends in) becomes a pair of asynchronous events ("b", "e") instead, which may overlap as they like.
// Parts of tasks are such pairs, too: those of one task have one id, whatever their threads.
// Stacks are V8's CPU profiles. These have no weights: a sample counts once, and only samples of one event can be
// shown.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/exporters.h"
#include "src/exporters/accounting_text.h"
#include "src/exporters/chrome_stacks.h"
#include "src/exporters/json_writer.h"
#include "src/exporters/unique_tids.h"
#include "src/profile/event_choice.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit {
namespace {

using exporters::BeginChromeEvent;
using exporters::ChromeStacks;
using exporters::ChromeTime;
using exporters::JsonWriter;

// A zone, a frame or a wait.
struct Slice {
  uint32_t thread = 0;
  uint64_t from_ns = 0, to_ns = 0;
  uint32_t index = 0;  // in Profile::zones; of a wait, in Profile::samples
  bool is_wait = false;
};

class ChromeWriter {
 public:
  ChromeWriter(const Profile& profile, size_t event, JsonWriter& json)
      : profile_(profile), threads_(exporters::WithUniqueTids(profile)), event_(event), json_(json) {}

  void Write(const WriteOptions& options) {
    const auto progress = [&](double done) {
      if (options.progress != nullptr) options.progress(done, options.progress_argument);
    };
    json_.BeginObject().Key("traceEvents").BeginArray();
    WriteNames();
    WriteSlices();
    WriteTasks();
    WriteCounters();
    progress(0.4);
    WriteStacks(progress);
    json_.EndArray().Member("displayTimeUnit", "ns");
    WriteAccounting();
    json_.EndObject();
  }

 private:
  void WriteName(const char* what, const ProfileThread& thread, std::string_view name) {
    BeginChromeEvent(json_, "M", thread, 0).Member("name", what).Key("args").BeginObject();
    json_.Member("name", name).EndObject().EndObject();
  }

  void WriteNames() {
    for (uint32_t i = 0; i < profile_.threads.size(); ++i) {
      WriteName("process_name", threads_[i], profile_.program);
      WriteName("thread_name", threads_[i], profile_.ThreadName(i));
    }
  }

  // A wait is a slice as a zone is: viewers then show within which zone a thread waited.
  // In the order in which the outer ones come before the inner ones.
  std::vector<Slice> Slices() const {
    std::vector<Slice> slices;
    for (uint32_t i = 0; i < profile_.zones.size(); ++i) {
      const ProfileZone& zone = profile_.zones[i];
      slices.push_back({.thread = zone.thread, .from_ns = zone.from_ns, .to_ns = zone.to_ns, .index = i});
    }
    const size_t off_cpu = profile_.EventIndex(kOffCpuEvent);
    for (uint32_t i = 0; i < profile_.samples.size(); ++i) {
      const ProfileSample& sample = profile_.samples[i];
      if (sample.event != off_cpu || sample.merged()) continue;
      slices.push_back({.thread = sample.thread,
                        .from_ns = sample.time_ns,
                        .to_ns = sample.time_ns + sample.weight,
                        .index = i,
                        .is_wait = true});
    }
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::tuple(a.thread, a.from_ns, b.to_ns) < std::tuple(b.thread, b.from_ns, a.to_ns);
    });
    return slices;
  }

  void WriteSlices() {
    // Slices of a thread come sorted by begin, so one that ends after the innermost open one cannot nest.
    std::vector<uint64_t> open;  // where those end that are around the next one
    uint32_t thread = UINT32_MAX, pairs = 0;
    for (const Slice& slice : Slices()) {
      if (std::exchange(thread, slice.thread) != slice.thread) open.clear();
      while (!open.empty() && open.back() <= slice.from_ns) open.pop_back();
      if (!open.empty() && slice.to_ns > open.back()) {
        const std::string id = absl::StrFormat("0x%x", ++pairs);
        WriteSlice("b", slice, slice.from_ns, id);
        WriteSlice("e", slice, slice.to_ns, id);
      } else {
        WriteSlice("X", slice, slice.from_ns, "");
        open.push_back(slice.to_ns);
      }
    }
  }

  // `id`: of a pair of asynchronous events.
  void WriteSlice(const char* phase, const Slice& slice, uint64_t time_ns, std::string_view id) {
    BeginChromeEvent(json_, phase, threads_[slice.thread], time_ns);
    if (id.empty()) {
      json_.Member("dur", ChromeTime(slice.to_ns - slice.from_ns));
    } else {
      json_.Member("id", id);
    }
    if (slice.is_wait) {
      WriteWait(profile_.samples[slice.index]);
    } else {
      WriteZone(profile_.zones[slice.index]);
    }
    json_.EndObject();
  }

  void WriteZone(const ProfileZone& zone) {
    json_.Member("cat", zone.is_frame ? "frame" : "zone").Member("name", profile_.strings[zone.name]);
    json_.Key("args").BeginObject();
    if (zone.cause != 0) json_.Member("late", profile_.strings[zone.cause]);
    if (zone.reason != 0) json_.Member("kept", profile_.strings[zone.reason]);
    if (zone.state != 0) json_.Member("state", profile_.strings[zone.state]);
    if (zone.worst_by != 0) json_.Member("worst by", profile_.strings[zone.worst_by]);
    json_.EndObject();
  }

  void WriteWait(const ProfileSample& sample) {
    const std::string reason =
        sample.wait == ProfileSample::kNoWait ? "" : profile::WaitText(profile_, profile_.waits[sample.wait]);
    json_.Member("cat", "wait").Member("name", "off-CPU").Key("args").BeginObject();
    if (!reason.empty()) json_.Member("reason", reason);
    json_.Member("stack", StackQualityName(sample.quality)).EndObject();
  }

  void WriteTasks() {
    for (const ProfileTaskPart& part : profile_.task_parts) {
      for (const bool is_end : {false, true}) {
        BeginChromeEvent(json_, is_end ? "e" : "b", threads_[part.thread], is_end ? part.to_ns : part.from_ns);
        json_
            .Member("id", absl::StrFormat("%s %d of %d", profile_.strings[part.name], part.number,
                                          profile_.threads[part.thread].pid))
            .Member("cat", "task");
        json_.Member("name", profile_.strings[part.task]).Key("args").BeginObject();
        json_.Member("task_id", part.number).EndObject().EndObject();
      }
    }
  }

  void WriteCounters() {
    for (const ProfileCounter& counter : profile_.counters) {
      const bool is_thread = counter.thread != ProfileCounter::kWholeProcess;
      // An event needs a pid and tid; those of a counter of the whole process are the first thread's.
      if (profile_.threads.empty()) break;
      const ProfileThread& thread = threads_[is_thread ? counter.thread : 0];
      std::string name = profile_.strings[counter.name];
      // Viewers join counters of one process by their names, and threads inherit theirs.
      if (is_thread) name += " (" + profile::ThreadText(profile_, counter.thread) + ")";
      for (const ProfileCounter::Point& point : counter.points) {
        if (!std::isfinite(point.value)) continue;
        BeginChromeEvent(json_, "C", thread, point.time_ns).Member("name", name).Key("args").BeginObject();
        json_.Member(ProfileUnitName(counter.unit), point.value).EndObject().EndObject();
      }
    }
  }

  template <class Progress>
  void WriteStacks(const Progress& progress) {
    const std::vector<ProfileSample>& samples = profile_.samples;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < samples.size(); ++i) {
      if (samples[i].event == event_ && !samples[i].merged()) order.push_back(i);
    }
    // V8 has a profile for each thread. Within one, samples stay in the order of time that the table has.
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return samples[a].thread < samples[b].thread; });
    ChromeStacks stacks(profile_, threads_, json_);
    for (auto from = order.begin(); from != order.end() && !json_.failed();) {
      const uint32_t thread = samples[*from].thread;
      const auto to = std::find_if(from, order.end(), [&](uint32_t i) { return samples[i].thread != thread; });
      stacks.Write(thread, {from, to});
      progress(0.4 + 0.6 * static_cast<double>(to - order.begin()) / static_cast<double>(order.size()));
      from = to;
    }
  }

  // What the format cannot hold is said with the accounting.
  void WriteAccounting() {
    Profile::Sum merged;
    std::vector<std::string> others;
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      if (i != event_) others.push_back(profile_.events[i].name);
    }
    for (const ProfileSample& sample : profile_.samples) {
      if (sample.event == event_ && sample.merged()) merged.samples += sample.samples;
    }
    size_t number = 0;
    const auto say = [&](std::string_view text) { json_.Member(absl::StrFormat("accounting %d", ++number), text); };
    json_.Key("otherData").BeginObject().Member("writer", "perfkit");
    for (const std::string& line : exporters::AccountingLines(profile_)) say(line);
    if (!profile_.events.empty()) say("stacks here: of " + profile_.events[event_].name + ", each sample counted once");
    for (const std::string& name : others) say("not here: the stacks of " + name);
    if (merged.samples > 0) say(absl::StrFormat("not here: %d samples whose times were given up", merged.samples));
    json_.EndObject();
  }

  const Profile& profile_;
  const std::vector<ProfileThread> threads_;
  const size_t event_;
  JsonWriter& json_;
};

}  // namespace

absl::Status WriteChrome(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  size_t event = 0;
  if (!options.event.empty() || !profile.events.empty()) {
    const absl::StatusOr<size_t> chosen = profile::ChooseEvent(profile, options.event);
    if (!chosen.ok()) return chosen.status();
    event = *chosen;
  }
  profile::SinkBuffer out(sink);
  JsonWriter json(out);
  ChromeWriter(profile, event, json).Write(options);
  return out.Finish();
}

}  // namespace perfkit
