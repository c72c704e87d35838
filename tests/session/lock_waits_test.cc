// Holders of locks in profiles: which stay, where they were, and what becomes of them when threads go.
#include "src/session/lock_waits.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <vector>

#include "perfkit/profile_builder.h"
#include "src/session/drop_threads.h"
#include "src/session/merge_samples.h"
#include "src/session/off_cpu.h"

namespace perfkit::session {
namespace {

constexpr uint32_t kWaiter = 0, kHolder = 1;

// A thread that waits for a lock from 100 to 200 ns, and another one that holds it.
class LockProfile {
 public:
  explicit LockProfile(const char* function) {
    event_ = builder_.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    off_cpu_ = builder_.AddEvent({.name = std::string(kOffCpuEvent)});
    builder_.AddThread(1, 1, "waiter");
    builder_.AddThread(1, 2, "holder");
    builder_.AddWait({.preempted = true});
    const uint32_t wait = builder_.AddWait({.blocked_in_syscall = true,
                                            .syscall = SYS_futex,
                                            .arguments = {0x1000, FUTEX_WAIT_PRIVATE, 2},
                                            .holder = kHolder});
    builder_.AddSample({.time_ns = 100,
                        .weight = 100,
                        .thread = kWaiter,
                        .stack = StackOf(function, "/lib/libc.so.6"),
                        .wait = wait,
                        .event = off_cpu_,
                        .quality = StackQuality::kWhole});
  }

  void Sample(uint64_t time_ns, const char* function, uint32_t thread = kHolder) {
    builder_.AddSample({.time_ns = time_ns,
                        .weight = 1,
                        .thread = thread,
                        .stack = StackOf(function, "/bin/app"),
                        .event = event_,
                        .quality = StackQuality::kPart});
  }
  Profile Take() { return builder_.Take(); }

 private:
  uint32_t StackOf(const char* function, const char* module) {
    return builder_.Stack(ProfileStack::kRoot, builder_.Function(function, module));
  }

  ProfileBuilder builder_;
  uint16_t event_ = 0, off_cpu_ = 0;
};

std::string HolderFunction(const Profile& profile) {
  const uint32_t stack = profile.waits[1].holder_stack;
  if (stack == ProfileStack::kRoot) return "";
  return profile.strings[profile.CallsAt(profile.stacks[stack].location)[0].function];
}

TEST_CASE("a holder stays if the stack proves a lock", "[lock_waits]") {
  Profile locks = LockProfile("pthread_mutex_lock").Take(), waits = LockProfile("syscall").Take();
  KeepProvenHolders(locks, locks.samples);
  KeepProvenHolders(waits, waits.samples);
  CHECK(locks.waits[1].holder == kHolder);
  CHECK(waits.waits[1].holder == ProfileWait::kNoHolder);
  CHECK(locks.Check() == absl::OkStatus());
}

TEST_CASE("a holder that ran was where most of its samples in the wait are", "[lock_waits]") {
  LockProfile built("pthread_mutex_lock");
  for (const uint64_t before : {90, 95, 99}) built.Sample(before, "Before");
  for (const uint64_t during : {100, 150, 199}) built.Sample(during, "During");
  for (const uint64_t after : {200, 201, 202, 203}) built.Sample(after, "After");
  for (const uint64_t other : {110, 111, 112, 113}) built.Sample(other, "Other", kWaiter);
  Profile profile = built.Take();
  FindHolderStacks(profile);
  CHECK(HolderFunction(profile) == "During");
  CHECK(profile.waits[1].holder_quality == StackQuality::kPart);
  Profile none = LockProfile("pthread_mutex_lock").Take();
  FindHolderStacks(none);
  CHECK(none.waits[1].holder_stack == ProfileStack::kRoot);
}

TEST_CASE("a holder is kept by its waits, and renamed with the threads", "[lock_waits]") {
  Profile profile = LockProfile("pthread_mutex_lock").Take();
  profile.threads.insert(profile.threads.begin(), ProfileThread{});
  profile.samples[0].thread = 1, profile.waits[1].holder = 2;
  Profile kept = profile;
  CHECK(DropThreads(kept, {true, false, true}) == 0);
  REQUIRE(kept.threads.size() == 2);
  CHECK(kept.threads[kept.waits[1].holder].tid == 2);
  CHECK(kept.Check() == absl::OkStatus());
  Profile dropped = profile;
  CHECK(DropThreads(dropped, {true, true, true}) == 1);
  CHECK(dropped.threads.empty());
  CHECK(dropped.Check() == absl::OkStatus());
  const std::vector<uint32_t> renamed = {0, 1, 0};
  MergeThreads(profile, renamed, 0);
  CHECK(profile.waits[1].holder == 0);
}

TEST_CASE("a holder that becomes part of a sum is renamed before its wait ends", "[lock_waits]") {
  OffCpu off_cpu;
  std::vector<OffCpuSpan> spans;
  const auto emit = [&](const OffCpuSpan& span) { spans.push_back(span); };
  off_cpu.Begin(0, 1, 100);
  off_cpu.Switched(0, 1, 100, true, false, emit);
  off_cpu.Looked(0, {.at_ns = 110, .holder = {.thread = 2}});
  off_cpu.RenameHolders(std::vector<uint32_t>{0, 1, 7});
  off_cpu.Switched(0, 1, 200, false, false, emit);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].holder.thread == 7);
}

}  // namespace
}  // namespace perfkit::session
