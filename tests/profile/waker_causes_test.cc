// Who ended a wait, and where that thread was then.
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <string>

#include "src/profile/wait_text.h"
#include "tests/profile/hitching.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;

// Adds a wake-up by the worker.
void AddWaking(Hitching& game, uint16_t event, uint32_t thread, uint64_t at_ns, uint32_t stack) {
  game.builder().AddSample({.time_ns = at_ns,
                            .weight = 1,
                            .thread = thread,
                            .stack = stack,
                            .event = event,
                            .quality = StackQuality::kWhole});
}

TEST_CASE("the thread that ended a wait is where it was at that moment", "[profile][causes][wakers]") {
  const bool has_stack = GENERATE(false, true);
  Hitching game;
  const uint16_t event = game.builder().AddEvent({.name = "sched:sched_waking"});
  const uint32_t work = game.In("Work()", "/bin/game", ProfileStack::kRoot);
  const uint32_t wake = game.InKernel("try_to_wake_up", game.In("Finish(Job&)", "/bin/game", work));
  const uint32_t other = game.In("Other()", "/bin/game", work), kernel = game.InKernel("wake", ProfileStack::kRoot);
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 9);
  wait.waker = game.builder().String("worker (2)");
  const uint64_t from_ns = game.now_ns(), to_ns = from_ns + 17 * kMs;
  game.Wait(17, wait, game.In("pthread_cond_wait", "/lib/libc.so.6", game.render()));
  for (uint64_t ms = 0; ms < 16; ++ms) game.Sample(game.worker(), from_ns + ms * kMs, work);
  AddWaking(game, event, game.worker(), to_ns - 1, other);  // of another thread
  AddWaking(game, event, game.worker(), to_ns, has_stack ? wake : kernel);
  AddWaking(game, event, game.session_thread(), to_ns, other);
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE((causes[0].kind == Kind::kOtherThread && causes[0].thread == game.worker()));
  CHECK(causes[0].thread_stack == (has_stack ? wake : work));
  CHECK_THAT(game.text(), Catch::Contains(has_stack ? "for worker (2) in Finish(Job&)" : "for worker (2) in Work()"));
}

TEST_CASE("another program that ended a wait is named", "[profile][causes][wakers]") {
  Hitching game;
  const bool is_pipe = GENERATE(false, true);
  ProfileWait wait =
      is_pipe ? game.Call(SYS_read, "read of descriptor 3 (pipe:[17])", 1) : game.Call(SYS_futex, "futex 0x7f12", 1);
  wait.waker = game.builder().String("bash (4321) of another program");
  game.Wait(17, wait, game.render());
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  CHECK((causes[0].kind == Kind::kOtherThread && causes[0].thread == FrameCause::kNoThread));
  CHECK((causes[0].confidence == FrameCause::Confidence::kKnown && causes[0].remedy.empty()));
  const char* const text = is_pipe ? "waited in Render() for bash (4321) of another program to write it: read of"
                                   : "waited in Render() for bash (4321) of another program: futex 0x7f12";
  CHECK_THAT(game.text(), Catch::Contains(text));
}

TEST_CASE("a wait that was not examined is one for the program that ended it", "[profile][causes][wakers]") {
  Hitching game;
  const ProfileWait lock = game.Call(SYS_futex, "futex 0x7f12", 2);
  game.Wait(3, lock, game.In("pthread_mutex_lock", "/lib/libc.so.6", game.render()));
  game.Run(1);
  game.Wait(17, {.waker = game.builder().String("bash (4321) of another program")}, game.render());
  game.Run(1);
  game.Wait(3, lock, game.In("pthread_mutex_lock", "/lib/libc.so.6", game.render()));
  const std::vector<FrameCause> causes = game.Causes();
  CHECK((causes[0].kind == Kind::kOtherThread && causes[0].confidence == FrameCause::Confidence::kLikely));
  CHECK_THAT(game.text(), Catch::Contains("waited in Render() for bash (4321) of another program\n"));
}

TEST_CASE("a thread of the kernel that ended a wait is no other program", "[profile][causes][wakers]") {
  Hitching game;
  ProfileWait wait = game.Call(SYS_read, "read of descriptor 3 (/level)", 1);
  wait.waker = game.builder().String("kworker/0:1 (12) of the kernel");
  game.Wait(17, wait, game.render());
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  CHECK((causes[0].kind == Kind::kIo && causes[0].confidence == FrameCause::Confidence::kKnown));
}

TEST_CASE("a preempted time says how much of it a CPU quota explains", "[profile][causes][wakers]") {
  Hitching game;
  game.Wait(17, {.preempted = true, .throttled_ns = 12 * kMs}, game.render());
  game.Run(4);
  game.Causes();
  CHECK_THAT(game.text(),
             Catch::Contains("preempted: a CPU quota (cgroup) was used up for at most 12.00 ms of the longest"));
}

}  // namespace
}  // namespace perfkit::profile
