// Write/<format>: one profile, written to a sink that drops it. 100,000 samples of 3,000 distinct stacks, 8 threads,
// two events, 2,000 zones. All formats that are linked are measured: a new one needs no case of its own. Files of
// pprof, Firefox and HTML are compressed: a byte of theirs is some ten of what was written.
#include <benchmark/benchmark.h>
#include <perfkit/profile_builder.h>
#include <perfkit/profile_writer.h>

#include <random>
#include <string>
#include <vector>

#include "bench/session/cases.h"

namespace bench {
namespace {

using perfkit::Profile;
using perfkit::ProfileBuilder;
using perfkit::ProfileStack;

constexpr uint32_t kSamples = 100'000, kStacks = 3'000, kThreads = 8, kZones = 2'000;
constexpr uint64_t kStartNs = 1'000'000'000, kIntervalNs = 100'000;

// Stacks of 10 to 40 calls, which share their outer ones as those of a program do.
std::vector<uint32_t> AddStacks(ProfileBuilder& builder, std::mt19937_64& random) {
  std::vector<uint32_t> locations;
  for (uint32_t i = 0; i < 2'000; ++i) {
    locations.push_back(builder.Function("engine::module_" + std::to_string(i % 20) + "::Function" + std::to_string(i),
                                         "/usr/lib/libengine" + std::to_string(i % 20) + ".so",
                                         "/src/engine/file" + std::to_string(i % 200) + ".cc", i));
  }
  std::vector<uint32_t> leaves;
  while (leaves.size() < kStacks) {
    uint32_t stack = ProfileStack::kRoot;
    const uint64_t depth = 10 + random() % 31;
    for (uint64_t k = 0; k < depth; ++k) {
      stack = builder.Stack(stack, locations[(k < depth / 2 ? k * 7 : random()) % locations.size()]);
    }
    leaves.push_back(stack);
  }
  return leaves;
}

Profile MakeProfile() {
  std::mt19937_64 random(1);
  ProfileBuilder builder;
  const auto cpu =
      static_cast<uint16_t>(builder.AddEvent({.name = "cpu-clock", .unit = perfkit::ProfileUnit::kNanoseconds}));
  const auto faults = static_cast<uint16_t>(builder.AddEvent({.name = "page-faults"}));
  for (uint32_t i = 0; i < kThreads; ++i) builder.AddThread(1, 1 + i, "worker " + std::to_string(i));
  const std::vector<uint32_t> stacks = AddStacks(builder, random);
  for (uint32_t i = 0; i < kSamples; ++i) {
    builder.AddSample({.time_ns = kStartNs + i * kIntervalNs,
                       .weight = kIntervalNs,
                       .thread = i % kThreads,
                       .stack = stacks[random() % kStacks],
                       .event = i % 10 == 0 ? faults : cpu,
                       .quality = perfkit::StackQuality::kWhole});
  }
  const uint64_t zone_ns = kSamples * kIntervalNs / kZones;
  for (uint32_t i = 0; i < kZones; ++i) {
    builder.AddZone({.from_ns = kStartNs + i * zone_ns,
                     .to_ns = kStartNs + i * zone_ns + zone_ns / 2,
                     .thread = i % kThreads,
                     .name = builder.String("zone " + std::to_string(i % 10))});
  }
  builder.profile().from_ns = kStartNs;
  builder.profile().to_ns = kStartNs + kSamples * kIntervalNs;
  return builder.Take();
}

void Write(benchmark::State& state, const perfkit::ProfileFormat& format) {
  static const Profile profile = MakeProfile();
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const absl::Status status = format.write(profile, {}, [&](std::string_view piece) {
      bytes += piece.size();
      return absl::OkStatus();
    });
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * profile.samples.size()));
  state.counters["file_bytes"] = static_cast<double>(bytes);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
  // CPU time for a file of 100 MB.
  state.counters["s_per_100mb"] = benchmark::Counter(
      static_cast<double>(bytes) / 1e8, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace

void RegisterWriteCases() {
  for (const perfkit::ProfileFormat& format : perfkit::ProfileFormats()) {
    benchmark::RegisterBenchmark(("Write/" + std::string(format.name)).c_str(), Write, format)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace bench
