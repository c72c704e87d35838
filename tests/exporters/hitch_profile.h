// A profile with a frame that hitched: the main thread waited for a lock that a loader held, and ran longer in a zone.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/slow_frames.h"

namespace perfkit::testing {

// Names that the profile shows; hostile ones in tests of what a page shows.
struct HitchNames {
  std::string thread = "loader", zone = "render", function = "LoadLevel()", lock = "futex 0x7f12a0", reason = "level=3";
  std::string file = "/data/level.bin", state = "players=64";
};

// 40 frames of 10 ms or so; frame 30 took some 42 ms. Times are odd to the nanosecond, and drawn by a seed.
class HitchProfile {
 public:
  explicit HitchProfile(uint64_t seed = 1, HitchNames names = {}) : random_(seed), names_(std::move(names)) {}

  Profile Make() {
    AddTables();
    for (int frame = 0; frame < 40; ++frame) AddFrame(frame, frame == 30);
    AddOthers();
    Profile& profile = builder_.profile();
    profile.program = "game";
    profile.from_ns = kStart, profile.to_ns = now_ns_;
    profile.accounting.notes = {"stacks: live"};
    return builder_.Take();
  }

  uint32_t main_thread() const { return main_; }
  uint32_t loader() const { return loader_; }

 private:
  static constexpr uint64_t kUs = 1'000, kMs = 1'000'000, kStart = 5'000 * kMs;

  uint64_t Odd(uint64_t ns) { return ns + random_() % (ns / 8 + 1); }

  void AddTables() {
    clock_ = Event({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds, .user_only = true});
    off_ = Event({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
    faults_ = Event({.name = "page-faults"});
    level_ = builder_.AddMemory({0x10000, 0x90000, builder_.String(names_.file)});
    main_ = builder_.AddThread(42, 42, "game");
    loader_ = builder_.AddThread(42, 43, names_.thread);
    worker_ = builder_.AddThread(42, 44, "worker");
    const uint32_t start = Call(ProfileStack::kRoot, "main", "/bin/game", "/src/main.cc", 12);
    simulate_ = Call(start, "Simulate(World&)", "/bin/game", "/src/simulate.cc", 70);
    render_ = Call(Call(start, "Render(Scene const&)", "/bin/game", "/src/render.cc", 31), "std::mutex::lock()",
                   "/bin/game", "/usr/include/c++/12/bits/std_mutex.h", 100);
    lock_ = Call(render_, "__lll_lock_wait", "/lib/libc.so.6", "", 0);
    load_ =
        Call(Call(start, "Run(Job)", "/bin/game", "/src/jobs.cc", 5), names_.function, "/bin/game", "/src/load.cc", 9);
    read_ = Call(load_, "read", "/lib/libc.so.6", "", 0);
    held_ = builder_.AddWait({.blocked_in_syscall = true,
                              .syscall = 202,
                              .arguments = {0xffffffffffffffff, 128, 2, 0, 0, 0},
                              .detail = builder_.String(names_.lock),
                              .waker = builder_.String(names_.thread + " (43)"),
                              .holder = loader_,
                              .holder_stack = read_,
                              .holder_quality = StackQuality::kWhole});
    short_ =
        builder_.AddWait({.blocked_in_syscall = true, .syscall = 230, .detail = builder_.String("clock_nanosleep")});
    preempted_ = builder_.AddWait({.preempted = true});
    idle_ = builder_.AddWait({.blocked_in_syscall = true, .syscall = 202, .detail = builder_.String("futex 0x66")});
  }

  uint16_t Event(ProfileEvent event) { return static_cast<uint16_t>(builder_.AddEvent(std::move(event))); }
  uint32_t Call(uint32_t caller, const std::string& name, const char* module, const char* file, uint32_t line) {
    return builder_.Stack(caller, builder_.Function(name, module, file, line));
  }

  void Sample(uint32_t thread, uint64_t at_ns, uint32_t stack, uint64_t ns, const char* label) {
    builder_.AddSample({.time_ns = at_ns,
                        .weight = ns,
                        .thread = thread,
                        .stack = stack,
                        .label = builder_.String(label),
                        .event = clock_,
                        .quality = StackQuality::kWhole});
  }
  void Wait(uint32_t thread, uint64_t at_ns, uint64_t ns, uint32_t stack, uint32_t wait) {
    builder_.AddSample({.time_ns = at_ns,
                        .weight = ns,
                        .thread = thread,
                        .stack = stack,
                        .wait = wait,
                        .event = off_,
                        .quality = wait == preempted_ ? StackQuality::kLastKnown : StackQuality::kWhole});
  }
  // Runs for that long in a zone, with a sample each ms.
  void Run(const std::string& zone, uint64_t ns, uint32_t stack) {
    for (uint64_t at_ns = now_ns_ + 300 * kUs; at_ns < now_ns_ + ns; at_ns += kMs) {
      Sample(main_, at_ns, stack, kMs, zone.c_str());
    }
    builder_.AddZone({.from_ns = now_ns_, .to_ns = now_ns_ + ns, .thread = main_, .name = builder_.String(zone)});
    now_ns_ += ns;
  }

  void AddFrame(int number, bool is_slow) {
    const uint64_t from_ns = now_ns_;
    if (is_slow) slow_ns_ = from_ns;
    const uint64_t simulate_ns = Odd(is_slow ? 6 * kMs : 3 * kMs);
    builder_.AddZone(
        {.from_ns = now_ns_, .to_ns = now_ns_ + simulate_ns / 2, .thread = main_, .name = builder_.String("solve")});
    Run("simulate", simulate_ns, simulate_);
    const uint64_t render_ns = now_ns_;
    now_ns_ += Odd(800 * kUs);
    Sample(main_, now_ns_ - 100 * kUs, render_, kMs, names_.zone.c_str());
    if (is_slow) {
      const uint64_t wait_ns = Odd(26 * kMs), delay_ns = Odd(2 * kMs);
      Wait(main_, now_ns_, wait_ns, lock_, held_);
      woken_ns_ = now_ns_ + wait_ns;
      Wait(main_, woken_ns_, delay_ns, lock_, preempted_);
      now_ns_ += wait_ns + delay_ns;
    }
    now_ns_ += Odd(500 * kUs);
    builder_.AddZone({.from_ns = render_ns, .to_ns = now_ns_, .thread = main_, .name = builder_.String(names_.zone)});
    const uint64_t sleep_ns = Odd(4 * kMs);
    Wait(main_, now_ns_, sleep_ns, simulate_, short_);
    now_ns_ += sleep_ns + Odd(50 * kUs);
    builder_.AddSample({.time_ns = from_ns + kMs,
                        .weight = is_slow ? 900U : 10U,
                        .thread = main_,
                        .stack = simulate_,
                        .event = faults_,
                        .quality = StackQuality::kWhole,
                        .memory = level_});
    builder_.AddZone({.from_ns = from_ns,
                      .to_ns = now_ns_,
                      .thread = main_,
                      .name = builder_.String("frame " + std::to_string(number)),
                      .cause = builder_.String(is_slow ? "waited 2 times for 28 ms" : ""),
                      .reason = builder_.String(is_slow ? names_.reason : ""),
                      .state = builder_.String(is_slow ? names_.state : ""),
                      .is_frame = true});
    points_.push_back({from_ns, is_slow ? 900.0 : 10.0});
  }

  // The loader holds the lock in the slow frame; the worker sleeps, and runs a little in each frame.
  void AddOthers() {
    Wait(loader_, kStart, slow_ns_ + kMs - kStart, load_, idle_);
    for (uint64_t at_ns = slow_ns_ + kMs; at_ns < woken_ns_; at_ns += 5 * kMs) {
      Sample(loader_, at_ns + 200 * kUs, load_, kMs, "load");
      Wait(loader_, at_ns + kMs, 3 * kMs, read_, short_);
    }
    builder_.AddZone(
        {.from_ns = slow_ns_ + kMs, .to_ns = woken_ns_, .thread = loader_, .name = builder_.String("load")});
    for (uint64_t at_ns = kStart; at_ns < now_ns_; at_ns += 5 * kMs) {
      Sample(worker_, at_ns + 500 * kUs, simulate_, kMs, "");
      Wait(worker_, at_ns + kMs, 4 * kMs, simulate_, idle_);
    }
    builder_.profile().counters.push_back({.name = builder_.String("page-faults"), .thread = main_, .points = points_});
    builder_.AddThread(42, 99, "silent");
  }

  std::mt19937_64 random_;
  HitchNames names_;
  ProfileBuilder builder_;
  uint16_t clock_ = 0, off_ = 0, faults_ = 0;
  uint32_t main_ = 0, level_ = 0, loader_ = 0, worker_ = 0;
  uint32_t simulate_ = 0, render_ = 0, lock_ = 0, load_ = 0, read_ = 0;
  uint32_t held_ = 0, short_ = 0, preempted_ = 0, idle_ = 0;
  uint64_t now_ns_ = kStart, slow_ns_ = 0, woken_ns_ = 0;
  std::vector<ProfileCounter::Point> points_;
};

// The hitch of a HitchProfile.
inline SlowFrame HitchOf(const Profile& profile) { return FindSlowFrames(profile, {.frames = 1}).at(0); }

}  // namespace perfkit::testing
