// CPU quotas of control groups that are used up: by readings made by hand, and planted in a group of the test's own.
#include "src/session/cpu_quotas.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/slow_frames.h"
#include "src/proc/cpu_quota.h"
#include "src/sys/files.h"
#include "tests/session/support.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;
TEST_CASE("an account that grows explains the time before it", "[cpu_quotas]") {
  ThrottledTimes times;
  times.Add("/a", 100 * kMs, 101 * kMs, 500 * kMs);  // from before the session
  CHECK(times.Within(0, 200 * kMs) == 0);
  times.Add("/a", 104 * kMs, 105 * kMs, 500 * kMs);
  CHECK(times.Within(0, 200 * kMs) == 0);
  times.Add("/a", 164 * kMs, 165 * kMs, 550 * kMs);  // 50 ms, which began at 54 ms or later, and ended by 165 ms
  CHECK(times.Within(110 * kMs, 160 * kMs) == 50 * kMs);
  CHECK(times.Within(100 * kMs, 200 * kMs) == 50 * kMs);
  CHECK(times.Within(150 * kMs, 200 * kMs) == 15 * kMs);
  CHECK(times.Within(0, 60 * kMs) == 6 * kMs);
  CHECK(times.Within(0, 54 * kMs) == 0);
  CHECK(times.Within(165 * kMs, 300 * kMs) == 0);
}

TEST_CASE("accounts of several groups are apart, and explain no time twice", "[cpu_quotas]") {
  ThrottledTimes times;
  for (const char* group : {"/a/b", "/a"}) times.Add(group, 100 * kMs, 100 * kMs, 7 * kMs);
  for (const char* group : {"/a/b", "/a"}) times.Add(group, 150 * kMs, 150 * kMs, 47 * kMs);
  CHECK(times.Within(100 * kMs, 150 * kMs) == 50 * kMs);  // 40 ms of each at most
  CHECK(times.Within(100 * kMs, 130 * kMs) == 30 * kMs);
}

TEST_CASE("an account that shrinks is another group's", "[cpu_quotas]") {
  ThrottledTimes times;
  times.Add("/a", 100 * kMs, 100 * kMs, 70 * kMs);
  times.Add("/a", 110 * kMs, 110 * kMs, 0);
  CHECK(times.Within(0, 200 * kMs) == 0);
  times.Add("/a", 120 * kMs, 120 * kMs, 5 * kMs);
  CHECK(times.Within(0, 200 * kMs) == 5 * kMs);
}

bool Write(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool is_written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  return is_written;
}

// A group with a quota of 30 ms in each 100 ms, in the one of the calling process.
class GroupWithQuota {
 public:
  GroupWithQuota() {
    const absl::StatusOr<std::string> cgroup = sys::ReadFile("/proc/self/cgroup");
    const absl::StatusOr<std::string> mounts = sys::ReadFile("/proc/self/mountinfo");
    for (const std::string& group : proc::ParseCpuGroups(cgroup.value_or(""), mounts.value_or(""))) {
      folder_ = group + "/perfkit_quota_" + std::to_string(getpid());
      if (mkdir(folder_.c_str(), 0755) != 0) continue;
      has_quota_ = Write(folder_ + "/cpu.max", "30000 100000") || Write(folder_ + "/cpu.cfs_quota_us", "30000");
      if (has_quota_) return;
      rmdir(folder_.c_str());
    }
  }
  ~GroupWithQuota() {
    if (has_quota_) rmdir(folder_.c_str());
  }
  GroupWithQuota(const GroupWithQuota&) = delete;
  GroupWithQuota& operator=(const GroupWithQuota&) = delete;

  bool has_quota() const { return has_quota_; }
  // Moves the calling process there.
  bool Enter() const { return Write(folder_ + "/cgroup.procs", std::to_string(getpid())); }
  uint64_t ThrottledNs() const { return proc::ReadThrottledNs(folder_).value_or(0); }

 private:
  std::string folder_;
  bool has_quota_ = false;
};

constexpr int kHeld = 0, kTooFew = 1, kNotPermitted = 2, kFalse = 3;

int64_t ShareOf(const SlowFrame& frame, FrameCause::Kind kind) {
  int64_t share_ns = 0;
  for (const FrameCause& cause : frame.causes) share_ns += cause.kind == kind ? cause.share_ns : 0;
  return share_ns;
}

// How long the calling thread has waited for a CPU.
int64_t DelayNs() {
  unsigned long long ran_ns = 0, delay_ns = 0;
  const std::string text = sys::ReadFile("/proc/thread-self/schedstat").value_or("");
  std::sscanf(text.c_str(), "%llu %llu", &ran_ns, &delay_ns);
  return static_cast<int64_t>(delay_ns);
}

// Computes in frames, first without a quota.
int SpendQuota(const GroupWithQuota& group, bool preempters) {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session =
      Session::Start({.clock = SessionClock::kWall, .frames = &frames, .preempters = preempters});
  if (!session.ok()) return kFalse;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Spin(2ms);
      frames.Mark();
    }
  };
  const bool had_quota = !proc::CpuQuotaGroups().empty();  // of the test's own group
  frames.Mark();
  run(20);
  const uint64_t entered_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (!group.Enter()) return kNotPermitted;
  std::this_thread::sleep_for(1100ms);  // quotas are looked for once a second
  const int64_t delay_ns = DelayNs();
  run(90);
  const int64_t delayed_ns = DelayNs() - delay_ns;
  const absl::StatusOr<Profile> profile = session->Stop();
  if (!profile.ok() || !profile->Check().ok()) return kFalse;
  int64_t throttled_ns = 0;
  for (const SlowFrame& frame : FindSlowFrames(*profile, {.frames = 200})) {
    int64_t sum_ns = 0;
    for (const FrameCause& cause : frame.causes) sum_ns += cause.share_ns;
    const int64_t share_ns = ShareOf(frame, FrameCause::Kind::kThrottled);
    const bool is_before = profile->zones[frame.zone].to_ns < entered_ns;
    if (sum_ns != frame.excess_ns() || (is_before && !had_quota && share_ns != 0)) return kFalse;
    throttled_ns += share_ns;
  }
  // The group's account is a sum over CPUs, the thread's has what others took from it, too.
  const int64_t truth_ns = std::min(static_cast<int64_t>(group.ThrottledNs()), delayed_ns);
  std::printf("group %.1f, thread %.1f ms, told %.1f ms\n", static_cast<double>(group.ThrottledNs()) / 1e6,
              static_cast<double>(delayed_ns) / 1e6, static_cast<double>(throttled_ns) / 1e6);
  std::fflush(stdout);
  return throttled_ns * 4 >= truth_ns && truth_ns > 0 ? kHeld : kTooFew;
}

int PlantThrottling(bool preempters) {
  const GroupWithQuota group;
  if (!group.has_quota()) return kNotPermitted;
  // The child leaves with the result as its code, and with that the group.
  return testing::WithTracefs([&]() -> bool { _exit(SpendQuota(group, preempters)); });
}

TEST_CASE("a frame that used up its CPU quota is told so", "[cpu_quotas][measurement]") {
  const bool preempters = GENERATE(false, true);
  int result = kTooFew;
  const bool holds = testing::HoldsOnceInThree([&] {
    result = PlantThrottling(preempters);
    return result != kTooFew;
  });
  if (result == kNotPermitted) SKIP_TEST("no control group with a CPU quota can be made");
  CHECK(holds);
  CHECK(result != kFalse);
}

}  // namespace
}  // namespace perfkit::session
