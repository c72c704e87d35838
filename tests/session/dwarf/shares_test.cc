// Shares of CPU time, held against what the threads measured by their own clocks, beside other people's profilers.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/session.h"
#include "tests/session/dwarf/known_shares.h"
#include "tests/session/dwarf/peers.h"
#include "tests/session/support.h"
#include "tests/support/measurement.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

using PartShares = std::array<double, kParts.size()>;  // in points of percent

PartShares SharesOfParts(const PartTimes& parts) {
  double sum = 0;
  for (const uint64_t part : parts) sum += static_cast<double>(part);
  PartShares shares{};
  for (size_t i = 0; i < parts.size(); ++i) shares[i] = 100 * static_cast<double>(parts[i]) / std::max(sum, 1.0);
  return shares;
}

double LargestShareDifference(const PartShares& a, const PartShares& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

PartTimes PartsOf(const Profile& profile) {
  PartTimes parts{};
  for (const ProfileSample& sample : profile.samples) {
    for (size_t i = 0; i < kParts.size() && sample.event == 0; ++i) {
      if (HasFunction(profile, sample.stack, kParts[i].name)) parts[i] += sample.weight;
    }
  }
  return parts;
}

PartTimes PartsOf(const SamplesByFunction& samples) {
  PartTimes parts{};
  for (const auto& [name, count] : samples) {
    for (size_t i = 0; i < kParts.size(); ++i) {
      if (name.find(kParts[i].name) != std::string::npos) parts[i] += count;
    }
  }
  return parts;
}

struct TimeSums {
  PartTimes part_ns{};
  uint64_t cpu_ns = 0;
};
TimeSums SumsOfWork(const std::vector<WorkDone>& work) {
  TimeSums sums;
  for (const WorkDone& done : work) {
    for (size_t i = 0; i < kParts.size(); ++i) sums.part_ns[i] += done.part_ns[i];
    sums.cpu_ns += done.cpu_ns;
  }
  return sums;
}

// Returns the bound of chance for a part of `samples` that is `expected` on average: five standard deviations, and one.
double Chance(double expected, double samples) {
  const double share = std::clamp(expected / std::max(samples, 1.0), 0.0, 1.0);
  return 5 * std::sqrt(samples * share * (1 - share)) + 1;
}

// The law: each part has the samples of the time that its threads have measured. There may be fewer, by the time that
// no sample stands for, which the accounting tells, and more, by the time that the event counted and the threads'
// clocks did not (what a hypervisor took).
void CheckParts(const Profile& profile, const TimeSums& work, std::chrono::nanoseconds interval) {
  const EventAccounting& accounting = profile.events[0].accounting;
  const auto interval_ns = static_cast<double>(interval.count()), counted = static_cast<double>(accounting.counted);
  const double fewer = std::max(counted - static_cast<double>(accounting.represented), 0.0);
  const double more = std::max(counted - static_cast<double>(work.cpu_ns), 0.0);
  const PartTimes shown = PartsOf(profile);
  for (size_t i = 0; i < kParts.size(); ++i) {
    const auto done = static_cast<double>(work.part_ns[i]), weight = static_cast<double>(shown[i]);
    const double chance = interval_ns * Chance(done / interval_ns, counted / interval_ns);
    INFO(kParts[i].name << ": " << weight << " ns of samples, " << done << " measured, " << chance << " by chance, "
                        << fewer << " without samples, " << more << " beside the threads' clocks");
    CHECK(weight >= done - fewer - chance);
    CHECK(weight <= done + more + chance);
  }
}

const ProfileThread* ThreadOfWork(const Profile& profile, const WorkDone& done) {
  for (const ProfileThread& thread : profile.threads) {
    if (thread.tid == static_cast<uint32_t>(done.tid)) return &thread;
  }
  return nullptr;
}

// Whether each begin and end of a thread and each switch has its record.
bool HasAllSwitches(const Profile& profile) {
  const std::vector<std::string>& notes = profile.accounting.notes;
  return profile.accounting.side_band_lost == 0 &&
         std::none_of(notes.begin(), notes.end(),
                      [](const std::string& note) { return note.find("missing") != std::string::npos; });
}

// The law: a thread was off its CPU at least for as long as it slept, and on and off it for its whole life. What its
// CPU clock adds to that, up to some percent, is no law: the kernel charges a thread for the switch to it as well,
// before the record of it. CLOCK_MONOTONIC may be adjusted by 0.05 % (adjtimex(2)), CPU clocks are not.
void CheckSleeper(const Profile& profile, const WorkDone& done) {
  const ProfileThread* const thread = ThreadOfWork(profile, done);
  REQUIRE(thread != nullptr);
  if (!HasAllSwitches(profile)) return;
  CHECK(thread->off_ns >= done.asleep_ns - done.wall_ns / 1000);
  CHECK(thread->on_ns + thread->off_ns >= done.wall_ns);
  CHECK(thread->on_ns + thread->off_ns <= profile.to_ns - profile.from_ns);
}

// Time off the CPU that the thread asked for, and of that the time whose stack is known to be in SleepFor: a look that
// comes too late on a busy machine leaves a sleep with the thread's stack before it.
struct Slept {
  uint64_t all_ns = 0, named_ns = 0;
};
Slept SleptBy(const Profile& profile, const WorkDone& done) {
  Slept slept;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != profile.EventIndex(kOffCpuEvent)) continue;
    if (&profile.threads[sample.thread] != ThreadOfWork(profile, done)) continue;
    if (sample.wait != ProfileSample::kNoWait && profile.waits[sample.wait].preempted) continue;
    slept.all_ns += sample.weight;
    slept.named_ns += HasFunction(profile, sample.stack, "SleepFor") ? sample.weight : 0;
  }
  return slept;
}

struct SharesRun {
  TimeSums work;
  std::vector<WorkDone> threads;
  Profile profile;
  SamplesByFunction perf, gperftools;
};

// A session beside `perf record`, and beside gperftools with `both`: its handler of SIGPROF unwinds stacks in ways that
// are not known to be safe everywhere. Either may be missing.
void RunBesidePeers(uint64_t thread_cpu_ns, std::chrono::nanoseconds interval, bool both, SharesRun& run) {
  const std::string event = geteuid() == 0 ? "cpu-clock" : "cpu-clock:u";
  PerfRecord perf("-c " + std::to_string(interval.count()) + " -e " + event);
  if (!perf.error().empty()) WARN("without " << perf.error());
  std::optional<Gperftools> gperftools;
  if (both) gperftools.emplace();
  if (both && !gperftools->error().empty()) WARN("without " << gperftools->error());
  absl::StatusOr<Session> session = Session::Start({.interval = interval, .clock = SessionClock::kWall});
  REQUIRE(session.status() == absl::OkStatus());
  run.threads = DoWorkInThreads(3, thread_cpu_ns, /*one_sleeps=*/true);
  absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  if (both) run.gperftools = gperftools->Stop();
  run.perf = perf.Stop();
  run.profile = *std::move(profile);
  run.work = SumsOfWork(run.threads);
  REQUIRE(run.profile.Check() == absl::OkStatus());
}

// "session 10000 samples: 70.1 20.0 9.9, differs by 0.1 points"; "" without samples.
std::string SharesText(const char* name, uint64_t samples, const PartTimes& parts, const PartShares& truth) {
  if (samples == 0) return "";
  const PartShares shares = SharesOfParts(parts);
  return absl::StrFormat("\n%-11s %6d samples: %.2f %.2f %.2f, differs by %.2f points", name, samples, shares[0],
                         shares[1], shares[2], LargestShareDifference(shares, truth));
}

uint64_t SumOf(const PartTimes& parts) { return parts[0] + parts[1] + parts[2]; }

double Percent(uint64_t part, uint64_t whole) { return 100 * static_cast<double>(part) / static_cast<double>(whole); }

std::string ComparedText(const SharesRun& run) {
  const PartShares truth = SharesOfParts(run.work.part_ns);
  const PartTimes perf = PartsOf(run.perf), gperftools = PartsOf(run.gperftools);
  const WorkDone& sleeper = run.threads.back();
  const Slept slept = SleptBy(run.profile, sleeper);
  return absl::StrFormat("by the threads' own clocks %.2f %.2f %.2f", truth[0], truth[1], truth[2]) +
         SharesText("session", run.profile.Total(0).samples, PartsOf(run.profile), truth) +
         SharesText("perf record", SumOf(perf), perf, truth) +
         SharesText("gperftools", SumOf(gperftools), gperftools, truth) +
         absl::StrFormat("\nasleep for %.2f %% of the time, by the session %.2f %%, %.2f %% with its stack",
                         Percent(sleeper.asleep_ns, sleeper.wall_ns), Percent(slept.all_ns, sleeper.wall_ns),
                         Percent(slept.named_ns, sleeper.wall_ns));
}

TEST_CASE("functions have the shares that their threads measure", "[session][shares][law]") {
  SharesRun run;
  RunBesidePeers(600'000'000, 500us, /*both=*/false, run);
  CheckParts(run.profile, run.work, 500us);
  CheckSleeper(run.profile, run.threads.back());
  WARN(ComparedText(run));
}

TEST_CASE("shares are those of the threads' own clocks within 2 points", "[.heavy][shares][measurement]") {
  CHECK(testing::HoldsOnceInThree([] {
    SharesRun run;
    RunBesidePeers(5'000'000'000, 1ms, /*both=*/true, run);
    const std::string text = ComparedText(run);
    WARN(text);
    CheckParts(run.profile, run.work, 1ms);
    CheckSleeper(run.profile, run.threads.back());
    const WorkDone& sleeper = run.threads.back();
    CHECK(run.profile.Total(0).samples >= 2'000);
    const double slept_by_session = Percent(SleptBy(run.profile, sleeper).all_ns, sleeper.wall_ns);
    return LargestShareDifference(SharesOfParts(PartsOf(run.profile)), SharesOfParts(run.work.part_ns)) <= 2 &&
           std::abs(slept_by_session - Percent(sleeper.asleep_ns, sleeper.wall_ns)) <= 2;
  }));
}

}  // namespace
}  // namespace perfkit::session
