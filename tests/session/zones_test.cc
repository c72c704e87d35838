// The zones, frames and counters of a FrameCounter in a session's profile.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/session/zone_timeline.h"
#include "tests/session/support.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

absl::StatusOr<Session> StartWith(const FrameCounter& frames, SessionOptions options = {}) {
  options.stacks = SessionStacks::kNone;
  options.frames = &frames;
  return Session::Start(std::move(options));
}

// Sums of an event's weights by label.
std::map<std::string, uint64_t> WeightsByLabel(const Profile& profile, size_t event = 0) {
  std::map<std::string, uint64_t> weights;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == event) weights[profile.strings[sample.label]] += sample.weight;
  }
  return weights;
}

uint64_t Sum(const std::map<std::string, uint64_t>& weights) {
  uint64_t sum = 0;
  for (const auto& [label, weight] : weights) sum += weight;
  return sum;
}

std::vector<ProfileZone> ZonesNamed(const Profile& profile, std::string_view name) {
  std::vector<ProfileZone> zones;
  for (const ProfileZone& zone : profile.zones) {
    if (!zone.is_frame && profile.strings[zone.name] == name) zones.push_back(zone);
  }
  return zones;
}

// Page faults in two zones, and outside of both: exactly these numbers.
struct Planted {
  size_t solve = 30, physics = 20, outside = 10;

  void Frame(FrameCounter& frames) const {
    {
      PERFKIT_ZONE(frames, "physics");
      Fault(physics);
      PERFKIT_ZONE(frames, "solve");
      Fault(solve);
    }
    Fault(outside);
    frames.Mark();
  }
};

SessionOptions EachFault() { return {.events = {{.event = "page-faults", .rate = Period{1}}}, .user_only = true}; }

TEST_CASE("each sample has the zone that its thread was in", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  Planted planted;
  planted.Frame(frames);  // the code and the stacks of all this are there
  absl::StatusOr<Session> session = StartWith(frames, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kFrames = 20;
  for (size_t i = 0; i < kFrames; ++i) planted.Frame(frames);
  std::thread([&] {
    PERFKIT_ZONE(frames, "worker");
    Fault(50);
  }).join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const auto weights = WeightsByLabel(*profile);
  CHECK(Sum(weights) == profile->Total(0).weight);
  if (profile->events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  // Each Fault is at least its number of faults; what else faults there is little.
  const auto about = [&](const std::string& label, size_t faults) {
    INFO(label);
    const auto found = weights.find(label);
    REQUIRE(found != weights.end());
    CHECK(found->second >= faults);
    if (!testing::kSanitized) CHECK(found->second <= faults + faults / 2);  // its memory faults beside ours
  };
  about("physics/solve", kFrames * planted.solve);
  about("physics", kFrames * planted.physics);
  about("worker", 50);
  CHECK(weights.count(std::string(ZoneTimeline::kUnknownZone)) == 0);
}

TEST_CASE("zones, frames and counts of a profile are the FrameCounter's", "[session][zones]") {
  FrameCounter frames({.events = {"task-clock", "page-faults"}});
  absl::StatusOr<Session> session = StartWith(frames);
  REQUIRE(session.status() == absl::OkStatus());
  const Planted planted;
  frames.Mark();
  for (size_t i = 0; i < 20; ++i) planted.Frame(frames);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const auto near = [](uint64_t ns) { return Approx(static_cast<double>(ns)).epsilon(0.1); };
  for (const ZoneStats& zone : frames.zones()) {
    if (zone.name.empty()) continue;
    INFO(zone.name);
    const std::vector<ProfileZone> told = ZonesNamed(*profile, zone.name);
    CHECK(told.size() == zone.calls);
    uint64_t ns = 0;
    for (const ProfileZone& one : told) ns += one.to_ns - one.from_ns;
    CHECK(static_cast<double>(ns) == near(zone.wall_ns));
  }
  std::vector<ProfileZone> told;
  for (const ProfileZone& zone : profile->zones) {
    if (zone.is_frame) told.push_back(zone);
  }
  REQUIRE(told.size() == 20);
  const std::vector<ProfileCounter> counts = FrameCounts(*profile);
  REQUIRE(counts.size() == 2);
  const size_t first = frames.history().size() - 20;
  for (size_t i = 0; i < 20; ++i) {
    const FrameRecord& counted = frames.history()[first + i];
    CHECK(profile->strings[told[i].name] == "frame " + std::to_string(counted.number));
    for (size_t event = 0; event < 2; ++event) {
      if (counted.missing != 0) continue;
      const ProfileCounter& counter = counts[event];
      const std::string title = profile->strings[counter.name];
      CHECK(title.starts_with(frames.name(event)));
      const bool user_only = frames.FormatZones().find("page-faults (user space only)") != std::string::npos;
      CHECK(title.ends_with(", user space only") == (event == 1 && user_only));
      REQUIRE(counter.points.size() == 20);
      CHECK(counter.points[i].value == static_cast<double>(counted.values[event]));
      CHECK(counter.points[i].time_ns <= told[i].to_ns);
    }
  }
  CHECK((counts[0].unit == ProfileUnit::kNanoseconds && counts[1].unit == ProfileUnit::kCount));
}

// How far the zone's share of the workers' samples is from its share of their CPU time, by their own clocks.
double ShareError() {
  FrameCounter frames({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(frames, {.interval = 200us});
  REQUIRE(session.status() == absl::OkStatus());
  std::atomic<uint64_t> in_zone_ns{0}, outside_ns{0};
  const auto cpu_ns = [] { return sys::ClockNs(CLOCK_THREAD_CPUTIME_ID); };
  const auto work = [&] {
    pthread_setname_np(pthread_self(), "zones-worker");
    const auto attached = frames.AttachThread("worker");
    for (int step = 0; step < 50; ++step) {
      const uint64_t begin_ns = cpu_ns();
      if (step % 10 < 7) {
        PERFKIT_ZONE(frames, "A");
        Spin(1ms);
      } else {
        Spin(1ms);
      }
      (step % 10 < 7 ? in_zone_ns : outside_ns) += cpu_ns() - begin_ns;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const auto weights = WeightsByLabel(*profile);
  REQUIRE(Sum(weights) == profile->Total(0).weight);
  REQUIRE(weights.count("A") == 1);
  uint64_t of_workers = 0;
  for (const ProfileSample& sample : profile->samples) {
    const ProfileThread& thread = profile->threads[sample.thread];
    if (sample.event == 0 && profile->strings[thread.name] == "zones-worker") of_workers += sample.weight;
  }
  const double share = static_cast<double>(weights.at("A")) / static_cast<double>(of_workers);
  return std::abs(share - static_cast<double>(in_zone_ns) / static_cast<double>(in_zone_ns + outside_ns));
}

// A share is a measurement: samples that come late, in a tick, stand for more.
TEST_CASE("threads that work in a zone in 7 of 10 steps have 7 of 10 samples there", "[session][zones][measurement]") {
  CHECK(testing::HoldsOnceInThree([] { return ShareError() <= 0.1; }));
}

TEST_CASE("a wait has the zone that it began in", "[session][zones][law]") {
  FrameCounter frames({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(frames, {.clock = SessionClock::kWall});
  REQUIRE(session.status() == absl::OkStatus());
  {
    PERFKIT_ZONE(frames, "sleep");
    usleep(20'000);
  }
  usleep(20'000);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const size_t off = profile->EventIndex(kOffCpuEvent);
  uint64_t asleep_ns = 0;
  for (const ProfileSample& sample : profile->samples) {
    const bool here = profile->threads[sample.thread].tid == static_cast<uint32_t>(gettid());
    if (here && sample.event == off && profile->strings[sample.label] == "sleep") asleep_ns += sample.weight;
  }
  const std::vector<ProfileZone> zones = ZonesNamed(*profile, "sleep");
  REQUIRE(zones.size() == 1);
  CHECK(asleep_ns >= (zones[0].to_ns - zones[0].from_ns) / 2);
}

TEST_CASE("a snapshot has the zones that are open, and labels", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = StartWith(frames, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  PERFKIT_ZONE(frames, "open");
  Fault(30);
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  REQUIRE(snapshot.status() == absl::OkStatus());
  CHECK(snapshot->Check() == absl::OkStatus());
  CHECK(ZonesNamed(*snapshot, "open").size() == 1);
  CHECK(WeightsByLabel(*snapshot)["open"] > 0);
}

TEST_CASE("what fell in a zone that ended on another thread has no known zone", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = StartWith(frames, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  auto zone = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"wanders"});
  Fault(30);
  std::thread([&] { zone.reset(); }).join();
  Fault(30);
  { PERFKIT_ZONE(frames, "next"); }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(ZonesNamed(*profile, "wanders").empty());
  CHECK(ZonesNamed(*profile, "next").size() == 1);
  const auto weights = WeightsByLabel(*profile);
  CHECK(weights.count("wanders") == 0);
  CHECK(weights.count(std::string(ZoneTimeline::kUnknownZone)) == 1);
}

TEST_CASE("what fell in zones after another recording of them began has no known zone", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  SessionOptions options = EachFault();
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(frames, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  {
    PERFKIT_ZONE(frames, "before");
    Fault(30);
  }
  REQUIRE(session->Poll() == absl::OkStatus());
  PERFKIT_ZONE(frames, "around");
  const auto recording = count::FrameCounterImpl::Of(frames)->Record();
  REQUIRE(recording.status() == absl::OkStatus());
  {
    PERFKIT_ZONE(frames, "after");
    Fault(30);
  }
  REQUIRE(session->Poll() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(ZonesNamed(*profile, "before").size() == 1);
  CHECK(ZonesNamed(*profile, "after").empty());
  auto weights = WeightsByLabel(*profile);
  CHECK(weights.count("after") == 0);
  if (profile->events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(weights["before"] >= 30);
  CHECK(weights[std::string(ZoneTimeline::kUnknownZone)] >= 30);
}

TEST_CASE("a FrameCounter may go while a session runs, and another session may have the next", "[session][zones]") {
  for (int i = 0; i < 3; ++i) {
    auto frames = std::make_unique<FrameCounter>(FrameCounter::Options{.events = {"page-faults"}});
    absl::StatusOr<Session> session = StartWith(*frames, EachFault());
    REQUIRE(session.status() == absl::OkStatus());
    Planted().Frame(*frames);
    std::thread([&] { Planted().Frame(*frames); }).join();
    frames.reset();
    Fault(10);
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    CheckLaws(*profile);
    CHECK(ZonesNamed(*profile, "solve").size() == 2);
  }
}

TEST_CASE("zones that there is no room for are counted, and labels stay", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  SessionOptions options = EachFault();
  options.memory_bytes = 64 << 10;
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(frames, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  for (size_t i = 0; i < 500; ++i) {
    {
      PERFKIT_ZONE(frames, "first");
      Fault(1);
    }
    for (int z = 0; z < 20; ++z) {
      PERFKIT_ZONE(frames, "more");
    }
    if (i % 20 == 0) REQUIRE(session->Poll() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(profile->accounting.zones_forgotten > 0);
  CHECK(profile->zones.size() + profile->accounting.zones_forgotten == 500 * 21);
  CHECK(profile->zones.size() * sizeof(ProfileZone) <= 64 << 10);
  const auto weights = WeightsByLabel(*profile);
  if (profile->events[0].accounting.lost == 0) CHECK(weights.at("first") >= 500);
}

TEST_CASE("frames of a thread without zones are whole although zones of other threads are forgotten",
          "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  SessionOptions options = EachFault();
  options.memory_bytes = 64 << 10;
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(frames, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    frames.Mark();
    std::thread([&] {
      for (int z = 0; z < 500; ++z) {
        PERFKIT_ZONE(frames, "more");
      }
    }).join();
    REQUIRE(session->Poll() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->accounting.zones_forgotten > 0);
  const auto is_frame = [](const ProfileZone& zone) { return zone.is_frame; };
  CHECK(std::ranges::any_of(profile->zones, is_frame));
  CHECK(std::ranges::all_of(profile->zones, [&](const auto& zone) { return !is_frame(zone) || zone.is_whole; }));
}

TEST_CASE("samples keep their zones when ended threads become sums", "[session][zones]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = StartWith(frames, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kThreads = 1300;
  for (size_t i = 0; i < kThreads; ++i) {
    std::thread([&] {
      PERFKIT_ZONE(frames, "short");
      Fault(3);
    }).join();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(profile->threads.size() < kThreads);
  CHECK(profile->accounting.zones_forgotten > 0);
  CHECK(ZonesNamed(*profile, "short").size() + profile->accounting.zones_forgotten == kThreads);
  auto weights = WeightsByLabel(*profile);
  CHECK(weights["short"] > 0);
  if (profile->events[0].accounting.lost != 0) return;
  CHECK(weights["short"] + weights[std::string(ZoneTimeline::kUnknownZone)] >= 3 * kThreads);
}

TEST_CASE("a forked child has no part in its parent's zones", "[session][zones][fork]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = StartWith(frames, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  const pid_t child = fork();
  if (child == 0) {
    Planted().Frame(frames);
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Planted().Frame(frames);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(ZonesNamed(*profile, "solve").size() == 1);
}

}  // namespace
}  // namespace perfkit::session
