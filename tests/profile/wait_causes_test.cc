// Causes of slow frames: profiles by hand, for waits.
#include <sys/syscall.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/profile/hitching.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

TEST_CASE("a lock has its holder, and is an inversion if that one was preempted", "[profile][causes]") {
  Hitching game;
  const uint32_t load = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Load()", "/bin/game"));
  // That the lock stayed with one holder is known between the looks that found it, and until that one ended the wait.
  const uint64_t examined_ms = GENERATE(4, 15);
  const bool had_it_before = GENERATE(false, true);
  const char* const waker = GENERATE("", "worker (2)", "main (1)");
  const bool preempted = GENERATE(false, true);
  ProfileWait lock = game.Call(SYS_futex, "futex 0x7f12", examined_ms);
  lock.holder = game.worker();
  lock.holder_stack = load;
  lock.holder_since_ns = had_it_before ? game.now_ns() + 3 * kMs : lock.examined_ns;
  if (*waker != '\0') lock.waker = game.builder().String(waker);
  const uint64_t from_ms = had_it_before ? 3 : examined_ms;
  const uint64_t to_ms = std::string_view(waker) == "worker (2)" ? 17 : examined_ms;
  const bool is_known = 2 * (to_ms - from_ms) >= 17;
  game.Off(game.worker(), game.now_ns() + kMs, 14, {.preempted = preempted}, load);
  game.Wait(17, lock, game.In("pthread_mutex_lock", "/lib/libc.so.6", game.render()));
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == (preempted ? Kind::kPriorityInversion : Kind::kLock));
  CHECK(causes[0].share_ns == 17 * int64_t{kMs});
  CHECK(causes[0].confidence == (is_known ? Confidence::kKnown : Confidence::kLikely));
  CHECK(causes[0].remedy.empty() == (is_known || *waker != '\0'));
  CHECK((causes[0].thread == game.worker() && causes[0].thread_stack == load));
  CHECK(game.text().find(preempted ? "priority inversion: waited in Render() for worker (2) in Load(), which was"
                                   : "a lock that worker (2) held in Load(), wanted in Render()") != std::string::npos);
}

TEST_CASE("poll and select of no descriptors are sleeps", "[profile][causes]") {
  Hitching game;
  const bool has_descriptors = GENERATE(false, true);
  ProfileWait wait = game.Call(SYS_ppoll, "poll", 9);
  wait.arguments[1] = has_descriptors ? 2 : 0;
  game.Run(4);
  game.Wait(17, wait, game.render());
  CHECK(game.Causes()[0].kind == (has_descriptors ? Kind::kIo : Kind::kSleep));
}

TEST_CASE("a wait like an unknown one is unknown", "[profile][causes]") {
  Hitching game;
  game.Run(4);
  game.Wait(8, game.Call(-1, "", 4), game.render());
  game.Wait(9, {}, game.render());
  const std::vector<FrameCause> causes = game.Causes();  // Checks the confidence of each.
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == Kind::kUnknown);
}

TEST_CASE("what is always waited for is not to blame for a new wait", "[profile][causes]") {
  Hitching game;
  const auto pool = [&] {
    ProfileWait wait = game.Call(SYS_futex, "futex 0x1000", 14);
    wait.waker = game.builder().String("worker (2)");
    return wait;
  };
  const uint32_t wait_call = game.In("pthread_cond_wait", "/lib/libc.so.6", game.render());
  for (int i = 0; i < 12; ++i) {
    game.Wait(16, pool(), wait_call);
    game.Usual();
  }
  game.Wait(16, pool(), wait_call);
  ProfileWait lock = game.Call(SYS_futex, "futex 0x2000", 13);
  lock.holder = game.session_thread();
  lock.holder_since_ns = game.now_ns() + kMs;
  game.Wait(14, lock, game.In("pthread_mutex_lock", "/lib/libc.so.6", game.render()));
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(!causes.empty());
  CHECK((causes[0].kind == Kind::kLock && causes[0].confidence == Confidence::kKnown));
  CHECK(causes[0].share_ns == 14 * int64_t{kMs});
}

TEST_CASE("a thread whose number was used again is not known to have ended a wait", "[profile][causes]") {
  Hitching game;
  std::vector<ProfileThread>& threads = game.builder().profile().threads;
  threads.push_back(ProfileThread(threads[game.worker()]));
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 9);
  wait.waker = game.builder().String("worker (2)");
  game.Run(4);
  game.Wait(17, wait, game.In("pthread_cond_wait", "/lib/libc.so.6", game.render()));
  CHECK(game.Causes()[0].thread == FrameCause::kNoThread);
}

TEST_CASE("functions of the program are not the C library's, whatever their names", "[profile][causes]") {
  Hitching game;
  const char* const name = GENERATE("mtx_wait_for_upload(Pool*)", "mtx_wait_for_upload", "free(Pool*)");
  game.Run(4);
  game.Wait(17, game.Call(SYS_futex, "futex 0x7f12", 9),
            game.In("pthread_cond_wait", "/lib/libc.so.6", game.In(name, "/bin/game", game.render())));
  CHECK(game.Causes()[0].kind == Kind::kOtherThread);
}

TEST_CASE("a wait that was examined too early is only likely to have been that", "[profile][causes]") {
  Hitching game;
  const uint64_t examined_ms = GENERATE(1, 9);
  game.Run(4);
  game.Wait(17, game.Call(SYS_read, "read of descriptor 3 (/level)", examined_ms), game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kIo && causes[0].what == "read of descriptor 3 (/level)"));
  CHECK(causes[0].confidence == (examined_ms == 1 ? Confidence::kLikely : Confidence::kKnown));
}

TEST_CASE("the allocator's lock is told by the stack", "[profile][causes]") {
  Hitching game;
  const uint32_t new_call = game.In("operator new(unsigned long)", "/lib/libstdc++.so.6", game.render());
  const uint32_t malloc_call = game.In("__libc_malloc", "/lib/libc.so.6", new_call);
  game.Run(4);
  game.Wait(17, game.Call(SYS_futex, "futex 0x7f12", 9),
            game.In("__lll_lock_wait_private", "/lib/libc.so.6", malloc_call));
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kAllocatorLock && causes[0].confidence == Confidence::kKnown));
  CHECK(!causes[0].remedy.empty());
}

TEST_CASE("a stack from before a wait does not tell what it was for", "[profile][causes]") {
  Hitching game;
  const bool is_last_known = GENERATE(false, true);
  const auto kind = GENERATE(ProfileLock::kNone, ProfileLock::kMutex, ProfileLock::kSemaphore, ProfileLock::kCondition);
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 17);
  wait.lock_kind = kind;
  wait.waker = game.builder().String("worker (2)");
  game.Run(4);
  game.Wait(17, wait, game.In("__libc_malloc", "/lib/libc.so.6", game.render()));
  if (is_last_known) game.builder().profile().samples.back().quality = StackQuality::kLastKnown;
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  const bool may_be_allocator = kind == ProfileLock::kNone || kind == ProfileLock::kMutex;
  CHECK(causes[0].kind == (may_be_allocator && !is_last_known ? Kind::kAllocatorLock
                           : kind == ProfileLock::kMutex      ? Kind::kLock
                                                              : Kind::kOtherThread));
  CHECK(causes[0].thread == game.worker());
  CHECK((game.text().find("in Render()") == std::string::npos) == is_last_known);
}

TEST_CASE("a thread that calls what the program calls malloc is not in the allocator", "[profile][causes]") {
  Hitching game;
  const uint32_t caller = game.In("malloc", "/bin/game", game.render());
  game.Run(4);
  game.Wait(17, game.Call(SYS_futex, "futex 0x7f12", 9), game.In("Other()", "/bin/game", caller));
  CHECK(game.Causes()[0].kind == Kind::kOtherThread);
}

TEST_CASE("the thread that ended a wait is known by its record, and likely if it ran", "[profile][causes]") {
  Hitching game;
  const uint32_t wait_call = game.In("pthread_cond_wait", "/lib/libc.so.6", game.render());
  const uint32_t job = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Job()", "/bin/game"));
  const bool has_record = GENERATE(false, true), was_preempted = GENERATE(false, true);
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 9);
  if (has_record) wait.waker = game.builder().String("worker (2)");
  game.builder().AddZone({.from_ns = game.now_ns(),
                          .to_ns = game.now_ns() + 18 * kMs,
                          .thread = game.worker(),
                          .name = game.builder().String("job")});
  for (uint64_t i = was_preempted ? 13 : 1; i < 17; ++i) game.Sample(game.worker(), game.now_ns() + i * kMs, job);
  if (was_preempted) game.Off(game.worker(), game.now_ns(), 13, {.preempted = true}, job);
  // These ran longest, but are not to blame: the session's own thread, and the one of another process.
  const uint32_t other = game.builder().AddThread(7, 7, "other");
  for (uint64_t i = 0; i < 17; ++i) game.Sample(game.session_thread(), game.now_ns() + i * kMs, job);
  for (uint64_t i = 0; i < 17; ++i) game.Sample(other, game.now_ns() + i * kMs, job);
  game.Wait(17, wait, wait_call);
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == (was_preempted ? Kind::kPriorityInversion : Kind::kOtherThread));
  CHECK(causes[0].confidence == (has_record ? Confidence::kKnown : Confidence::kLikely));
  CHECK(causes[0].remedy.empty() == has_record);
  CHECK((causes[0].thread == game.worker() && causes[0].thread_stack == job && causes[0].thread_zone == "job"));
}

TEST_CASE("a thread that was preempted for a part of a wait is to blame for the rest of it", "[profile][causes]") {
  Hitching game;
  const uint32_t job = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Job()", "/bin/game"));
  const bool has_holder = GENERATE(false, true);
  const uint64_t preempted_ms = GENERATE(4, 5, 10, 15, 16);
  const uint64_t from_ns = game.now_ns();
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 15);
  wait.waker = game.builder().String("worker (2)");
  if (has_holder) wait.holder = game.worker(), wait.holder_since_ns = from_ns + kMs;
  game.Off(game.worker(), from_ns, preempted_ms, {.preempted = true}, job);
  for (uint64_t i = preempted_ms; i < 20; ++i) game.Sample(game.worker(), from_ns + i * kMs, job);
  const char* const call = has_holder ? "pthread_mutex_lock" : "pthread_cond_wait";
  game.Wait(20, wait, game.In(call, "/lib/libc.so.6", game.render()));
  game.Run(4);
  std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  const bool is_all = preempted_ms > 15, is_none = preempted_ms < 5;
  REQUIRE(causes.size() == (is_all || is_none ? 1 : 2));
  if (causes[0].kind != Kind::kPriorityInversion) std::ranges::reverse(causes);
  CHECK((causes[0].kind == Kind::kPriorityInversion) == !is_none);
  for (const FrameCause& cause : causes) {
    const bool is_inversion = cause.kind == Kind::kPriorityInversion;
    const uint64_t inverted_ms = is_all ? 20 : is_none ? 0 : preempted_ms;
    CHECK(cause.share_ns == static_cast<int64_t>((is_inversion ? inverted_ms : 20 - inverted_ms) * kMs));
    CHECK((is_inversion || cause.kind == (has_holder ? Kind::kLock : Kind::kOtherThread)));
    CHECK(cause.what.empty() == is_inversion);
    CHECK((cause.confidence == Confidence::kKnown && cause.thread == game.worker()));
  }
}

TEST_CASE("that a thread kept another one waiting is known if it is known what it did", "[profile][causes]") {
  Hitching game;
  const uint32_t job = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Job()", "/bin/game"));
  enum { kNothing, kRan, kBlocked, kSeenBlocked, kWoken };
  const int did = GENERATE(as<int>(), kNothing, kRan, kBlocked, kSeenBlocked, kWoken);
  const uint64_t shown_ms = GENERATE(7, 9);  // of 17
  ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 9);
  wait.waker = game.builder().String("worker (2)");
  for (uint64_t i = 0; did == kRan && i < shown_ms; ++i) game.Sample(game.worker(), game.now_ns() + i * kMs, job);
  // A thread that was woken by what has no record may have waited for a CPU since.
  ProfileWait blocked = game.Call(SYS_read, "read of descriptor 3 (/level)", shown_ms);
  if (did != kSeenBlocked) blocked.examined_ns = 0;
  if (did == kWoken) blocked.waker = game.builder().String(ProfileWait::kInterrupt);
  const uint64_t blocked_ms = did == kWoken ? shown_ms : 17;
  if (did >= kBlocked) game.Off(game.worker(), game.now_ns(), blocked_ms, blocked, job);
  game.Wait(17, wait, game.In("pthread_cond_wait", "/lib/libc.so.6", game.render()));
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kOtherThread && causes[0].thread == game.worker()));
  const bool is_shown = shown_ms == 9 && did != kNothing && did != kBlocked;
  CHECK(causes[0].confidence == (is_shown ? Confidence::kKnown : Confidence::kLikely));
}

TEST_CASE("a thread whose work ended with the wait is to blame before one that goes on", "[profile][causes]") {
  Hitching game;
  const uint32_t job = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Job()", "/bin/game"));
  const uint32_t other = game.builder().AddThread(1, 9, "other");
  const uint64_t end_ns = game.now_ns() + 17 * kMs;
  for (uint64_t i = 0; i < 17; ++i) game.Sample(other, game.now_ns() + i * kMs, job);
  for (uint64_t i = 8; i < 17; ++i) game.Sample(game.worker(), game.now_ns() + i * kMs, job);
  game.Off(game.worker(), end_ns + 20'000, 40, game.Call(SYS_futex, "futex 0x7f13", 2), job);
  game.Wait(17, game.Call(SYS_futex, "futex 0x7f12", 9), game.render());
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].thread == game.worker());
}

TEST_CASE("threads that slept all the time are not to blame", "[profile][causes]") {
  Hitching game;
  game.Off(game.worker(), game.now_ns() - 5 * kMs, 30, game.Call(SYS_futex, "futex 0x7f13", 2), game.render());
  game.Wait(17, game.Call(SYS_futex, "futex 0x7f12", 9), game.render());
  game.Run(4);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kOtherThread && causes[0].confidence == Confidence::kLikely));
  CHECK(causes[0].thread == FrameCause::kNoThread);
}

TEST_CASE("a wait that was not examined is not known, and an option would tell", "[profile][causes]") {
  Hitching game;
  game.Run(4);
  game.Wait(3, {}, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kUnknown && causes[0].remedy.find("SessionOptions::wakers") != std::string::npos));
}

TEST_CASE("short waits between two that were examined are likely for the same", "[profile][causes]") {
  Hitching game;
  const bool same = GENERATE(true, false);
  game.Run(4);
  game.Wait(2, game.Call(SYS_read, "read of descriptor 3 (/level)", 1), game.render());
  for (int i = 0; i < 5; ++i) game.Wait(2, {}, game.render());
  game.Wait(2, game.Call(SYS_read, same ? "read of descriptor 3 (/level)" : "read of descriptor 4", 1), game.render());
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  REQUIRE(causes.size() == (same ? 1 : 3));
  CHECK(causes[0].kind == (same ? Kind::kIo : Kind::kUnknown));
  CHECK(causes[0].confidence == (same ? Confidence::kLikely : Confidence::kUnknown));
  CHECK(causes[0].share_ns == (same ? 14 : 10) * int64_t{kMs});  // of which 4 ms are known
}

TEST_CASE("it takes two examined waits to tell what others beside them were for", "[profile][causes]") {
  Hitching game;
  const int before = GENERATE(0, 1, 2), after = GENERATE(0, 1, 2);
  const auto examined = [&] { game.Wait(1, game.Call(SYS_read, "read of descriptor 3 (/level)", 1), game.render()); };
  game.Run(4);
  for (int i = 0; i < before; ++i) examined();
  game.Wait(9, {}, game.render());
  for (int i = 0; i < after; ++i) examined();
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  const bool is_like = before + after >= 2;
  const bool is_only_cause = is_like || before + after == 0;
  REQUIRE(causes.size() == (is_only_cause ? 1 : 2));
  CHECK(causes[0].kind == (is_like ? Kind::kIo : Kind::kUnknown));
}

TEST_CASE("a wait that a thread ended is like those beside it that the same thread ended", "[profile][causes]") {
  Hitching game;
  const char* const waker = GENERATE("worker (2)", "main (1)", "an interrupt");
  const uint32_t malloc_call =
      game.In("__lll_lock_wait_private", "/lib/libc.so.6", game.In("malloc", "/lib/libc.so.6", game.render()));
  const auto examined = [&] {
    ProfileWait wait = game.Call(SYS_futex, "futex 0x7f12", 1);
    wait.waker = game.builder().String("worker (2)");
    return wait;
  };
  game.Run(4);
  game.Wait(2, examined(), malloc_call);
  ProfileWait other;
  other.waker = game.builder().String(waker);
  game.Wait(9, other, game.render());
  game.Wait(2, examined(), malloc_call);
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  const bool is_same = waker == std::string_view("worker (2)") || waker == ProfileWait::kInterrupt;
  REQUIRE(causes.size() == (is_same ? 1 : 2));
  CHECK(causes[0].kind == (is_same ? Kind::kAllocatorLock : Kind::kOtherThread));
  CHECK(causes[0].confidence == Confidence::kLikely);
  CHECK(causes[0].thread == (is_same ? game.worker() : game.main()));
}

TEST_CASE("a wait while something was read from a disk is likely one for it", "[profile][causes]") {
  Hitching game;
  enum { kAlone, kAmongReads, kAmongFaults, kAmongLocks };
  const int where = GENERATE(as<int>(), kAlone, kAmongReads, kAmongFaults, kAmongLocks);
  const auto neighbour = [&] {
    if (where == kAmongReads) game.Wait(2, game.Call(SYS_read, "read of descriptor 3 (/level)", 1), game.render());
    if (where == kAmongFaults) game.Wait(2, game.Call(-1, "outside of a system call", 1), game.render());
    if (where == kAmongLocks) game.Wait(2, game.Call(SYS_futex, "futex 0x7f12", 1), game.render());
  };
  game.Run(4);
  neighbour();
  ProfileWait wait;
  wait.detail = game.builder().String(ProfileWait::kProbablyDisk);
  wait.waker = game.builder().String(GENERATE("", "an interrupt"));
  game.Wait(9, wait, game.render());
  neighbour();
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  REQUIRE(!causes.empty());
  CHECK(causes[0].kind == (where == kAmongFaults ? Kind::kPageFaults : Kind::kIo));
  CHECK(causes[0].confidence == Confidence::kLikely);
  CHECK((where == kAmongReads) == (causes[0].what == "read of descriptor 3 (/level)"));
  CHECK((causes[0].what == ProfileWait::kProbablyDisk) == (where == kAlone || where == kAmongLocks));
}

TEST_CASE("the excess of a part is that of its longest waits", "[profile][causes]") {
  Hitching game;
  game.Run(4);
  game.Wait(2, game.Call(SYS_futex, "futex 0x1", 1), game.render());
  ProfileWait lock = game.Call(SYS_futex, "futex 0x2", 8);
  lock.holder = game.worker();
  game.Wait(9, lock, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kLock && causes[0].share_ns == 9 * int64_t{kMs}));
  CHECK((causes[1].kind == Kind::kOtherThread && causes[1].share_ns == 2 * int64_t{kMs}));
}

}  // namespace
}  // namespace perfkit::profile
