// What the profiles of flight recorders cover.
#include "src/session/flight_recorder.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "src/sys/files.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

SessionOptions FlightOfFaults(size_t memory_bytes = 0) {
  return {.events = {{.event = "page-faults", .rate = Period{1}}},
          .stacks = SessionStacks::kNone,
          .mode = RingMode::kOverwrite,
          .memory_bytes = memory_bytes,
          .lines = false};
}

uint64_t Now() { return sys::ClockNs(CLOCK_MONOTONIC); }

// Takes that many faults on one CPU, and returns the time before each.
std::vector<uint64_t> TimedFaults(size_t count) {
  std::vector<uint64_t> times(count);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (uint64_t& time : times) {
      time = Now();
      Fault(1);
    }
  }).join();
  return times;
}

size_t CountFrom(const std::vector<uint64_t>& times, uint64_t from_ns) {
  return static_cast<size_t>(std::ranges::count_if(times, [&](uint64_t time) { return time >= from_ns; }));
}

std::vector<uint64_t> TimesIn(const Profile& profile) {
  std::vector<uint64_t> times;
  for (const ProfileSample& sample : profile.samples) times.push_back(sample.time_ns);
  return times;
}

// Samples that were overwritten, or are too old, are not in the accounting.
void CheckSums(const Profile& profile) {
  CHECK(profile.Check() == absl::OkStatus());
  CHECK(profile.Total(0).samples == profile.events[0].accounting.delivered);
  CHECK(profile.Total(0).weight == profile.events[0].accounting.represented);
}

TEST_CASE("a flight recorder says from when on it is whole", "[session][flight_recorder][law]") {
  const bool snapshot = GENERATE(true, false);
  // At most 64 KiB for the rings of each CPU, which do not hold 5,000 samples of 40 bytes or more.
  absl::StatusOr<Session> session =
      Session::Start(FlightOfFaults(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)) * (64 << 10)));
  REQUIRE(session.status() == absl::OkStatus());
  const std::vector<uint64_t> times = TimedFaults(5000);
  const absl::StatusOr<Profile> profile = snapshot ? session->Snapshot() : session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckSums(*profile);
  const uint64_t whole_ns = profile->accounting.whole_from_ns;
  CHECK(whole_ns > times.front());
  CHECK(whole_ns < times.back());
  CHECK(profile->from_ns < whole_ns);
  CHECK(CountFrom(TimesIn(*profile), whole_ns) >= CountFrom(times, whole_ns));
  CHECK(CountFrom(times, 0) > profile->samples.size());
  CHECK(std::ranges::any_of(profile->accounting.notes,
                            [](const std::string& note) { return note.starts_with("whole for its last "); }));
  if (!snapshot) return;
  // The next profile begins after the snapshot. Making that one took faults, too; the rings have room for later ones.
  const std::vector<uint64_t> later = TimedFaults(10);
  const absl::StatusOr<Profile> next = session->Stop();
  REQUIRE(next.status() == absl::OkStatus());
  CheckSums(*next);
  CHECK(next->from_ns >= times.back());
  CHECK(next->from_ns <= next->accounting.whole_from_ns);
  CHECK(next->accounting.whole_from_ns <= later.front());
  CHECK(next->samples.size() >= 10);
}

TEST_CASE("a flight recorder keeps the last milliseconds, and all of them", "[session][flight_recorder][law]") {
  SessionOptions options = FlightOfFaults();
  options.keep_last = 50ms;
  const bool snapshot = GENERATE(true, false);
  // A machine may be so slow that the latest faults are older than that, too.
  for (bool was_fast = false; !was_fast;) {
    absl::StatusOr<Session> session = Session::Start(options);
    REQUIRE(session.status() == absl::OkStatus());
    Fault(100);
    const uint64_t early_ns = Now();
    while (Now() < early_ns + 60'000'000) std::this_thread::sleep_for(1ms);
    const std::vector<uint64_t> times = TimedFaults(20);
    const absl::StatusOr<Profile> profile = snapshot ? session->Snapshot() : session->Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    CheckSums(*profile);
    // A snapshot takes the rings some time before it is made.
    CHECK(profile->from_ns <= profile->to_ns - 50'000'000);
    CHECK(profile->from_ns > early_ns);
    CHECK(profile->accounting.whole_from_ns == profile->from_ns);
    CHECK(CountFrom(TimesIn(*profile), profile->from_ns) == profile->samples.size());
    CHECK(profile->samples.size() >= CountFrom(times, profile->from_ns));
    CHECK(std::ranges::any_of(profile->accounting.notes, [](const std::string& note) {
      return note.find("left out, and unsampled: ") != note.npos;
    }));
    was_fast = CountFrom(times, profile->from_ns) == times.size();
  }
}

TEST_CASE("frames are kept as long as samples", "[session][flight_recorder][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  SessionOptions options = FlightOfFaults();
  options.keep_last = 50ms;
  options.frames = &frames;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  const uint64_t start_ns = Now();
  for (int i = 0; i < 12; ++i) {
    std::this_thread::sleep_for(10ms);
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  CHECK(profile->from_ns > start_ns);
  for (const ProfileZone& zone : profile->zones) {
    CHECK(zone.from_ns >= profile->from_ns);
    if (zone.is_frame && zone.from_ns == profile->from_ns) CHECK_FALSE(zone.is_whole);
  }
  for (const ProfileCounter& counter : profile->counters) {
    for (const ProfileCounter::Point& point : counter.points) CHECK(point.time_ns >= profile->from_ns);
  }
}

// Returns the time that is in several of the zones, which are all of one thread and not nested.
uint64_t TimeInTwo(std::vector<ProfileZone> zones) {
  std::ranges::sort(zones, {}, &ProfileZone::from_ns);
  uint64_t twice_ns = 0, end_ns = 0;
  for (const ProfileZone& zone : zones) {
    twice_ns += std::min(zone.to_ns, std::max(zone.from_ns, end_ns)) - zone.from_ns;
    end_ns = std::max(end_ns, zone.to_ns);
  }
  return twice_ns;
}

struct Snapshots {
  std::vector<Profile> profiles;
  std::vector<uint64_t> took_ns;
};

// Takes snapshots while a thread marks frames, each with one zone of 300 us full of page faults.
Snapshots SnapshotsOfFrames() {
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId loop = frames.DefineFrame("step");
  SessionOptions options = FlightOfFaults();
  options.frames = &frames;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) {
      {
        PERFKIT_ZONE(frames, "faults");
        const uint64_t until_ns = Now() + 300'000;
        while (Now() < until_ns && !stop) Fault(1);
      }
      frames.Mark(loop);
    }
  });
  (void)session->Snapshot();
  Snapshots snapshots;
  for (int i = 0; i < 12; ++i) {
    std::this_thread::sleep_for(10ms);
    const uint64_t began_ns = Now();
    absl::StatusOr<Profile> profile = session->Snapshot();
    snapshots.took_ns.push_back(Now() - began_ns);
    if (profile.ok()) snapshots.profiles.push_back(*std::move(profile));
  }
  stop = true;
  worker.join();
  REQUIRE(snapshots.profiles.size() == snapshots.took_ns.size());
  return snapshots;
}

// The law: a zone is in each of successive snapshots as long as it lies there, and snapshots overlap only while the rings
// are taken over, not while names are looked up.
TEST_CASE("successive snapshots share no more time than it takes to take the rings over",
          "[session][flight_recorder][law]") {
  const auto [profiles, took_ns] = SnapshotsOfFrames();
  std::vector<ProfileZone> zones;
  std::map<std::string, int> whole_frames;
  uint64_t shared_ns = 0, min_share = UINT64_MAX, late_frames = 0;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Profile& profile = profiles[i];
    late_frames += profile.accounting.zones_forgotten;
    if (i != 0) {
      REQUIRE(profile.from_ns <= profiles[i - 1].to_ns);
      const uint64_t overlap_ns = profiles[i - 1].to_ns - profile.from_ns;
      shared_ns += overlap_ns;
      min_share = std::min(min_share, overlap_ns * 100 / took_ns[i - 1]);
    }
    CHECK(std::ranges::all_of(TimesIn(profile), [&](uint64_t time) { return time <= profile.to_ns; }));
    const auto has_zone = [&](const ProfileZone& frame) {
      return std::ranges::any_of(profile.zones, [&](const ProfileZone& zone) {
        return !zone.is_frame && zone.from_ns >= frame.from_ns && zone.to_ns <= frame.to_ns;
      });
    };
    for (const ProfileZone& zone : profile.zones) {
      if (!zone.is_frame) {
        zones.push_back(zone);
        continue;
      }
      whole_frames[profile.strings[zone.name]] += zone.is_whole;
      if (zone.is_whole) CHECK(has_zone(zone));
    }
  }
  CHECK(TimeInTwo(zones) <= shared_ns);
  CHECK(min_share < 50);
  for (const auto& [frame, times] : whole_frames) CHECK(times <= 1);
  // Each frame has ended in one of the profiles, where it is whole if it has also begun there, or is counted.
  const auto number = [](const auto& one) { return std::stoul(one.first.substr(5)); };
  std::set<unsigned long> numbers;
  for (const auto& one : whole_frames) numbers.insert(number(one));
  REQUIRE_FALSE(numbers.empty());
  CHECK(*numbers.rbegin() - *numbers.begin() + 1 - numbers.size() <= late_frames);
}

TEST_CASE("all rings of a flight recorder take 8 MiB", "[session][flight_recorder]") {
  const absl::StatusOr<Session> session = Session::Start(FlightOfFaults());
  REQUIRE(session.status() == absl::OkStatus());
  const absl::StatusOr<std::string> maps = sys::ReadFile("/proc/self/maps");
  REQUIRE(maps.status() == absl::OkStatus());
  uint64_t bytes = 0;
  size_t rings = 0;
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (!map || map->path.find("[perf_event]") == std::string_view::npos) return;
    bytes += map->end - map->begin;
    ++rings;
  });
  REQUIRE(rings != 0);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  CHECK(bytes <= (8 << 20) + rings * page);  // each has a page of its own state
}

TEST_CASE("a session that streams has no last milliseconds", "[session][flight_recorder]") {
  const absl::Status status = Session::Start({.keep_last = 50ms}).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message().find("keep_last") != std::string_view::npos);
}

}  // namespace
}  // namespace perfkit::session
