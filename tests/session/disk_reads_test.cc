// When a thread had something read from a disk, and what a wait then is told as.
#include "src/session/disk_reads.h"

#include <catch2/catch.hpp>

#include "src/session/look_pace.h"
#include "src/session/span_wait.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

TEST_CASE("a thread has read if its account has grown around that time", "[disk_reads]") {
  DiskReads reads;
  CHECK(!reads.HasRead(1, 0, UINT64_MAX));
  uint64_t now_ns = 0;
  for (const uint64_t bytes : {4096, 4096, 8192, 12288, 12288}) reads.Add(1, now_ns += 10, bytes);
  // It grew from 20 to 40.
  CHECK((reads.HasRead(1, 15, 21) && reads.HasRead(1, 39, 50) && reads.HasRead(1, 10, 60) && reads.HasRead(1, 25, 30)));
  CHECK((!reads.HasRead(1, 10, 20) && !reads.HasRead(1, 40, 50) && !reads.HasRead(2, 10, 50)));
  reads.Add(1, 60, 16384);
  CHECK((reads.HasRead(1, 55, 58) && !reads.HasRead(1, 45, 50)));
  reads.Forget(1);
  reads.Add(1, 70, 20480);
  CHECK(!reads.HasRead(1, 0, UINT64_MAX));
}

TEST_CASE("a wait of which nothing is known is one for the disk that was read from", "[disk_reads]") {
  ProfileBuilder builder;
  const OffCpuSpan span{.from_ns = 10, .to_ns = 20};
  const auto text = [&](const OffCpuSpan& one, bool has_read) {
    const std::optional<ProfileWait> wait = WaitOfSpan(one, has_read, builder);
    return wait ? builder.profile().strings[wait->detail] : "nothing";
  };
  CHECK(text(span, true) == ProfileWait::kProbablyDisk);
  CHECK(text(span, false) == "nothing");
  OffCpuSpan woken = span;
  woken.waker = ProfileWait::kInterrupt;
  CHECK((text(woken, true) == ProfileWait::kProbablyDisk && text(woken, false).empty()));
  woken.waker = "kworker/0:1 (12) of the kernel";
  CHECK(text(woken, true) == ProfileWait::kProbablyDisk);
  woken.waker = "bash (12) of another program";
  CHECK(text(woken, true).empty());
  woken.waker = "worker (2)";
  CHECK(text(woken, true).empty());
  OffCpuSpan preempted = span;
  preempted.preempted = true;
  CHECK(text(preempted, true) == "nothing");
  OffCpuSpan examined = span;
  examined.call.emplace();
  examined.wait = "futex 0x1";
  CHECK(text(examined, true) == "futex 0x1");
}

TEST_CASE("looks come early when waits are missed, some times in a row and seldom on average", "[disk_reads]") {
  LookPace pace;
  uint64_t now_ns = 1000 * kMs;
  const auto round = [&](uint64_t passed_ns, uint64_t missed_ns) {
    now_ns += passed_ns;
    pace.AddMissed(missed_ns);
    pace.EndRound(now_ns);
    return pace.hurries();
  };
  CHECK(!round(4 * kMs, 0));
  CHECK(!round(4 * kMs, kMs - 1));
  int in_a_row = 0;
  while (round(kMs, kMs / 2)) ++in_a_row;
  CHECK(in_a_row == 8);
  int early = 0;
  const uint64_t from_ns = now_ns;
  while (now_ns < from_ns + 1000 * kMs) early += round(pace.hurries() ? kMs : 4 * kMs, 2 * kMs);
  CHECK((early >= 78 && early <= 82));
}

}  // namespace
}  // namespace perfkit::session
