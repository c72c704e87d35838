// Aggregate/1M: samples into a profile, after unwinding. Start/100modules, Stop/100k: what a person waits for.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <perfkit/session.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/sample/live_work.h"
#include "perfkit/profile_builder.h"
#include "perfkit/symbolizer.h"
#include "src/session/stack_table.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double SecondsOf(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// 3,000 distinct stacks of 10 to 40 calls, in random order: what is added after the first round was seen before.
void Aggregate(benchmark::State& state) {
  constexpr size_t kSamples = 1'000'000, kStacks = 3'000;
  std::mt19937_64 random(1);
  std::vector<std::vector<perfkit::StackFrame>> stacks(kStacks);
  for (auto& frames : stacks) {
    frames.resize(10 + random() % 31);
    for (auto& frame : frames) frame = {.pc = 0x400000 + random() % 100'000 * 4, .is_return_address = true};
  }
  for (auto _ : state) {
    perfkit::ProfileBuilder builder;
    perfkit::Symbolizer symbolizer;
    perfkit::session::StackTable table(builder, symbolizer, {.max_stacks = 1'000'000, .max_locations = 1'000'000});
    for (size_t i = 0; i < kSamples; ++i) {
      bool cut = false;
      const uint32_t stack = table.Intern(1, stacks[random() % kStacks], cut);
      builder.AddSample({.time_ns = i + 1, .weight = 1, .stack = stack, .quality = perfkit::StackQuality::kWhole});
    }
    benchmark::DoNotOptimize(builder.profile().samples.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kSamples));
}

// Copies of libm under 100 names, mapped.
class ManyModules {
 public:
  ManyModules() : folder_(std::filesystem::temp_directory_path() / ("perfkit-modules-" + std::to_string(getpid()))) {
    Dl_info info{};
    void* const known = dlsym(RTLD_DEFAULT, "compress2");
    if (known == nullptr || dladdr(known, &info) == 0) return;
    std::filesystem::create_directory(folder_);
    for (int i = 0; i < 100; ++i) {
      const std::filesystem::path copy = folder_ / ("lib" + std::to_string(i) + ".so");
      std::filesystem::copy_file(info.dli_fname, copy);
      if (void* const module = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL); module != nullptr)
        modules_.push_back(module);
    }
  }
  ~ManyModules() {
    for (void* module : modules_) dlclose(module);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  size_t size() const { return modules_.size(); }

 private:
  std::filesystem::path folder_;
  std::vector<void*> modules_;
};

void StartWithModules(benchmark::State& state) {
  const ManyModules modules;
  if (modules.size() != 100) return state.SkipWithError("100 modules could not be loaded");
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    auto session = perfkit::Session::Start();
    state.SetIterationTime(SecondsOf(Clock::now() - start));
    if (!session.ok()) return state.SkipWithError(std::string(session.status().message()).c_str());
  }
}

// Samples every 50 us of real work until there are about 100,000: Stop drains, adds up and names them. (Every 10 us a
// live stack's signal takes as long as the interval, and the work stands still.)
void StopWithSamples(benchmark::State& state) {
  constexpr uint64_t kSamples = 100'000;
  const LiveWork& work = LiveWorks().back();
  uint64_t samples = 0;
  for (auto _ : state) {
    auto session = perfkit::Session::Start({.interval = 50us});
    if (!session.ok()) return state.SkipWithError(std::string(session.status().message()).c_str());
    const Clock::time_point begin = Clock::now();
    while (SecondsOf(Clock::now() - begin) < kSamples * 60e-6) work.run();
    const Clock::time_point start = Clock::now();
    const auto profile = session->Stop();
    state.SetIterationTime(SecondsOf(Clock::now() - start));
    samples = profile.ok() ? profile->Total(0).samples : 0;
  }
  state.counters["samples"] = static_cast<double>(samples);
}

BENCHMARK(Aggregate)->Name("Aggregate/1M")->Unit(benchmark::kMillisecond);
BENCHMARK(StartWithModules)->Name("Start/100modules")->UseManualTime()->Iterations(10)->Unit(benchmark::kMillisecond);
BENCHMARK(StopWithSamples)->Name("Stop/100k")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench
