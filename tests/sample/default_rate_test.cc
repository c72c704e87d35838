// Default rates, and rates that the kernel does not take as they are: a sampler must not cost more than
// what it samples, and must be woken.
#include <poll.h>

#include "src/sample/plan.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

sample::Plan PlanOf(const SampledEvent& event) {
  SamplerOptions options;
  options.events = {event};
  auto plan = sample::Plan::Make(options, Target::ThisThread());
  INFO(plan.status());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

TEST_CASE("without a rate, clocks and hardware events have a frequency, all others each event", "[rates]") {
  for (const char* const event : {"cpu-clock", "task-clock", "cycles:u"}) {
    const SampleRate rate = PlanOf({.event = event}).events()[0].rate;
    REQUIRE(std::holds_alternative<Frequency>(rate));
    CHECK(std::get<Frequency>(rate).hz >= 1);
    CHECK(std::get<Frequency>(rate).hz <= 1000);
  }
  for (const char* const event : {"page-faults", "context-switches", "mem:0x1000:w"}) {
    const SampleRate rate = PlanOf({.event = event}).events()[0].rate;
    REQUIRE(std::holds_alternative<Period>(rate));
    CHECK(std::get<Period>(rate).events == 1);
  }
}

// perf_swevent_init_hrtimer raises periods of clocks to 10 us.
TEST_CASE("a decision to take fewer samples of a clock takes fewer from its first step on", "[rates]") {
  for (const SampleRate rate : {SampleRate(Period{1}), SampleRate(Period{15'000}), SampleRate(Frequency{2'000})}) {
    const sample::Plan plan = PlanOf({.event = "cpu-clock", .rate = rate});
    uint64_t last = 0;
    for (uint32_t slower = 1; slower <= 1024; slower *= 2) {
      const uint64_t period = plan.ClockPeriodNs(0, {.slower = slower});
      CHECK(period >= 10'000);
      CHECK(period >= 2 * last);
      CHECK(plan.Represents(0, {.slower = slower}) == period);
      if (std::holds_alternative<Period>(rate)) {
        CHECK(plan.EventRequest(0, 0, {.slower = slower}).attr.sample_period_or_freq == period);
      }
      last = period;
    }
  }
}

TEST_CASE("a watermark of the ring's size, or beyond it, still wakes before the ring is full", "[rates][law]") {
  testing::FreshPages memory(1000);
  for (const uint32_t watermark : {4096u, 1u << 30}) {
    SamplerOptions options = testing::FaultOptions(4096);
    options.watermark_bytes = watermark;
    auto sampler = Sampler::Open(options);
    REQUIRE(sampler.ok());
    testing::DrainAll(*sampler);
    REQUIRE(sampler->Start().ok());
    memory.Forget();
    memory.Touch(0, 1000);
    REQUIRE(sampler->Stop().ok());
    pollfd wait{sampler->poll_fd(), POLLIN, 0};
    CHECK(poll(&wait, 1, 1000) == 1);
  }
}

}  // namespace
}  // namespace perfkit
