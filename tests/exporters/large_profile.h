// Profiles of a size that writers must not hold in memory.
#pragma once

#include <string>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::testing {

// `samples` of 3,000 stacks of 30 calls.
inline Profile LargeProfile(uint32_t samples) {
  constexpr uint32_t kStacks = 3'000;
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "main");
  std::vector<uint32_t> locations, leaves;
  for (uint32_t i = 0; i < 200; ++i) locations.push_back(builder.Function("function " + std::to_string(i), "/bin/app"));
  for (uint32_t i = 0; i < kStacks; ++i) {
    uint32_t stack = ProfileStack::kRoot;
    for (uint32_t k = 0; k < 30; ++k) stack = builder.Stack(stack, locations[(k < 20 ? k : i * (k - 19)) % 200]);
    leaves.push_back(stack);
  }
  for (uint32_t i = 0; i < samples; ++i) {
    builder.AddSample({.time_ns = 1 + i, .weight = 1, .stack = leaves[i % kStacks], .quality = StackQuality::kWhole});
  }
  return builder.Take();
}

// One sample with a stack of `calls` calls: two functions that call each other.
inline Profile DeepProfile(uint32_t calls) {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock"});
  builder.AddThread(1, 1, "main");
  const uint32_t even = builder.Function("Even", "/bin/app"), odd = builder.Function("Odd", "/bin/app");
  uint32_t stack = ProfileStack::kRoot;
  for (uint32_t i = 0; i < calls; ++i) stack = builder.Stack(stack, i % 2 == 0 ? even : odd);
  builder.AddSample({.weight = 5, .stack = stack, .quality = StackQuality::kWhole});
  return builder.Take();
}

}  // namespace perfkit::testing
