// From the kernel to the visitor: a thread makes a million records a second, through a ring of 512 KiB; the time is the
// reader's CPU time for each record, its waiting and waking included. At 1 M records/s a nanosecond is 0.1 % of a core,
// so that 3 % are 30 ns. A run that loses a record, or whose books do not close, is no result.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <string>

#include "bench/sample/source.h"

namespace bench {
namespace {

// What the reader has seen, and what it took.
struct Tally {
  uint64_t records = 0, bytes = 0;
  double cpu_s = 0, wall_s = 0;
};

// At a million records a second the ring holds 8 ms, which is as long as another program's slice. Whoever reads that
// much asks to run whenever there is something to read, as far as the system permits: being nice is not enough, it
// weighs within a session only (sched(7), autogroup). Ordinary users stay as they are.
void RunFirst() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  sched_setscheduler(0, SCHED_FIFO, &lowest);  // of this thread
}

Tally Read(perfkit::Sampler& sampler, double seconds) {
  RunFirst();
  Tally tally;
  const auto visit = [&](const perfkit::SamplerRecord& record) { tally.bytes += record.size; };
  const double begun = Seconds(CLOCK_MONOTONIC), cpu = Seconds(CLOCK_THREAD_CPUTIME_ID);
  while (tally.wall_s < seconds) {
    pollfd wait{sampler.poll_fd(), POLLIN, 0};
    poll(&wait, 1, 100);
    tally.records += sampler.Drain(visit);
    tally.wall_s = Seconds(CLOCK_MONOTONIC) - begun;
  }
  tally.cpu_s = Seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
  return tally;
}

// "" when every record that the kernel counted was given to the visitor.
std::string CheckBooks(const perfkit::SamplerStats& stats) {
  for (const perfkit::EventBooks& event : stats.events) {
    if (event.lost != 0) return std::to_string(event.lost) + " of " + std::to_string(event.counted) + " records lost";
    if (event.accounted() != event.counted) return "the books do not close";
  }
  return stats.malformed_bytes == 0 ? "" : "malformed bytes";
}

void Throughput(benchmark::State& state, perfkit::Target (*target)(const Source&), double most_seconds) {
  Source source;
  perfkit::SamplerOptions options;
  options.events = source.events();
  options.ring_bytes = 512 << 10;
  auto sampler = perfkit::Sampler::Open(options, target(source));
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  source.Go();
  for (auto _ : state) {
    const Tally tally = Read(*sampler, std::min(throughput_seconds, most_seconds));
    state.SetIterationTime(tally.cpu_s / static_cast<double>(tally.records));
    state.counters["records_s"] = static_cast<double>(tally.records) / tally.wall_s;
    state.counters["reader_percent"] = 100 * tally.cpu_s / tally.wall_s;
    state.counters["bytes"] = static_cast<double>(tally.bytes) / static_cast<double>(tally.records);
  }
  source.Stop();
  if (!sampler->Stop().ok()) return state.SkipWithError("it does not stop");
  while (sampler->Drain([](const perfkit::SamplerRecord&) {}) != 0) continue;
  state.SetLabel(source.what());
  if (const std::string wrong = CheckBooks(sampler->stats()); !wrong.empty()) state.SkipWithError(wrong.c_str());
}

// One ring; and one a CPU, merged in the order of time.
BENCHMARK_CAPTURE(
    Throughput, one, [](const Source& source) { return perfkit::Target::Thread(source.tid()); }, 3600)
    ->Name("Throughput/1Mps")
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(1);
BENCHMARK_CAPTURE(
    Throughput, all, [](const Source&) { return perfkit::Target::AllThreads(); }, 3)
    ->Name("Throughput/merged")
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(1);

}  // namespace
}  // namespace bench
