// Traces of WritePerfetto, decoded by hand: whatever a profile holds, the trace says the same.
#include <algorithm>
#include <catch2/catch.hpp>

#include "perfkit/exporters.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/large_profile.h"
#include "tests/exporters/perfetto_file.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/allocations.h"
#include "tests/support/work.h"

namespace perfkit::exporters {
namespace {

using testing::PerfettoFile;
using Texts = std::multiset<std::string>;

std::string TraceFileOf(const Profile& profile) {
  std::string file;
  const absl::Status status = WritePerfetto(profile, {}, [&](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  });
  CHECK(status == absl::OkStatus());
  return file;
}

std::string ThreadText(const Profile& profile, uint32_t index) {
  const ProfileThread& thread = profile.threads[index];
  return absl::StrFormat("thread %d/%d %s", thread.pid, thread.tid, profile.strings[thread.name]);
}

// Calls as PerfettoFile has them: root first, code without names by its module and address.
std::string CallsText(const Profile& profile, uint32_t stack) {
  std::string text;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t index = profile.stacks[stack].location;
    const ProfileLocation& location = profile.locations[index];
    std::string where;
    if (location.module != ProfileLocation::kNoModule) {
      const ProfileModule& module = profile.modules[location.module];
      for (const uint32_t name : {module.path, module.build_id}) {
        if (name != 0) where += profile.strings[name] + " ";
      }
      where += absl::StrFormat("%x ", location.address);
    }
    const std::string kind = location.kernel ? " kernel" : " native";
    if (location.calls == 0) text = " | " + where + testing::CallText(profile.UnnamedCode(index), "", 0) + kind + text;
    for (const ProfileCall& call : profile.CallsAt(index)) {
      text = " | " + where + testing::CallText(profile.CallName(index, call), profile.strings[call.file], call.line) +
             kind + text;
    }
  }
  return text;
}

Texts SamplesOf(const Profile& profile) {
  Texts texts;
  for (const ProfileSample& sample : profile.samples) {
    const ProfileThread& thread = profile.threads[sample.thread];
    const std::string& event = profile.events[sample.event].name;
    std::string text = absl::StrFormat("%s %s %d %d %d/%d", sample.merged() ? "?" : std::to_string(sample.time_ns),
                                       event, sample.samples, sample.weight, thread.pid, thread.tid);
    if (sample.task != 0) {
      text += " task=" + profile.strings[sample.task];
    } else if (sample.label != 0) {
      text += " label=" + profile.strings[sample.label];
    }
    if (sample.stack != ProfileStack::kRoot && event != kOffCpuEvent) {
      text += profile.locations[profile.stacks[sample.stack].location].kernel ? " kernel" : " user";
    }
    text += " " + std::string(StackQualityName(sample.quality)) + " " + CallsText(profile, sample.stack);
    texts.insert(text);
  }
  return texts;
}

std::string WaitText(const Profile& profile, const ProfileSample& sample) {
  const ProfileWait wait = sample.wait == ProfileSample::kNoWait ? ProfileWait() : profile.waits[sample.wait];
  std::string name = wait.blocked_in_syscall ? "syscall " + std::to_string(wait.syscall) : "off the CPU";
  if (wait.detail != 0) name = profile.strings[wait.detail];
  if (wait.preempted) name = "preempted";
  name += " stack=" + std::string(StackQualityName(sample.quality));
  if (!wait.blocked_in_syscall) return name;
  name += " syscall=" + std::to_string(wait.syscall) + " arguments=0";
  for (const uint64_t argument : wait.arguments) name += "," + std::to_string(argument);
  return name;
}

// The process of a thread, as its track is named.
std::string ProcessText(const Profile& profile, uint32_t index) {
  const uint32_t pid = profile.threads[index].pid;
  std::string name = pid == profile.threads[0].pid ? profile.program : "";
  for (const ProfileThread& thread : profile.threads) {
    if (name.empty() && thread.tid == thread.pid && thread.pid == pid) name = profile.strings[thread.name];
  }
  return absl::StrFormat("process %d %s", pid, name);
}

Texts SlicesOf(const Profile& profile) {
  Texts texts;
  for (const ProfileZone& zone : profile.zones) {
    const std::string track = ThreadText(profile, zone.thread);
    const std::string cause = zone.cause == 0 ? "" : " cause=" + profile.strings[zone.cause];
    texts.insert(absl::StrFormat("%s: %s%s %d-%d", zone.is_frame ? track + ", frames" : track,
                                 profile.strings[zone.name], cause, zone.from_ns, zone.to_ns));
  }
  for (const ProfileTaskPart& part : profile.task_parts) {
    texts.insert(absl::StrFormat("%s, tasks, %s %d: %s thread=%s %d-%d", ProcessText(profile, part.thread),
                                 profile.strings[part.name], part.number, profile.strings[part.task],
                                 profile.ThreadName(part.thread), part.from_ns, part.to_ns));
  }
  for (const ProfileSample& sample : profile.samples) {
    if (profile.events[sample.event].name != kOffCpuEvent || sample.merged()) continue;
    texts.insert(absl::StrFormat("%s, off the CPU: %s %d-%d", ThreadText(profile, sample.thread),
                                 WaitText(profile, sample), sample.time_ns, sample.time_ns + sample.weight));
  }
  return texts;
}

// The slices of a trace, without the accounting's. Those that do not nest have tracks of their own below the thread's.
Texts SlicesIn(const PerfettoFile& file) {
  Texts texts;
  for (std::string text : file.slices) {
    if (text.find("perfkit: accounting ") != std::string::npos) continue;
    if (const size_t at = text.find(", zones: "); at != std::string::npos) text.erase(at, 7);
    texts.insert(text);
  }
  return texts;
}

std::vector<std::string> CountersOf(const Profile& profile) {
  std::vector<std::string> texts;
  for (const ProfileCounter& counter : profile.counters) {
    std::string track;
    if (counter.thread != ProfileCounter::kWholeProcess) {
      track = ThreadText(profile, counter.thread) + ", ";
    } else if (!profile.threads.empty()) {
      track = ProcessText(profile, 0) + ", ";
    }
    for (const ProfileCounter::Point& point : counter.points) {
      texts.push_back(absl::StrFormat("%s%s: %d %g", track, profile.strings[counter.name], point.time_ns, point.value));
    }
  }
  return texts;
}

TEST_CASE("perfetto: samples, slices and counters are in the trace, with their times", "[exporters][perfetto]") {
  const Profile profile = profile::SampleProfile();
  const PerfettoFile file(TraceFileOf(profile));
  CHECK(file.samples == SamplesOf(profile));
  CHECK(SlicesIn(file) == SlicesOf(profile));
  CHECK(file.counters == CountersOf(profile));
  CHECK(file.units.begin()->second == 2);  // UNIT_COUNT
  CHECK(file.sources == std::set<std::string>{"perfkit.cpu-clock", "perfkit.off-cpu", "perfkit.page-faults"});
  CHECK(file.slices.begin()->find("perfkit: accounting 1=perfkit: app, ") != std::string::npos);
  CHECK(file.slices.begin()->find("=3 samples lost 1000000000-1200000000") != std::string::npos);
}

TEST_CASE("perfetto: the trace's clock is CLOCK_MONOTONIC", "[exporters][perfetto]") {
  Profile profile = profile::SampleProfile();
  const PerfettoFile file(TraceFileOf(profile));
  CHECK(file.trace_clock == 3);
  CHECK(file.clocks == std::map<uint64_t, uint64_t>{{3, 1'000'000'000}, {1, 1'700'000'001'000'000'000}});
  profile.realtime_offset_ns = 0;  // not known
  CHECK(PerfettoFile(TraceFileOf(profile)).clocks == std::map<uint64_t, uint64_t>{{3, 1'000'000'000}});
}

TEST_CASE("perfetto: random profiles come back as they were", "[exporters][perfetto]") {
  for (uint64_t seed = 1; seed <= testing::Seeds(1'000); ++seed) {
    const Profile profile = testing::AnyProfile(seed).Make();
    INFO("seed " << seed);
    REQUIRE(profile.Check() == absl::OkStatus());
    const std::string bytes = TraceFileOf(profile);
    const PerfettoFile file(bytes);
    REQUIRE(file.samples == SamplesOf(profile));
    REQUIRE(SlicesIn(file) == SlicesOf(profile));
    REQUIRE(file.counters == CountersOf(profile));
    REQUIRE((TraceFileOf(profile) == bytes));
  }
}

TEST_CASE("perfetto: merged samples are a stream that says that their times are not known", "[exporters][perfetto]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "t");
  builder.AddSample({.weight = 5'000, .samples = 5});
  builder.AddSample({.time_ns = 7, .weight = 1'000});
  const PerfettoFile file(TraceFileOf(builder.Take()));
  CHECK(file.sources == std::set<std::string>{"perfkit.cpu-clock", "perfkit.cpu-clock.times-unknown"});
  CHECK(file.samples == Texts{"7 cpu-clock 1 1000 1/1 none ", "? cpu-clock 5 5000 1/1 none "});
}

TEST_CASE("perfetto: followers are weights of the sample that they follow", "[exporters][perfetto]") {
  ProfileBuilder builder;
  for (const char* const name : {"cycles", "instructions"}) builder.AddEvent({.name = name});
  builder.AddThread(1, 1, "t");
  builder.AddSample({.time_ns = 7, .weight = 100});
  builder.AddSample({.time_ns = 7, .weight = 250, .samples = 0, .event = 1});
  builder.AddSample({.time_ns = 8, .weight = 3, .samples = 0, .event = 1});  // follows no sample
  const Profile profile = builder.Take();
  const PerfettoFile file(TraceFileOf(profile));
  CHECK(file.samples == SamplesOf(profile));
  CHECK(file.sources == std::set<std::string>{"perfkit.cycles", "perfkit.instructions"});
}

TEST_CASE("perfetto: a profile without samples is a trace without samples", "[exporters][perfetto]") {
  const PerfettoFile file{TraceFileOf(Profile())};
  CHECK(file.samples.empty());
  CHECK(file.slices.size() == 1);  // the accounting
}

TEST_CASE("perfetto: names of any bytes become valid UTF-8", "[exporters][perfetto]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu\xfe"});
  const uint32_t stack = builder.Stack(ProfileStack::kRoot, builder.Function("f\xff", "/li\x80", "\xed\xa0\x80", 1));
  builder.AddSample({.time_ns = 1,
                     .weight = 1,
                     .thread = builder.AddThread(1, 1, "t\xf5"),
                     .stack = stack,
                     .label = builder.String("l\xc0"),
                     .quality = StackQuality::kWhole});
  builder.AddZone({.name = builder.String("z\xff"), .cause = builder.String("c\xff")});
  const PerfettoFile file(TraceFileOf(builder.Take()));
  const std::string bad = "\xef\xbf\xbd";
  for (const std::string& text : {"f" + bad, "/li" + bad, bad + bad + bad, "cpu" + bad, "l" + bad}) {
    CHECK(file.texts.contains(text));
  }
  CHECK(file.slices.contains("thread 1/1 t" + bad + ": z" + bad + " cause=c" + bad + " 0-0"));
}

TEST_CASE("perfetto: whichever piece a sink refuses, its status is the writer's", "[exporters][perfetto]") {
  const Profile profile = testing::LargeProfile(10'000);
  const absl::Status full(absl::StatusCode::kResourceExhausted, "disk full");
  int refused = 1;
  for (;; ++refused) {
    int pieces = 0;
    const absl::Status status =
        WritePerfetto(profile, {}, [&](std::string_view) { return ++pieces == refused ? full : absl::OkStatus(); });
    CHECK(pieces <= refused);
    if (pieces < refused) break;
    CHECK(status == full);
  }
  CHECK(refused > 5);
}

TEST_CASE("perfetto: what the writer holds does not grow with the number of samples", "[exporters][perfetto]") {
  const auto held_for = [](uint32_t samples) {
    const Profile profile = testing::LargeProfile(samples);
    const int64_t before = testing::bytes_held;
    int64_t most = 0;
    const absl::Status status = WritePerfetto(profile, {}, [&](std::string_view) {
      most = std::max(most, testing::bytes_held - before);
      return absl::OkStatus();
    });
    CHECK(status == absl::OkStatus());
    return most;
  };
  CHECK(held_for(testing::kSanitized ? 20'000 : 100'000) < held_for(10'000) + (64 << 10));
  const Profile profile = testing::LargeProfile(10'000);
  CHECK((PerfettoFile(TraceFileOf(profile)).samples == SamplesOf(profile)));
}

TEST_CASE("perfetto: a stack of 10,000 calls, recursion in it, is whole", "[exporters][perfetto]") {
  const Profile profile = testing::DeepProfile(10'000);
  CHECK((PerfettoFile(TraceFileOf(profile)).samples == SamplesOf(profile)));
}

TEST_CASE("perfetto: an event that the profile has not is refused", "[exporters][perfetto]") {
  const absl::Status status =
      WritePerfetto(profile::SampleProfile(), {.event = "cycles"}, [](std::string_view) { return absl::OkStatus(); });
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfkit::exporters
