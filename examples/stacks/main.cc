// stacks: samples SQLite while it runs queries, with live stacks and with dumped ones by turns, and prints both
// profiles: the live one with its call tree, inlined calls and source lines.
//
//   stacks [SECONDS] [BYTES]      how long (4); how much of the stack each dump copies (32,768)
#include <absl/strings/str_format.h>
#include <perfkit/live_unwinder.h>
#include <perfkit/profile_collector.h>
#include <perfkit/report.h>
#include <perfkit/sampler.h>
#include <perfkit/unwinder.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "workload/queries.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int Fail(const std::string& why) {
  std::fprintf(stderr, "stacks: %s\n", why.c_str());
  return 1;
}

// One way to take the stacks of this process's threads.
class StackSampler {
 public:
  static absl::StatusOr<StackSampler> Open(const perfkit::CallStack& stack) {
    const perfkit::SamplerOptions options{
        .events = {{"cpu-clock:u", perfkit::Frequency{499}}}, .stack = stack, .side_band = true, .ring_bytes = 2 << 20};
    absl::StatusOr<perfkit::Sampler> sampler = perfkit::Sampler::Open(options, perfkit::Target::AllThreads());
    if (!sampler.ok()) return sampler.status();
    return StackSampler(*std::move(sampler), options);
  }

  absl::Status SampleFor(std::chrono::milliseconds time) {
    if (absl::Status status = sampler_.Start(); !status.ok()) return status;
    for (const Clock::time_point end = Clock::now() + time; Clock::now() < end;) {
      std::this_thread::sleep_for(10ms);
      Drain();
    }
    absl::Status status = sampler_.Stop();
    Drain();
    return status;
  }

  // Live stacks come ready; dumps are unwound by Add.
  void Drain() {
    sampler_.Drain([this](const perfkit::SamplerRecord& record) { collector_.Add(record, sampler_.layout()); });
  }

  perfkit::Profile MakeProfile() { return collector_.MakeProfile(sampler_); }

 private:
  StackSampler(perfkit::Sampler sampler, const perfkit::SamplerOptions& options)
      : sampler_(std::move(sampler)), collector_(options, {.pid = static_cast<uint32_t>(getpid())}) {}

  perfkit::Sampler sampler_;
  perfkit::ProfileCollector collector_;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 4;
  const auto bytes = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 32 << 10);
  absl::StatusOr<StackSampler> live = StackSampler::Open(perfkit::CallStack::Live(perfkit::LiveStacks));
  if (!live.ok()) return Fail(std::string(live.status().message()));
  absl::StatusOr<StackSampler> dumped = StackSampler::Open(perfkit::CallStack::UserDump(bytes));
  if (!dumped.ok()) return Fail(std::string(dumped.status().message()));

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> queries{0};
  std::string wrong;
  std::thread worker([&] { wrong = workload::RunQueries(stop, queries); });
  absl::Status status;
  const Clock::time_point begin = Clock::now();
  for (int turn = 0; status.ok() && Clock::now() - begin < std::chrono::duration<double>(seconds); ++turn) {
    status = (turn % 2 == 0 ? *live : *dumped).SampleFor(100ms);
  }
  stop = true;
  worker.join();
  if (!status.ok()) return Fail(std::string(status.message()));
  if (!wrong.empty()) return Fail(wrong);

  absl::PrintF("%d queries\n\nlive stacks\n%s", queries.load(),
               perfkit::FormatReport(live->MakeProfile(), {.min_percent = 2}));
  absl::PrintF("\ndumped stacks, %d bytes\n%s", bytes,
               perfkit::FormatReport(dumped->MakeProfile(), {.min_percent = 2, .call_tree = false}));
  return 0;
}
