// Sampling under faults: each target, each control, both ring modes. Where a count is given, each event is accounted
// for; where it can't be, the accounting says so.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "perfkit/sampler.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr size_t kPagesTouched = 16;

SamplerOptions PageSamples() {
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.ring_bytes = 64 << 10;
  options.side_band = true;
  return options;
}

uint64_t DrainSamples(Sampler& sampler) {
  uint64_t samples = 0;
  sampler.Drain([&](const SamplerRecord& record) {
    samples += record.type == static_cast<uint32_t>(RecordType::kSample) ? 1 : 0;
  });
  return samples;
}

// Holds the accounting of a stopped sampler to the samples that were seen.
void CheckAccounting(const Sampler& sampler, uint64_t samples, bool overwrites = false) {
  const SamplerStats stats = sampler.stats();
  REQUIRE(stats.events.size() == 1);
  const EventAccounting& event = stats.events[0];
  INFO("counted " << event.counted << " delivered " << event.delivered << " duplicates " << event.duplicates << " lost "
                  << event.lost << " paused " << event.paused << " malformed " << event.malformed);
  CHECK(event.delivered == samples);
  if (event.counted_is_lower_bound || stats.lost_is_lower_bound || overwrites) return;
  CHECK(event.accounted() == event.counted);
}

// Starts, touches pages, stops. `control` runs in the middle. Begins the faults where `from_open` says.
absl::Status UseSampler(Faults& faults, const SamplerOptions& options, Target target, bool from_open,
                        absl::FunctionRef<absl::Status(Sampler&)> control) {
  if (from_open) faults.Begin();
  auto sampler = Sampler::Open(options, target);
  if (!sampler.ok()) return sampler.status();
  if (!from_open) faults.Begin();
  testing::FreshPages memory(2 * kPagesTouched);
  if (absl::Status status = sampler->Start(); !status.ok()) return status;
  memory.Touch(0, kPagesTouched);
  uint64_t samples = DrainSamples(*sampler);
  absl::Status status = control(*sampler);
  memory.Touch(kPagesTouched, kPagesTouched);
  samples += DrainSamples(*sampler);
  status.Update(sampler->Stop());
  samples += DrainSamples(*sampler);
  if (status.ok()) CheckAccounting(*sampler, samples, options.mode == RingMode::kOverwrite);
  faults.End();
  samples += DrainSamples(*sampler);
  if (status.ok()) CheckAccounting(*sampler, samples, options.mode == RingMode::kOverwrite);
  return status;
}

absl::Status NoControl(Sampler&) { return absl::OkStatus(); }

TEST_CASE("samplers of each target, from Open to Stop", "[faults]") {
  const auto use = [](const char* name, Target target) {
    RunFaults(name, [&](Faults& faults) { return UseSampler(faults, PageSamples(), target, true, NoControl); });
  };
  use("`Sampler`: this thread", Target::ThisThread());
  use("`Sampler`: all threads", Target::AllThreads());
  use("`Sampler`: a process", Target::Process(getpid()));
}

TEST_CASE("samplers with other rings and events", "[faults]") {
  SamplerOptions threads = PageSamples();
  threads.rings = SamplerOptions::Rings::kPerThread;
  RunFaults("`Sampler`: a ring for each thread",
            [&](Faults& faults) { return UseSampler(faults, threads, Target::AllThreads(), true, NoControl); });
  SamplerOptions overwrite = PageSamples();
  overwrite.mode = RingMode::kOverwrite;
  RunFaults("`Sampler`: overwriting rings",
            [&](Faults& faults) { return UseSampler(faults, overwrite, Target::AllThreads(), true, NoControl); });
  SamplerOptions switches = PageSamples();
  switches.switches = true;
  switches.stack = CallStack::FramePointers();
  RunFaults("`Sampler`: switches and call chains",
            [&](Faults& faults) { return UseSampler(faults, switches, Target::ThisThread(), true, NoControl); });
}

TEST_CASE("controls of a running sampler", "[faults]") {
  const auto control = [](const char* name, absl::FunctionRef<absl::Status(Sampler&)> run) {
    RunFaults(name,
              [&](Faults& faults) { return UseSampler(faults, PageSamples(), Target::AllThreads(), false, run); });
  };
  control("`Sampler::Start`, Drain, Stop", NoControl);
  control("`Sampler::Pause`, Resume", [](Sampler& sampler) {
    absl::Status status = sampler.Pause();
    status.Update(sampler.Resume());
    return status;
  });
  control("`Sampler::Stop`, Start again", [](Sampler& sampler) {
    absl::Status status = sampler.Stop();
    status.Update(sampler.Start());
    return status;
  });
  control("`Sampler::stats`", [](Sampler& sampler) {
    const EventAccounting event = sampler.stats().events.at(0);
    CHECK((event.counted >= kPagesTouched || event.counted_is_lower_bound));
    return absl::OkStatus();
  });
}

TEST_CASE("a rate is changed", "[faults]") {
  SamplerOptions options = PageSamples();
  RunFaults("`Sampler::SetRate`", [&](Faults& faults) -> absl::Status {
    auto sampler = Sampler::Open(options);
    if (!sampler.ok()) return sampler.status();
    testing::FreshPages memory(48);
    if (absl::Status status = sampler->Start(); !status.ok()) return status;
    memory.Touch(0, 16);
    faults.Begin();
    const absl::Status changed = sampler->SetRate(0, Period{4});
    faults.End();
    DrainSamples(*sampler);
    memory.Touch(16, 32);
    if (absl::Status status = sampler->Stop(); !status.ok()) return status;
    DrainSamples(*sampler);
    const EventAccounting event = sampler->stats().events.at(0);
    INFO("counted " << event.counted << " represented " << event.represented << " delivered " << event.delivered);
    CHECK(event.represented <= event.counted + 4);
    CHECK(event.represented + 4 >= event.counted);  // at most one sample's worth is not represented yet
    CHECK((changed.ok() ? event.delivered < event.counted : event.delivered == event.counted));
    return changed;
  });
}

TEST_CASE("the bytes of dumped stacks are changed", "[faults]") {
  SamplerOptions options = PageSamples();
  options.stack = CallStack::UserDump(1024);
  const auto use = [&](Faults& faults) {
    return UseSampler(faults, options, Target::ThisThread(), false, [](Sampler& sampler) {
      return sampler.SetStackBytes(2048);  // the next Drain carries it out
    });
  };
  RunFaults("`Sampler::SetStackBytes`", use, true);
}

}  // namespace
}  // namespace perfkit
