// Stacks of a thread in long system calls: from the sampled code in the kernel out to main.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile_collector.h"
#include "perfkit/session.h"
#include "src/sys/rights.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

[[gnu::noinline]] void ReadZeros(int calls) {
  static std::vector<char> room(4 << 20);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < calls; ++i) {
    if (read(zeros, room.data(), room.size()) <= 0) break;
  }
  close(zeros);
}
[[gnu::noinline]] void CallReadZeros(int calls) {
  ReadZeros(calls);
  asm volatile("");  // no tail call
}

// What the stacks of samples in the kernel are.
struct KernelStacks {
  size_t all = 0;
  size_t whole = 0;       // from the kernel out to main, by way of ReadZeros
  size_t with_entry = 0;  // of these: with callers in the kernel, out to a system call
  size_t mixed = 0;       // with a frame of the kernel below one of user code
  bool any_names = false;
};

KernelStacks StacksOf(const Profile& profile) {
  KernelStacks stacks;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.stack == ProfileStack::kRoot) continue;
    if (!profile.locations[profile.stacks[sample.stack].location].kernel) continue;
    ++stacks.all;
    size_t depth = 0;
    bool in_user = false, mixed = false, entry = false;
    for (uint32_t at = sample.stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) {
      const uint32_t location = profile.stacks[at].location;
      const bool kernel = profile.locations[location].kernel;
      mixed = mixed || (in_user && kernel);
      in_user = !kernel;
      depth += kernel ? 1 : 0;
      for (const ProfileCall& call : profile.CallsAt(location)) {
        const std::string& name = profile.strings[call.function];
        stacks.any_names = stacks.any_names || (kernel && !name.empty());
        entry = entry || (kernel && (name.find("syscall") != std::string::npos || name.starts_with("el0")));
      }
    }
    stacks.mixed += mixed ? 1 : 0;
    if (sample.quality != StackQuality::kWhole || !HasFunction(profile, sample.stack, "CallReadZeros")) continue;
    if (!HasFunction(profile, sample.stack, "main")) continue;
    ++stacks.whole;
    stacks.with_entry += entry && depth > 2 ? 1 : 0;
  }
  return stacks;
}

void CheckStacks(const Profile& profile, const KernelStacks& stacks) {
  INFO(absl::StrFormat("%d whole, %d with their entry", stacks.whole, stacks.with_entry));
  CHECK(profile.Check() == absl::OkStatus());
  CHECK(stacks.mixed == 0);
  // Others are in page faults and interrupts of user code.
  if (stacks.any_names) CHECK(stacks.with_entry * 2 >= stacks.whole);
}

TEST_CASE("stacks in the kernel go from its code out to main", "[session][law]") {
  const bool permitted = sys::ReadRights().may_count_kernel();
  const auto kind = GENERATE(SessionStacks::kLive, SessionStacks::kDumps);
  CallReadZeros(1);  // its memory is there from now on
  absl::StatusOr<Session> session = Session::Start({.interval = 200us, .stacks = kind});
  if (!session.ok()) SKIP_TEST(std::string(session.status().message()));
  KernelStacks stacks;
  for (int i = 0; i < (permitted ? 1000 : 1) && stacks.whole < 50; ++i) {
    CallReadZeros(50);
    const absl::StatusOr<Profile> profile = session->Snapshot();
    REQUIRE(profile.status() == absl::OkStatus());
    stacks = StacksOf(*profile);
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  stacks = StacksOf(*profile);
  CHECK((permitted ? stacks.whole >= 50 : stacks.all == 0));
  CheckStacks(*profile, stacks);
}

TEST_CASE("a collector joins the stacks in the kernel, too", "[collector][law]") {
  const bool permitted = sys::ReadRights().may_count_kernel();
  const SamplerOptions options{.events = {{.event = "cpu-clock", .rate = Period{200'000}}},
                               .stack = CallStack::UserDump(16 << 10),
                               .side_band = true};
  CallReadZeros(1);
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  REQUIRE(sampler.status() == absl::OkStatus());
  ProfileCollector collector(options, {.pid = static_cast<uint32_t>(getpid())});
  REQUIRE(sampler->Start() == absl::OkStatus());
  size_t samples = 0;
  for (int i = 0; i < (permitted ? 1000 : 1) && samples < 50; ++i) {
    CallReadZeros(50);
    sampler->Drain([&](const SamplerRecord& record) {
      collector.Add(record, sampler->layout());
      samples += record.type == static_cast<uint32_t>(RecordType::kSample) ? 1 : 0;
    });
  }
  CHECK(sampler->Stop() == absl::OkStatus());
  sampler->Drain([&](const SamplerRecord& record) { collector.Add(record, sampler->layout()); });
  const Profile profile = collector.MakeProfile(*sampler);
  CheckLaws(profile);
  const KernelStacks stacks = StacksOf(profile);
  CHECK((permitted ? stacks.whole > 0 : stacks.all == 0));
  CheckStacks(profile, stacks);
}

}  // namespace
}  // namespace perfkit::session
