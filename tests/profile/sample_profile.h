// A profile that is written by hand, and what every reader has to find in it.
#pragma once

#include <cstdint>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {

// Where the samples of SampleProfile are.
struct SampleStacks {
  uint32_t work = 0, hot = 0, unnamed = 0, kernel = 0;
};

inline SampleStacks AddSampleStacks(ProfileBuilder& builder) {
  SampleStacks stacks;
  const uint32_t start = builder.Stack(ProfileStack::kRoot, builder.Function("_start", "/bin/app"));
  const uint32_t main = builder.Stack(start, builder.Function("main", "/bin/app", "/src/main.cc", 10));
  stacks.work = builder.Stack(main, builder.Function("Work(int, char const*)", "/bin/app", "/src/work.cc", 20));
  const uint32_t hot_at = builder.Location(builder.Module("/bin/app", "0123456789abcdef"), 0x5000);
  const ProfileCall hot_calls[] = {
      {.function = builder.String("Inlined<T>"), .file = builder.String("/src/hot.h"), .line = 7, .inlined = true},
      {.function = builder.String("Hot"), .file = builder.String("/src/hot.cc"), .line = 30}};
  builder.SetCalls(hot_at, hot_calls);
  stacks.hot = builder.Stack(stacks.work, hot_at);
  stacks.unnamed = builder.Stack(main, builder.Location(builder.Module("/lib/libbare.so"), 0x1234), true);
  const uint32_t kernel_at = builder.Location(builder.Module("[kernel]"), 0xffffffff81000000, true);
  const ProfileCall kernel_call{.function = builder.String("clear_page")};
  builder.SetCalls(kernel_at, std::span(&kernel_call, 1));
  stacks.kernel = builder.Stack(stacks.hot, kernel_at);
  return stacks;
}

// Time off the CPU, zones, a counter.
inline void AddSampleTimeline(ProfileBuilder& builder, const SampleStacks& stacks, uint16_t off, uint32_t main_thread,
                              uint32_t worker) {
  const uint32_t futex =
      builder.AddWait({.blocked_in_syscall = true, .syscall = 202, .detail = builder.String("futex 0x1000")});
  builder.AddSample({.time_ns = 1'110'000'000,
                     .weight = 40'000'000,
                     .thread = worker,
                     .stack = stacks.work,
                     .wait = futex,
                     .event = off,
                     .quality = StackQuality::kWhole});
  builder.AddSample({.time_ns = 1'160'000'000,
                     .weight = 10'000'000,
                     .thread = worker,
                     .stack = stacks.hot,
                     .wait = builder.AddWait({.preempted = true}),
                     .event = off,
                     .quality = StackQuality::kLastKnown});
  builder.AddZone({.from_ns = 1'000'000'000,
                   .to_ns = 1'100'000'000,
                   .thread = main_thread,
                   .name = builder.String("frame"),
                   .cause = builder.String("a slow zone"),
                   .is_frame = true});
  builder.AddZone(
      {.from_ns = 1'010'000'000, .to_ns = 1'050'000'000, .thread = main_thread, .name = builder.String("physics")});
  builder.profile().counters.push_back({.name = builder.String("queue length"),
                                        .points = {{1'000'000'000, 1.0}, {1'050'000'000, 5.5}, {1'100'000'000, 0.0}}});
}

// Two threads; CPU time, page faults and time off the CPU; an inlined call, code without a name, a kernel part, zones,
// a counter. Sums: cpu-clock 100,000,000 ns in 100 samples, page-faults 30 in 3, off-cpu 50,000,000 ns in 2.
inline Profile SampleProfile() {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.program = "app";
  profile.from_ns = 1'000'000'000, profile.to_ns = 1'200'000'000;
  profile.realtime_offset_ns = 1'700'000'000'000'000'000;
  const auto cpu = builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  const auto faults = builder.AddEvent({.name = "page-faults"});
  const auto off = builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  const uint32_t main_thread = builder.AddThread(42, 42, "app");
  const uint32_t worker = builder.AddThread(42, 43, "worker \"1\"; <a>");

  const SampleStacks stacks = AddSampleStacks(builder);
  for (uint32_t i = 0; i < 100; ++i) {  // 60 hot, 30 work, 8 unnamed, 2 in the kernel
    const uint32_t stack = i < 60 ? stacks.hot : i < 90 ? stacks.work : i < 98 ? stacks.unnamed : stacks.kernel;
    builder.AddSample({.time_ns = 1'000'000'000 + i * 1'000'000,
                       .weight = 1'000'000,
                       .thread = i % 4 == 0 ? worker : main_thread,
                       .stack = stack,
                       .label = i < 60 ? builder.String("physics") : 0,
                       .event = cpu,
                       .quality = i < 98 ? StackQuality::kWhole : StackQuality::kPart});
  }
  for (uint32_t i = 0; i < 3; ++i) {
    builder.AddSample({.time_ns = 1'010'000'000 + i,
                       .weight = 10,
                       .thread = worker,
                       .stack = stacks.kernel,
                       .event = faults,
                       .quality = StackQuality::kPart});
  }
  AddSampleTimeline(builder, stacks, off, main_thread, worker);
  profile.accounting.notes = {"stacks: live", "3 samples lost"};
  return builder.Take();
}

}  // namespace perfkit::profile
