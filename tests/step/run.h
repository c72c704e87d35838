// What the tests of the stepper share: how to run a callable under it, and a loop of known length.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "src/step/stepper.h"
#include "tests/support/skip.h"

namespace perfkit::step {

#define OPEN_OR_SKIP(stepper)                                                                         \
  const auto stepper = Stepper::Open();                                                               \
  if (!stepper.ok() && absl::IsUnavailable(stepper.status())) SKIP_TEST(stepper.status().ToString()); \
  REQUIRE(stepper.status().ToString() == "OK")

// Runs any callable once under the stepper.
template <class Fn>
absl::StatusOr<StepCount> StepCall(const Stepper& stepper, Fn fn, const StepOptions& options = {}) {
  return stepper.Run([](void* f) { (*static_cast<Fn*>(f))(); }, &fn, options);
}

// Instructions of `fn`; fails the test where there is no number.
template <class Fn>
uint64_t Length(const Stepper& stepper, Fn fn) {
  const auto count = StepCall(stepper, fn);
  INFO(count.status());
  REQUIRE(count.ok());
  return count->instructions;
}

// A loop of 2 + 2 * n instructions.
template <uint64_t kRounds>
void Loop(void*) {
  asm volatile("mov %0, %%ecx\n 1: dec %%ecx\n jnz 1b\n nop" ::"i"(kRounds) : "ecx", "cc");
}

}  // namespace perfkit::step
