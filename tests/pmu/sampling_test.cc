// Samples of hardware events: one each so many, at the place where it happened, with the values of its followers.
#include <catch2/catch.hpp>

#include "perfkit/sampler.h"
#include "tests/pmu/pmu.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::ForEachSample;
using testing::kLoopInstructions;
using testing::Loop;

constexpr uint64_t kRounds = 2'000'000;

SamplerOptions Every(std::string_view event, uint64_t period) {
  SamplerOptions options;
  options.events = {{.event = event, .rate = Period{period}}};
  return options;
}

// Runs the loop under a sampler.
Sampler Sampled(const SamplerOptions& options) {
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Loop(kRounds);
  REQUIRE(sampler->Stop().ok());
  return *std::move(sampler);
}

TEST_CASE("each period of an event gives one sample", "[sampling]") {
  NEED_EXACT_PMU();
  // QEMU 7.2 tells of an overflow of instructions at the machine's next timer only, 4 ms apart at most: a period below
  // that would lose samples there.
  const uint64_t kPer = testing::CyclesPerInstruction();
  struct Case {
    const char* event;
    uint64_t per, period;
  };
  for (const auto& [event, per, period] : {Case{"cycles:u", kPer, 10'000 * kPer}, Case{"instructions:u", 1, 100'000}}) {
    CAPTURE(event);
    Sampler sampler = Sampled(Every(event, period));
    uint64_t in_loop = 0, all = 0;
    const auto loop = reinterpret_cast<uint64_t>(&Loop);
    ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
      ++all;
      in_loop += *sample.ip() >= loop && *sample.ip() < loop + 32 ? 1 : 0;
    });
    const EventBooks books = sampler.stats().events[0];
    CHECK(books.counted >= kRounds * kLoopInstructions * per);
    CHECK(all == books.counted / period);
    CHECK(books.delivered == all);
    CHECK(books.lost == 0);
    CHECK(in_loop + 3 >= all);
  }
}

TEST_CASE("followers are counted with each sample", "[sampling]") {
  NEED_EXACT_PMU();
  const uint64_t per = testing::CyclesPerInstruction(), period = 50'000 * per;
  SamplerOptions options = Every("cycles:u", period);
  options.events[0].followers = {"instructions:u"};
  Sampler sampler = Sampled(options);
  std::optional<uint64_t> cycles, instructions;
  uint64_t samples = 0;
  ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
    const std::optional<ReadValues> read = sample.read();
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 2);
    const uint64_t now_cycles = (*read)[0].value, now_instructions = (*read)[1].value;
    if (cycles) {
      CHECK(static_cast<double>(now_cycles - *cycles) == Approx(static_cast<double>(period)).epsilon(0.01));
      CHECK(static_cast<double>(now_instructions - *instructions) ==
            Approx(static_cast<double>(period / per)).epsilon(0.01));
    }
    cycles = now_cycles;
    instructions = now_instructions;
    ++samples;
  });
  CHECK(samples > 50);
}

TEST_CASE("a sample has the registers of its place", "[sampling]") {
  NEED_EXACT_PMU();
  SamplerOptions options = Every("cycles:u", 100'000 * testing::CyclesPerInstruction());
  options.stack = CallStack::UserDump(512);
  Sampler sampler = Sampled(options);
  uint64_t samples = 0;
  ForEachSample(sampler, [&]([[maybe_unused]] const Sample& sample, const SamplerRecord&) {
    ++samples;
#if defined(__aarch64__)
    constexpr size_t kSp = 31, kPc = 32;  // arch/arm64/include/uapi/asm/perf_regs.h
    REQUIRE(sample.user_registers()[kPc].has_value());
    CHECK(*sample.user_registers()[kPc] == *sample.ip());
    const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    CHECK(*sample.user_registers()[kSp] < here + (1 << 20));
    CHECK(*sample.user_registers()[kSp] + (1 << 20) > here);
#endif
  });
  CHECK(samples >= 30);
}

}  // namespace
}  // namespace perfkit
