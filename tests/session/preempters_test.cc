// Who preempts threads: compared with the kernel's switches of the same CPU, which the test reads by itself.
#include "src/session/preempters.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "perfkit/session.h"
#include "tests/session/raw_switches.h"
#include "tests/session/spinning_process.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

int FirstCpu() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) return cpu;
  }
  return 0;
}

void PinTo(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

// How often the calling thread was preempted, by its own account.
uint64_t Preempted() {
  std::ifstream status("/proc/thread-self/status");
  const std::string key = "nonvoluntary_ctxt_switches:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size()));
  }
  return 0;
}

// Computes until it was preempted `times` times. Nothing else would prove that others wanted its CPU.
void SpinUntilPreempted(uint64_t times) {
  const uint64_t before = Preempted();
  while (Preempted() < before + times) Spin(std::chrono::milliseconds(1));
}

struct Ran {
  uint64_t ns = 0;
  std::string name;
  int pid = -1;
};

// What others ran while `tid` was away: from its last switch out before `from_ns` until it was back. Empty if a switch
// has no record meanwhile: some virtual machines show no tracer that certain threads leave their CPU.
std::map<int, Ran> RanInstead(const std::vector<RawSwitch>& switches, int tid, uint64_t from_ns) {
  const auto later =
      std::ranges::partition_point(switches, [&](const RawSwitch& one) { return one.time_ns <= from_ns; });
  auto at = later;
  while (at != switches.begin() && std::prev(at)->from != tid) --at;
  std::map<int, Ran> ran;
  if (at == switches.begin()) return ran;
  for (--at; std::next(at) != switches.end() && at->to != tid; ++at) {
    if (std::next(at)->from != at->to) return {};
    Ran& runner = ran[at->to];
    runner.ns += std::next(at)->time_ns - at->time_ns;
    if (runner.name.empty()) runner.name = at->to_name;
    if (std::next(at)->from_pid != -1) runner.pid = std::next(at)->from_pid;
  }
  return ran;
}

struct Counts {
  size_t preempted = 0, named = 0;
  std::string wrong;
};

// Returns "" if `told` ran longest, as far as that can be judged from outside: each event of a switch has a time of its
// own, and a hypervisor may take the CPU in between. So a thread that ran half as long as another may be told instead.
std::string Judge(const ProfilePreempter& told, const std::string& name, const std::map<int, Ran>& ran) {
  const auto most = std::ranges::max_element(ran, {}, [](const auto& one) { return one.second.ns; });
  if (most == ran.end()) return "nothing ran";
  const auto found = ran.find(static_cast<int>(told.tid));
  if (found == ran.end() || found->second.name != name) return name + " is told, but did not run";
  const Ran& runner = found->second;
  if (2 * runner.ns < most->second.ns) {
    return name + " ran for " + std::to_string(runner.ns) + " ns, " + most->second.name + " for " +
           std::to_string(most->second.ns);
  }
  if (told.others != ran.size() - 1 - (told.tid != 0 ? ran.count(0) : 0)) return "another number of others";
  if (runner.pid == -1 || told.is_own == (runner.pid == getpid())) return "";
  return name + " belongs to another process than is told";
}

Counts Compare(const Profile& profile, const std::vector<RawSwitch>& switches, int tid) {
  Counts counts;
  for (const ProfileSample& sample : profile.samples) {
    const bool is_ours = profile.threads[sample.thread].tid == static_cast<uint32_t>(tid);
    if (sample.wait == ProfileSample::kNoWait || !is_ours) continue;
    const ProfileWait& wait = profile.waits[sample.wait];
    const std::map<int, Ran> ran = RanInstead(switches, tid, sample.time_ns);
    counts.preempted += wait.preempted && !ran.empty() ? 1 : 0;
    if (!wait.preempter.is_known()) continue;
    ++counts.named;
    const std::string& name = profile.strings[wait.preempter.command];
    if (!wait.preempted) counts.wrong = "a wait that is not one for a CPU has a preempter";
    const std::string judged = Judge(wait.preempter, name, ran);
    if (!judged.empty()) counts.wrong = judged;
  }
  return counts;
}

// Returns "" if all is as it must be.
std::string Preempt() {
  const int cpu = FirstCpu();
  PinTo(cpu);  // and all that is started from here
  const SpinningProcess child("busy child");
  std::atomic<bool> quit{false};
  std::thread own([&] {
    while (!quit) Spin(std::chrono::milliseconds(1));
  });
  RawSwitches reader(cpu);
  std::string wrong = reader.is_open() ? "" : "no reader";
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .preempters = true});
  if (!session.ok()) wrong = std::string(session.status().message());
  if (wrong.empty()) SpinUntilPreempted(60);
  const absl::StatusOr<Profile> profile = session.ok() ? session->Stop() : session.status();
  if (wrong.empty() && (!profile.ok() || !profile->Check().ok())) wrong = "no profile";
  const std::vector<RawSwitch> switches = wrong.empty() ? reader.Stop() : std::vector<RawSwitch>{};
  if (wrong.empty() && profile->accounting.switches_read == 0) wrong = "no switches were read";
  if (wrong.empty() && !reader.has_lost()) {
    const Counts counts = Compare(*profile, switches, gettid());
    wrong = counts.wrong;
    const bool is_whole = profile->accounting.switches_lost == 0;
    if (is_whole && 2 * counts.named < counts.preempted) {
      wrong = std::to_string(counts.named) + " preempters are known of " + std::to_string(counts.preempted);
    }
  }
  quit = true;
  own.join();
  return wrong;
}

TEST_CASE("who preempted a thread is who ran on its CPU for longest meanwhile", "[preempters][law]") {
  if (!testing::kThreadsAfterFork) SKIP_TEST("a forked child can't start threads under ThreadSanitizer");
  const int result = testing::WithTracefs([&] {
    const std::string wrong = Preempt();
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
    return wrong.empty();
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

// Returns the note that says why preempters are not known; "" if there is none.
std::string Refusal(const Profile& profile) {
  for (const std::string& note : profile.accounting.notes) {
    if (note.starts_with("who preempted threads is not known: ")) return note;
  }
  return "";
}

TEST_CASE("without the right to it, a note says why preempters are not known", "[preempters][law]") {
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .preempters = true});
  REQUIRE(session.status() == absl::OkStatus());
  // The session's thread is switched, so sooner or later there are switches to read.
  absl::StatusOr<Profile> profile = session->Snapshot();
  while (profile.ok() && profile->accounting.switches_read == 0 && Refusal(*profile).empty()) {
    std::this_thread::yield();
    profile = session->Snapshot();
  }
  profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(Refusal(*profile).empty() == (profile->accounting.switches_read != 0));
  const auto has_preempter = [](const ProfileWait& wait) { return wait.preempter.is_known(); };
  if (!Refusal(*profile).empty()) CHECK(std::ranges::none_of(profile->waits, has_preempter));
}

TEST_CASE("preempters without the times off the CPU are refused", "[preempters]") {
  const absl::Status status = Session::Start({.preempters = true}).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()).find("kWall") != std::string::npos);
}

}  // namespace
}  // namespace perfkit::session
