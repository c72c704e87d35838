// Work under a sampler of hardware events: what tests of samples share.
#pragma once

#include <catch2/catch.hpp>
#include <string_view>
#include <utility>

#include "perfkit/sampler.h"
#include "tests/pmu/pmu.h"
#include "tests/sample/support.h"

namespace perfkit::testing {

// 4 million instructions: a quarter of a second of the emulated machine, and 64 of its ticks.
inline constexpr uint64_t kSampledRounds = 2'000'000;

inline SamplerOptions Every(std::string_view event, uint64_t period) {
  SamplerOptions options;
  options.events = {{.event = event, .rate = Period{period}}};
  return options;
}

// A sampler that has watched `work`, stopped and not yet drained.
template <class Work>
Sampler Sampled(const SamplerOptions& options, Work&& work) {
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::forward<Work>(work)();
  REQUIRE(sampler->Stop().ok());
  return *std::move(sampler);
}

inline Sampler Sampled(const SamplerOptions& options) {
  return Sampled(options, [] { Loop(kSampledRounds); });
}

// Whether `pc` is in a function of a few instructions.
template <class Function>
bool IsIn(uint64_t pc, Function* function) {
  constexpr uint64_t kMaxBytes = 32;
  const auto begin = reinterpret_cast<uint64_t>(function);
  return pc >= begin && pc < begin + kMaxBytes;
}

}  // namespace perfkit::testing
