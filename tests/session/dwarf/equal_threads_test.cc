// Many busy threads on few CPUs that do equal work: each has the samples of its own CPU time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "perfkit/session.h"
#include "tests/session/dwarf/known_shares.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

constexpr double kIntervalNs = 500'000;

// The samples' weight of the thread with this number.
uint64_t WeightOf(const Profile& profile, pid_t tid) {
  uint64_t weight = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == 0 && profile.threads[sample.thread].tid == static_cast<uint32_t>(tid)) weight += sample.weight;
  }
  return weight;
}

// Samples, losses and the time that no sample stands for are the whole time, but for a sample of each thread that was
// taken when the clock was read.
void CheckClockBalances(const EventAccounting& accounting, double threads) {
  const auto counted = static_cast<double>(accounting.counted);
  const double all = static_cast<double>(accounting.represented + accounting.unsampled_ns) +
                     kIntervalNs * static_cast<double>(accounting.lost);
  CHECK(all >= counted);
  CHECK(all <= counted + kIntervalNs * (threads + static_cast<double>(accounting.lost)));
}

// Equal work takes equal CPU time, by each thread's own clock, so that the shares are equal, too. A thread's samples
// are as many as that time has intervals, but for five standard deviations, for the time in which it stood still, for
// the time that was counted and that the threads' clocks did not see, and for what the profile says that it lacks, in
// unsampled time and in samples that a full ring lost: all threads together lack no more than that.
void CheckEqualThreads(uint64_t thread_cpu_ns) {
  constexpr size_t kThreads = 64;
  absl::StatusOr<Session> session =
      Session::Start({.interval = std::chrono::nanoseconds(static_cast<int64_t>(kIntervalNs))});
  REQUIRE(session.status() == absl::OkStatus());
  const std::vector<WorkDone> work = DoWorkInThreads(kThreads, thread_cpu_ns, /*one_sleeps=*/false);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const EventAccounting& accounting = profile->events[0].accounting;
  CheckClockBalances(accounting, kThreads + 2);
  uint64_t cpu_ns = 0;
  for (const WorkDone& done : work) cpu_ns += done.cpu_ns;
  const uint64_t unseen_ns = accounting.counted - std::min(accounting.counted, cpu_ns);
  const double told_ns =
      static_cast<double>(accounting.unsampled_ns) + kIntervalNs * static_cast<double>(accounting.lost);
  double lacking_ns = 0;
  double least = 0, most = 0;  // by how much samples differ from the clock, in percent
  for (const WorkDone& done : work) {
    const auto done_ns = static_cast<double>(done.cpu_ns), weight = static_cast<double>(WeightOf(*profile, done.tid));
    const double chance_ns = kIntervalNs * (5 * std::sqrt(done_ns / kIntervalNs) + 1);
    INFO(weight << " ns of samples, " << done_ns << " by its clock, which includes standing still for "
                << done.stalled_ns);
    lacking_ns += std::max(0.0, done_ns - chance_ns - static_cast<double>(done.stalled_ns) - weight);
    CHECK(weight <= done_ns + chance_ns + static_cast<double>(unseen_ns));
    const double differs = 100 * (weight - done_ns) / done_ns;
    least = std::min(least, differs), most = std::max(most, differs);
  }
  CHECK(lacking_ns <= told_ns);
  const double unsampled = 100 * static_cast<double>(accounting.unsampled_ns) / static_cast<double>(accounting.counted);
  WARN("samples differ by " << least << " to " << most << " %; " << unsampled << " % of the time has none");
}

TEST_CASE("of many busy threads each has the samples of its own CPU time", "[session][shares][law]") {
  CheckEqualThreads(50'000'000);
}

TEST_CASE("of many busy threads each has the samples of its own CPU time, for long", "[.heavy][shares][law]") {
  CheckEqualThreads(300'000'000);
}

}  // namespace
}  // namespace perfkit::session
