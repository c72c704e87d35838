// Which counters belong to a frame: by the names of their tracks.
#include "src/profile/frame_counts.h"

#include <catch2/catch.hpp>
#include <string>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {
namespace {

// A frame with one counter of that name, whose value there is 5.
std::vector<FrameCount> CountsWith(std::string_view frame, std::string_view counter) {
  ProfileBuilder builder;
  const uint32_t thread = builder.AddThread(1, 2, "main");
  const uint32_t zone_name = builder.String(frame), counter_name = builder.String(counter);
  Profile profile = builder.Take();
  ProfileZone zone;
  zone.thread = thread;
  zone.name = zone_name;
  zone.from_ns = 100;
  zone.to_ns = 200;
  zone.is_frame = true;
  profile.zones.push_back(zone);
  profile.counters.push_back({.name = counter_name, .thread = thread, .points = {{100, 5}}});
  UsualCounts usual(profile, {});
  return CountsOf(profile, 0, usual);
}

// As after Profile::Merge of two processes' profiles: 10 by cpu-clock every 1,000 ns, on and off the CPU, and 20 by
// task-clock every 100 ns.
TEST_CASE("a merged profile has the clock, the interval and the waits of each process", "[profile][frames]") {
  ProfileBuilder builder;
  const uint16_t cpu = builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  const uint16_t task = builder.AddEvent({.name = "task-clock", .unit = ProfileUnit::kNanoseconds});
  const uint16_t off = builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  const uint32_t ten = builder.AddThread(10, 10, "main"), twenty = builder.AddThread(20, 20, "main");
  const uint32_t idle = builder.AddThread(20, 21, "idle");
  for (uint64_t time_ns = 10'000; time_ns < 20'000; time_ns += 100) {
    builder.AddSample({.time_ns = time_ns, .weight = 100, .thread = twenty, .event = task});
    if (time_ns % 1000 != 0) continue;
    builder.AddSample({.time_ns = time_ns, .weight = 1000, .thread = ten, .event = cpu});
  }
  builder.AddSample({.time_ns = 19'999, .weight = 500, .thread = ten, .event = off});
  const Profile profile = builder.Take();
  const auto frame = [](uint32_t thread) { return ProfileZone{.from_ns = 12'000, .to_ns = 13'000, .thread = thread}; };
  CHECK(ClockOf(profile, frame(ten)) == cpu);
  CHECK(ClockOf(profile, frame(twenty)) == task);
  CHECK(ClockOf(profile, frame(idle)) == task);
  CHECK(ClockOf(profile, {.from_ns = 30'000, .to_ns = 31'000, .thread = twenty}) == cpu);  // No samples: the first.
  CHECK(IntervalOf(profile, cpu, ten) == 1000);
  CHECK(IntervalOf(profile, task, twenty) == 100);
  CHECK(IntervalOf(profile, task, idle) == 100);
  CHECK(HasOffCpuTimes(profile, ten));
  CHECK_FALSE(HasOffCpuTimes(profile, twenty));
}

TEST_CASE("times off the CPU are recorded of a process that has none, if it is alone", "[profile][frames]") {
  ProfileBuilder builder;
  const uint32_t thread = builder.AddThread(10, 10, "main");
  Profile profile = builder.Take();
  CHECK_FALSE(HasOffCpuTimes(profile, thread));
  profile.events.push_back({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  CHECK(HasOffCpuTimes(profile, thread));
  profile.threads.push_back({.pid = 20, .tid = 20, .first_ns = 1});
  CHECK_FALSE(HasOffCpuTimes(profile, thread));
  profile.threads[thread].off_ns = 5;
  CHECK(HasOffCpuTimes(profile, thread));
  CHECK_FALSE(HasOffCpuTimes(profile, thread + 1));
}

// As after Profile::Merge: one process samples page faults, the other one minor faults.
TEST_CASE("a frame has no count of an event that only another process sampled", "[profile][frames]") {
  ProfileBuilder builder;
  const uint16_t all = builder.AddEvent({.name = "page-faults"}), minor = builder.AddEvent({.name = "minor-faults"});
  const uint32_t ten = builder.AddThread(10, 10, "main"), twenty = builder.AddThread(20, 20, "main");
  for (uint64_t time_ns : {1100, 1200, 1300}) {
    builder.AddSample({.time_ns = time_ns, .weight = 1, .thread = ten, .event = all});
  }
  builder.AddSample({.time_ns = 1400, .weight = 1, .thread = twenty, .event = minor});
  const uint32_t name = builder.String("frame 1");
  Profile profile = builder.Take();
  for (const uint32_t thread : {ten, twenty}) {
    profile.zones.push_back({.from_ns = 1000, .to_ns = 1350, .thread = thread, .name = name, .is_frame = true});
  }
  UsualCounts usual(profile, {});
  const std::vector<FrameCount> of_ten = CountsOf(profile, 0, usual), of_twenty = CountsOf(profile, 1, usual);
  REQUIRE(of_ten.size() == 1);
  CHECK(of_ten[0].name == "page-faults");
  CHECK(of_ten[0].value == 3);
  REQUIRE(of_twenty.size() == 1);
  CHECK(of_twenty[0].name == "minor-faults");
  CHECK(of_twenty[0].value == 0);
}

TEST_CASE("a counter's restriction is no name of frames", "[profile][frames]") {
  for (const char* const name : {"page-faults", "page-faults, user space only", "page-faults, on some CPUs"}) {
    INFO(name);
    const std::vector<FrameCount> counts = CountsWith("frame 1", name);
    REQUIRE(counts.size() == 1);
    CHECK((counts[0].name == "page-faults" && counts[0].value == 5));
    CHECK(CountsWith("audio 1", name).empty());
    CHECK(CountsWith("audio 1", std::string(name) + " (audio)").size() == 1);
    CHECK(CountsWith("frame 1", std::string(name) + " (audio)").empty());
  }
}

// Eleven frames of 10 ms, the last of which is slow. In each the thread was on a CPU for half of it.
SlowFrame SlowFrameWith(const char* cycles_event, const char* clock_event, double usual_ghz, double slow_ghz,
                        std::string& text) {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  const uint32_t thread = builder.AddThread(1, 2, "main");
  ProfileCounter cycles{.name = builder.String(cycles_event), .thread = thread};
  ProfileCounter clock{.name = builder.String(clock_event), .unit = ProfileUnit::kNanoseconds, .thread = thread};
  uint64_t at_ns = 1'000'000'000;
  for (int i = 0; i < 11; ++i) {
    const uint64_t ns = i == 10 ? 30'000'000 : 10'000'000;
    builder.AddZone({.from_ns = at_ns,
                     .to_ns = at_ns + ns,
                     .thread = thread,
                     .name = builder.String("frame " + std::to_string(i)),
                     .is_frame = true});
    clock.points.push_back({at_ns, static_cast<double>(ns) / 2});
    cycles.points.push_back({at_ns, static_cast<double>(ns) / 2 * (i == 10 ? slow_ghz : usual_ghz)});
    at_ns += ns;
  }
  builder.profile().counters = {cycles, clock};
  const Profile profile = builder.Take();
  const std::vector<SlowFrame> slow = FindSlowFrames(profile);
  REQUIRE(slow.size() == 1);
  text = FormatSlowFrame(profile, slow[0]);
  return slow[0];
}

TEST_CASE("the CPU's frequency is cycles by time on the CPU, if both are of all of it", "[profile][frames]") {
  std::string text;
  const SlowFrame frame = SlowFrameWith("cycles", "task-clock", 3.4, 1.2, text);
  CHECK((frame.ghz == Approx(1.2) && frame.usual_ghz == Approx(3.4)));
  CHECK_THAT(text, Catch::Contains("the CPU ran at 1.20 GHz, usually at 3.40 GHz"));
  CHECK(SlowFrameWith("cpu-cycles", "task-clock", 3.4, 3.3, text).ghz == Approx(3.3));
  CHECK_THAT(text, !Catch::Contains("GHz"));
  for (const char* const cycles : {"cycles:u", "cycles, user space only", "instructions", "cycles (audio)"}) {
    CHECK(SlowFrameWith(cycles, "task-clock", 3.4, 1.2, text).ghz == 0);
    CHECK_THAT(text, !Catch::Contains("GHz"));
  }
  CHECK(SlowFrameWith("cycles", "cpu-clock", 3.4, 1.2, text).ghz == 0);
}

}  // namespace
}  // namespace perfkit::profile
