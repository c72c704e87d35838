// Wake-ups by other programs, the kernel and interrupts.
#include "src/session/foreign_wakers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <thread>

#include "perfkit/session.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kOwnPid = 100, kWokenTid = 101, kForeignPid = 200;

std::string NameByNumbers(uint32_t pid, uint32_t tid) { return std::to_string(pid) + "/" + std::to_string(tid); }

std::string WakerAt(const ForeignWakers& wakers, uint64_t from_ns, uint64_t to_ns) {
  const std::optional<Waker> waker = wakers.Find(kWokenTid, from_ns, to_ns);
  return waker ? waker->name + " at " + std::to_string(waker->at_ns) : "";
}

TEST_CASE("a wait is ended by the wake-up within it, unless a thread of its own process did", "[foreign_wakers]") {
  ForeignWakers wakers(kOwnPid, NameByNumbers);
  wakers.Add({.tid = kWokenTid}, {kForeignPid, kForeignPid}, 500);  // no thread of this process that has slept
  CHECK(WakerAt(wakers, 0, 1000).empty());
  wakers.Left(kOwnPid, kWokenTid);
  wakers.Add({.tid = kWokenTid}, {kForeignPid, kForeignPid + 1}, 1000);
  wakers.Add({.tid = kWokenTid}, {kOwnPid, kOwnPid}, 2000);
  wakers.Add({.tid = kWokenTid, .by_interrupt = true}, {kOwnPid, kOwnPid}, 3000);
  wakers.Add({.tid = kWokenTid}, {0, 0}, 4000);  // an idle CPU
  CHECK(WakerAt(wakers, 900, 1000) == "200/201 at 1000");
  CHECK(WakerAt(wakers, 1000, 1100) == "200/201 at 1000");
  CHECK(WakerAt(wakers, 1001, 1999).empty());
  CHECK(WakerAt(wakers, 1500, 2500).empty());
  CHECK(WakerAt(wakers, 900, 2500).empty());  // the last one ended it
  CHECK(WakerAt(wakers, 2500, 3500) == "an interrupt at 3000");
  CHECK(WakerAt(wakers, 3500, 4500) == "an interrupt at 4000");
  wakers.Forget(3000);
  CHECK(WakerAt(wakers, 900, 1000).empty());
  CHECK(WakerAt(wakers, 2500, 3500) == "an interrupt at 3000");
  wakers.Left(kForeignPid, kWokenTid);  // the number is another process's by now
  CHECK(WakerAt(wakers, 2500, 3500).empty());
}

TEST_CASE("names of wakers say what they are", "[foreign_wakers]") {
  const auto self = static_cast<uint32_t>(getpid());
  CHECK_THAT(ForeignWakers::NameOf(self, self), Catch::EndsWith(" (" + std::to_string(self) + ") of another program"));
  CHECK(ForeignWakers::NameOf(1 << 22, 1 << 22) == "a thread (4194304) of another program");
  // In the first pid namespace this is kthreadd.
  const std::string second = ForeignWakers::NameOf(2, 2);
  if (second.starts_with("kthreadd")) CHECK(second == "kthreadd (2) of the kernel");
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  const auto ended = static_cast<uint32_t>(child);
  CHECK_THAT(ForeignWakers::NameOf(ended, ended),
             Catch::EndsWith(" (" + std::to_string(child) + ") of another program"));
  waitpid(child, nullptr, 0);
}

// Returns "" if the waits of a thread were ended by the process that wrote what it read.
std::string WokenByChild() {
  constexpr int kBytes = 100;
  int ends[2];
  if (pipe(ends) != 0) return "pipe";
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kBytes; ++i) {
      usleep(2000);
      if (write(ends[1], "", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  absl::StatusOr<Session> session = Session::Start(
      {.clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .wakers = true, .preempters = true});
  if (!session.ok()) return std::string(session.status().message());
  char byte = 0;
  for (int i = 0; i < kBytes && read(ends[0], &byte, 1) == 1; ++i) {
  }
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  const absl::StatusOr<Profile> profile = session->Stop();
  if (!profile.ok() || !profile->Check().ok()) return "no profile";
  if (profile->accounting.switches_read == 0) return "tracepoints are not permitted";
  const std::string by_child = " (" + std::to_string(child) + ") of another program";
  int found = 0;
  for (const ProfileSample& sample : profile->samples) {
    if (sample.wait == ProfileSample::kNoWait ||
        profile->threads[sample.thread].tid != static_cast<uint32_t>(getpid())) {
      continue;
    }
    const ProfileWait& wait = profile->waits[sample.wait];
    found += profile->strings[wait.waker].ends_with(by_child) && !wait.preempted;
  }
  // On a busy machine the next byte may be there before the thread has waited for it.
  return found > 0 || profile->accounting.switches_lost != 0 ? "" : "woken " + std::to_string(found);
}

TEST_CASE("a thread that waits for another program is woken by that one", "[foreign_wakers][law]") {
  if (!testing::kThreadsAfterFork) SKIP_TEST("a forked child can't start threads under ThreadSanitizer");
  const int result = testing::WithTracefs([] {
    const std::string wrong = WokenByChild();
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
    return wrong.empty();
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

}  // namespace
}  // namespace perfkit::session
