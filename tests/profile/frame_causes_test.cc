// Causes of slow frames: profiles by hand, for each kind of cause.
#include <sys/syscall.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

constexpr uint64_t kMs = 1'000'000, kBegin = 1'000 * kMs;

void CheckShares(const SlowFrame& frame) {
  int64_t sum_ns = 0;
  for (const FrameCause& cause : frame.causes) {
    sum_ns += cause.share_ns;
    CHECK(cause.share_ns != 0);
    CHECK((cause.kind == Kind::kUnknown) == (cause.confidence == Confidence::kUnknown));
    const bool may_be_negative = cause.kind == Kind::kLess || cause.kind == Kind::kUnknown;
    CHECK((cause.share_ns > 0 || may_be_negative));
  }
  CHECK(sum_ns == frame.excess_ns());
  CHECK(std::is_sorted(frame.causes.begin(), frame.causes.end(),
                       [](const FrameCause& a, const FrameCause& b) { return a.share_ns > b.share_ns; }));
}

// Ten frames of 4 ms in the zone "work", sampled every ms, and one that is slow.
class Hitching {
 public:
  explicit Hitching(bool user_only = false) {
    clock_ = Event("cpu-clock", user_only);
    off_cpu_ = Event(kOffCpuEvent, false);
    main_ = builder_.AddThread(1, 1, "main");
    worker_ = builder_.AddThread(1, 2, "worker");
    session_ = builder_.AddThread(1, 3, "perfkit-session");
    render_ = builder_.Stack(ProfileStack::kRoot, builder_.Function("Render()", "/bin/game"));
    faults_.name = builder_.String("page-faults");
    faults_.thread = main_;
    for (int i = 0; i < 10; ++i) {
      Run(4);
      Mark();
    }
  }

  uint32_t main() const { return main_; }
  uint32_t worker() const { return worker_; }
  uint32_t session_thread() const { return session_; }
  uint32_t render() const { return render_; }
  ProfileBuilder& builder() { return builder_; }
  uint64_t now_ns() const { return now_ns_; }

  // On the CPU; sampled unless `stack` is kRoot.
  void Run(uint64_t ms, uint32_t stack) {
    for (uint64_t i = 0; i < ms && stack != ProfileStack::kRoot; ++i) Sample(main_, now_ns_ + i * kMs, stack);
    now_ns_ += ms * kMs;
  }
  void Run(uint64_t ms) { Run(ms, render_); }
  void Sample(uint32_t thread, uint64_t at_ns, uint32_t stack) {
    builder_.AddSample({.time_ns = at_ns,
                        .weight = kMs,
                        .thread = thread,
                        .stack = stack,
                        .label = builder_.String(thread == main_ ? "work" : ""),
                        .event = static_cast<uint16_t>(clock_),
                        .quality = StackQuality::kWhole});
  }
  // Off the CPU.
  void Off(uint32_t thread, uint64_t from_ns, uint64_t ms, const ProfileWait& wait, uint32_t stack) {
    builder_.AddSample({.time_ns = from_ns,
                        .weight = ms * kMs,
                        .thread = thread,
                        .stack = stack,
                        .wait = builder_.AddWait(wait),
                        .event = static_cast<uint16_t>(off_cpu_),
                        .quality = StackQuality::kWhole});
  }
  void Wait(uint64_t ms, const ProfileWait& wait, uint32_t stack) {
    Off(main_, now_ns_, ms, wait, stack);
    now_ns_ += ms * kMs;
  }
  // A wait in a call that was examined after `examined_ms`.
  ProfileWait Call(int32_t number, const char* detail, uint64_t examined_ms) {
    return {.blocked_in_syscall = number >= 0,
            .syscall = number,
            .detail = builder_.String(detail),
            .examined_ns = now_ns_ + examined_ms * kMs};
  }
  // In a library's function that Render has called.
  uint32_t In(const char* function, const char* module, uint32_t caller) {
    return builder_.Stack(caller, builder_.Function(function, module));
  }
  uint32_t InKernel(std::string_view function, uint32_t caller) {
    const uint32_t location = builder_.Location(builder_.Module("[kernel]"), 4096 + function.size(), true);
    const ProfileCall call{.function = builder_.String(function)};
    builder_.SetCalls(location, {&call, 1});
    return builder_.Stack(caller, location);
  }
  void Mark(double faults = 3) {
    builder_.AddZone({.from_ns = begin_ns_, .to_ns = now_ns_, .thread = main_, .name = builder_.String("work")});
    builder_.AddZone({.from_ns = begin_ns_,
                      .to_ns = now_ns_,
                      .thread = main_,
                      .name = builder_.String("frame " + std::to_string(number_++)),
                      .is_frame = true});
    faults_.points.push_back({begin_ns_, faults});
    begin_ns_ = now_ns_;
  }
  // The causes of the slow frame.
  std::vector<FrameCause> Causes(double faults = 3) {
    Mark(faults);
    builder_.profile().counters = {faults_};
    profile_ = builder_.Take();
    REQUIRE(profile_.Check() == absl::OkStatus());
    const std::vector<SlowFrame> slow = FindSlowFrames(profile_);
    REQUIRE(slow.size() == 1);
    CheckShares(slow[0]);
    text_ = FormatSlowFrame(profile_, slow[0]);
    return slow[0].causes;
  }
  const std::string& text() const { return text_; }

 private:
  uint32_t Event(std::string_view name, bool user_only) {
    return builder_.AddEvent({.name = std::string(name), .unit = ProfileUnit::kNanoseconds, .user_only = user_only});
  }

  ProfileBuilder builder_;
  uint32_t clock_ = 0, off_cpu_ = 0, main_ = 0, worker_ = 0, session_ = 0, render_ = 0;
  ProfileCounter faults_;
  uint64_t now_ns_ = kBegin, begin_ns_ = kBegin;
  int number_ = 0;
  Profile profile_;
  std::string text_;
};

TEST_CASE("more work in a zone, and preemption", "[profile][causes]") {
  Hitching game;
  game.Run(20);
  game.Wait(7, {.preempted = true}, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kMoreWork && causes[0].confidence == Confidence::kKnown));
  CHECK((causes[0].what == "work" && causes[0].share_ns == 16 * int64_t{kMs} && causes[0].stack == game.render()));
  CHECK((causes[1].kind == Kind::kPreempted && causes[1].confidence == Confidence::kKnown));
  CHECK(game.text().find("+16.00 ms  known    more work in work, in Render()\n") != std::string::npos);
  CHECK(game.text().find("+7.000 ms  known    preempted in Render(): others ran, or a CPU quota was used up\n") !=
        std::string::npos);
}

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
  game.Off(game.worker(), game.now_ns() + kMs, 10, {.preempted = preempted}, load);
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

TEST_CASE("work that no sample shows is not known, and may be page faults", "[profile][causes]") {
  constexpr bool kUserOnly = true;
  const bool many = GENERATE(false, true);
  Hitching game(kUserOnly);
  game.Run(6);
  game.Run(5, ProfileStack::kRoot);  // In the kernel, less than half of the zone.
  const std::vector<FrameCause> causes = game.Causes(many ? 1000 : 3);
  REQUIRE(causes.size() == (many ? 2 : 1));
  if (many) CHECK((causes[0].kind == Kind::kPageFaults && causes[0].share_ns == 5 * int64_t{kMs}));
  CHECK((causes.back().kind == Kind::kMoreWork && causes.back().share_ns == (many ? 2 : 7) * int64_t{kMs}));
  for (const FrameCause& cause : causes) {
    CHECK(cause.confidence == (cause.kind == Kind::kMoreWork && many ? Confidence::kKnown : Confidence::kLikely));
  }
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
  if (was_preempted) game.Off(game.worker(), game.now_ns() + kMs, 12, {.preempted = true}, job);
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

TEST_CASE("page faults are known by samples in their code, as far as these go", "[profile][causes]") {
  Hitching game;
  const uint32_t fault = game.InKernel("clear_page_erms", game.InKernel("asm_exc_page_fault", game.render()));
  game.Run(8);
  game.Run(12, fault);
  const std::vector<FrameCause> causes = game.Causes(10'000);
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kPageFaults && causes[0].confidence == Confidence::kKnown));
  CHECK((causes[0].share_ns / int64_t{kMs} == 11 && causes[0].stack == fault && causes[0].what == "work"));
  CHECK((causes[1].kind == Kind::kMoreWork && causes[1].share_ns / int64_t{kMs} == 4));
}

TEST_CASE("page faults are likely by their count, where the kernel may not be seen", "[profile][causes]") {
  Hitching game(true);
  game.Run(4);
  game.Run(16, ProfileStack::kRoot);
  SECTION("as many as take so long") {
    const std::vector<FrameCause> causes = game.Causes(10'000);
    REQUIRE(causes.size() == 1);
    CHECK((causes[0].kind == Kind::kPageFaults && causes[0].confidence == Confidence::kLikely));
    CHECK(causes[0].remedy.find("CAP_PERFMON") != std::string::npos);
  }
  SECTION("too few: the kernel did something else") {
    const std::vector<FrameCause> causes = game.Causes(103);
    REQUIRE(causes.size() == 2);
    CHECK((causes[0].kind == Kind::kUnknown && causes[0].share_ns == 14 * int64_t{kMs}));
    CHECK((causes[1].kind == Kind::kPageFaults && causes[1].share_ns == 2 * int64_t{kMs}));
    CHECK(game.text().find("not known: time in the kernel in work, or taken by the machine [more by CAP_PERFMON") !=
          std::string::npos);
  }
  SECTION("as usual") {
    const std::vector<FrameCause> causes = game.Causes();
    REQUIRE(causes.size() == 1);
    CHECK(causes[0].kind == Kind::kUnknown);
  }
}

TEST_CASE("a wait that was not examined is not known, and an option would tell", "[profile][causes]") {
  Hitching game;
  game.Run(4);
  game.Wait(3, {}, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kUnknown && causes[0].remedy.find("look_after") != std::string::npos));
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

TEST_CASE("what took less than usual is a cause of its own, and negative", "[profile][causes]") {
  Hitching game;
  game.Run(1);
  game.Wait(9, game.Call(SYS_nanosleep, "sleep", 8), game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kSleep && causes[0].share_ns == 9 * int64_t{kMs}));
  CHECK((causes[1].kind == Kind::kLess && causes[1].share_ns == -3 * int64_t{kMs}));
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

TEST_CASE("each kind and each confidence has a name", "[profile][causes]") {
  for (int kind = 0; kind <= static_cast<int>(Kind::kLess); ++kind) {
    CHECK(!FrameCauseKindName(static_cast<Kind>(kind)).empty());
  }
  CHECK(FrameCauseKindName(Kind::kLess) == "less than usual");
  CHECK(FrameCauseConfidenceName(Confidence::kKnown) == "known");
}

}  // namespace
}  // namespace perfkit::profile
