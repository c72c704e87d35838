// A profile by hand with one slow frame, for tests of its causes.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

inline constexpr uint64_t kMs = 1'000'000, kBegin = 1'000 * kMs;

inline void CheckShares(const SlowFrame& frame) {
  int64_t sum_ns = 0;
  for (const FrameCause& cause : frame.causes) {
    sum_ns += cause.share_ns;
    CHECK(cause.share_ns != 0);
    CHECK((cause.kind == FrameCause::Kind::kUnknown) == (cause.confidence == FrameCause::Confidence::kUnknown));
    const bool may_be_negative = cause.kind == FrameCause::Kind::kLess || cause.kind == FrameCause::Kind::kUnknown;
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
    for (int i = 0; i < 10; ++i) Usual();
  }
  void Usual() {
    Run(4);
    Mark();
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
  std::vector<FrameCause> Causes(double faults = 3, std::vector<ProfileCounter> counters = {}) {
    Mark(faults);
    counters.push_back(faults_);
    builder_.profile().counters = std::move(counters);
    profile_ = builder_.Take();
    REQUIRE(profile_.Check() == absl::OkStatus());
    const std::vector<SlowFrame> slow = FindSlowFrames(profile_);
    REQUIRE(slow.size() == 1);
    CheckShares(slow[0]);
    text_ = FormatSlowFrame(profile_, slow[0]);
    frame_ = slow[0];
    return slow[0].causes;
  }
  const std::string& text() const { return text_; }
  const SlowFrame& frame() const { return frame_; }

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
  SlowFrame frame_;
};

}  // namespace perfkit::profile
