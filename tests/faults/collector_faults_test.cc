// Profiles of a sampler's records, and sessions that record wakers and page faults, under faults.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "perfkit/profile_collector.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "perfkit/warmup.h"
#include "tests/support/fault_table.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr size_t kCollectedPages = 16;

bool HasNote(const Profile& profile, std::string_view part) {
  return std::ranges::any_of(profile.accounting.notes,
                             [&](const std::string& note) { return note.find(part) != note.npos; });
}

// Returns the number of samples whose code is FreshPages::Touch by name.
uint64_t SamplesInTouch(const Profile& profile) {
  uint64_t samples = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.stack == ProfileStack::kRoot) continue;
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[sample.stack].location)) {
      if (profile.strings[call.function].find("Touch") == std::string::npos) continue;
      samples += sample.samples;
      break;
    }
  }
  return samples;
}

// `pid`: as ProfileCollectorOptions::pid. If it is 0 and no record has the mappings, they are read in /proc.
absl::Status CollectSamples(Faults& faults, uint32_t pid) {
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.ring_bytes = 64 << 10;
  options.side_band = pid != 0;
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  if (!sampler.ok()) return sampler.status();
  testing::FreshPages memory(kCollectedPages);
  if (absl::Status status = sampler->Start(); !status.ok()) return status;
  memory.Touch(0, kCollectedPages);
  if (absl::Status status = sampler->Stop(); !status.ok()) return status;
  uint64_t samples = 0;
  faults.Begin();
  ProfileCollector collector(options, {.pid = pid, .lines = false});
  sampler->Drain([&](const SamplerRecord& record) {
    collector.Add(record, sampler->layout());
    samples += record.event != SamplerRecord::kNoEvent ? 1 : 0;
  });
  const Profile profile = collector.MakeProfile(*sampler);
  faults.End();
  REQUIRE(profile.Check() == absl::OkStatus());
  const EventAccounting& event = profile.events.at(0).accounting;
  CHECK(samples >= kCollectedPages);
  CHECK(event.delivered == samples);
  CHECK(profile.Total(0).samples == samples);
  CHECK(profile.Total(0).weight == samples);
  CHECK((event.counted_is_lower_bound || event.accounted() == event.counted));
  const bool is_named = profile.program == (pid != 0 ? program_invocation_short_name : "");
  CHECK((is_named || (profile.program.empty() && !faults.none())));
  if (SamplesInTouch(profile) >= kCollectedPages) return absl::OkStatus();
  CHECK_FALSE(faults.none());
  return absl::DataLossError("samples have no names");
}

TEST_CASE("a profile is made from a sampler's records", "[faults]") {
  const auto use = [](const char* name, uint32_t pid) {
    RunFaults(name, [pid](Faults& faults) { return CollectSamples(faults, pid); });
  };
  use("`ProfileCollector`", static_cast<uint32_t>(getpid()));
  use("`ProfileCollector`, mappings in /proc", 0);
}

// Gives this process mounts of its own, tracefs among them, until it is destroyed. Names of kernel code are hidden: it
// would take 30 ms to read them, in each run.
class OwnTracefs {
 public:
  OwnTracefs()
      : mounts_(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)), folder_(open(".", O_DIRECTORY | O_PATH | O_CLOEXEC)) {
    is_entered_ = mounts_ >= 0 && folder_ >= 0 && unshare(CLONE_NEWNS) == 0;
    is_mounted_ = is_entered_ && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                  (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) == 0 || errno == EBUSY) &&
                  mount("/dev/null", "/proc/kallsyms", nullptr, MS_BIND, nullptr) == 0;
  }
  ~OwnTracefs() {
    if (is_entered_) CHECK((setns(mounts_, CLONE_NEWNS) == 0 && fchdir(folder_) == 0));
    close(mounts_);
    close(folder_);
  }
  OwnTracefs(const OwnTracefs&) = delete;
  OwnTracefs& operator=(const OwnTracefs&) = delete;

  bool is_mounted() const { return is_mounted_; }

 private:
  int mounts_, folder_;  // of the process before
  bool is_entered_ = false, is_mounted_ = false;
};

// A thread that waits for a byte of a pipe.
class WokenThread {
 public:
  WokenThread() {
    REQUIRE(pipe(ends_) == 0);
    thread_ = std::thread([this] {
      char byte = 0;
      tid_ = gettid();
      was_read_ = read(ends_[0], &byte, 1) == 1;
    });
  }
  ~WokenThread() {
    close(ends_[0]);
    close(ends_[1]);
  }
  WokenThread(const WokenThread&) = delete;
  WokenThread& operator=(const WokenThread&) = delete;

  // Wakes it, and returns its tid after it has ended.
  uint32_t Wake() {
    const bool was_written = write(ends_[1], "", 1) == 1;
    thread_.join();
    CHECK(was_written);
    CHECK(was_read_);
    return static_cast<uint32_t>(tid_);
  }

 private:
  int ends_[2];
  pid_t tid_ = 0;
  bool was_read_ = false;
  std::thread thread_;
};

void CheckWaits(const Profile& profile, uint32_t woken) {
  const std::string self = "(" + std::to_string(gettid()) + ")";
  for (const ProfileSample& sample : profile.samples) {
    if (sample.wait == ProfileSample::kNoWait || profile.threads[sample.thread].tid != woken) continue;
    const ProfileWait& wait = profile.waits[sample.wait];
    if (!wait.blocked_in_syscall || wait.syscall != SYS_read || wait.waker == 0) continue;
    const std::string& waker = profile.strings[wait.waker];
    INFO(waker);
    CHECK((waker == ProfileWait::kInterrupt || waker.ends_with(self)));
  }
}

// Each event is there, or a note says why not, and its samples are those that were delivered.
absl::Status CheckSideEvents(const Profile& profile) {
  REQUIRE(profile.Check() == absl::OkStatus());
  uint64_t off_ns = 0;
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (const ProfileThread& thread : profile.threads) off_ns += thread.off_ns;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const EventAccounting& event = profile.events[i].accounting;
    INFO(profile.events[i].name << " counted " << event.counted << " delivered " << event.delivered);
    if (i == off_cpu) {
      CHECK(profile.Total(i).weight == off_ns);
      continue;
    }
    CHECK(profile.Total(i).samples == event.delivered);
    CHECK(profile.Total(i).weight == event.represented);
  }
  const bool has_wakers = profile.EventIndex("sched:sched_waking") != profile.events.size();
  CHECK(has_wakers != HasNote(profile, "who woke threads is not known"));
  CHECK(profile.EventIndex("minor-faults") != profile.events.size());
  CHECK(profile.EventIndex("major-faults") != profile.events.size());
  return has_wakers ? absl::OkStatus() : absl::UnavailableError("wakers are not known, and a note says so");
}

absl::Status RecordWakers(Faults& faults) {
  faults.Begin();
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall,
                                                    .stacks = SessionStacks::kFramePointers,
                                                    .memory_bytes = 1 << 20,
                                                    .look_after = std::chrono::microseconds(10),
                                                    .wakers = true,
                                                    .waker_stacks = true,
                                                    .page_faults = true,
                                                    .own_thread = false,
                                                    .lines = false});
  if (!session.ok()) return session.status();
  testing::FreshPages memory(64);
  WokenThread thread;
  memory.Touch(0, 64);
  testing::Sleep(100'000);
  absl::Status first = session->Poll();
  const uint32_t woken = thread.Wake();
  const absl::StatusOr<Profile> profile = session->Stop();
  faults.End();
  first.Update(profile.status());
  if (!profile.ok()) return first;
  CheckWaits(*profile, woken);
  const absl::Status events = CheckSideEvents(*profile);
  if (faults.none()) CHECK(events == absl::OkStatus());
  first.Update(events);
  return first;
}

TEST_CASE("a session records wakers and page faults", "[faults][law]") {
  const OwnTracefs tracefs;
  if (!tracefs.is_mounted()) SKIP_TEST("tracefs cannot be mounted here");
  const absl::Status wakings = Sampler::Open({.events = {{.event = "sched:sched_waking"}}}).status();
  if (!wakings.ok()) SKIP_TEST("this user may not sample tracepoints: " + std::string(wakings.message()));
  // The kernel takes 36 ms to close the last event of a tracepoint.
  const Warmup warm({"sched:sched_waking"});
  RunFaults("`Session`: wakers, page faults", RecordWakers);
}

}  // namespace
}  // namespace perfkit
