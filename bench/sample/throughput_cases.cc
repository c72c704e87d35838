// From the kernel to the visitor. A thread generates a million records a second, through a ring of 512 KiB. The result
// is the reader's CPU time for each record, including waiting and waking. At 1 M records/s a nanosecond is 0.1 % of a
// core, so 3 % are 30 ns. A run that loses a record, or whose accounting does not balance, is an error.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "bench/sample/source.h"
#include "bench/support/full_run.h"

namespace bench {
namespace {

// The records that the reader has seen, and its time.
struct Tally {
  uint64_t records = 0, bytes = 0;
  double cpu_s = 0, wall_s = 0;
};

// At a million records a second the ring holds 8 ms, which is as long as another program's time slice. So the
// reader gets precedence over other programs, as far as the system permits. A lower nice value is not enough: it
// counts within a session only (sched(7), autogroup). For ordinary users nothing changes.
void RunFirst() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  sched_setscheduler(0, SCHED_FIFO, &lowest);  // For this thread.
}

Tally Read(perfkit::Sampler& sampler, double seconds) {
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

// Returns "" if each record that the kernel counted was delivered to the visitor.
std::string CheckAccounting(const perfkit::SamplerStats& stats) {
  for (const perfkit::EventAccounting& event : stats.events) {
    if (event.lost != 0) return std::to_string(event.lost) + " of " + std::to_string(event.counted) + " records lost";
    if (event.accounted() != event.counted) return "the accounting does not balance";
  }
  return stats.malformed_bytes == 0 ? "" : "malformed bytes";
}

// Where the reader runs, relative to the writer, and what it reads.
struct Setting {
  int source_cpu, reader_cpu;  // Indices of AllowedCpu; -1 means any CPU.
  bool all_threads;
  double max_seconds;
};

std::string CheckRate(const Tally& tally) {
  const double rate = static_cast<double>(tally.records) / tally.wall_s;
  if (rate >= 0.98 * Source::kRecordsPerSecond) return "";
  return "only " + std::to_string(static_cast<int>(rate)) + " records a second came";
}

void Throughput(benchmark::State& state, const Setting& setting) {
  const int reader_cpu = setting.reader_cpu < 0 ? -1 : AllowedCpu(setting.reader_cpu);
  if (reader_cpu < 0 && setting.reader_cpu >= 0) return state.SkipWithError("there are not that many CPUs");
  Source source(setting.source_cpu < 0 ? -1 : AllowedCpu(setting.source_cpu));
  perfkit::SamplerOptions options;
  options.events = source.events();
  options.ring_bytes = 512 << 10;
  const auto target = setting.all_threads ? perfkit::Target::AllThreads() : perfkit::Target::Thread(source.tid());
  auto sampler = perfkit::Sampler::Open(options, target);
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  source.Go();
  Tally tally;
  for (auto _ : state) {
    // A thread of its own: its affinity and priority end with it.
    std::thread reader([&] {
      RunFirst();
      if (reader_cpu >= 0) StayOn(reader_cpu);
      tally = Read(*sampler, full_run ? std::min(60.0, setting.max_seconds) : 0.3);
    });
    reader.join();
    state.SetIterationTime(tally.cpu_s / static_cast<double>(tally.records));
    state.counters["records_s"] = static_cast<double>(tally.records) / tally.wall_s;
    state.counters["reader_percent"] = 100 * tally.cpu_s / tally.wall_s;
    state.counters["bytes"] = static_cast<double>(tally.bytes) / static_cast<double>(tally.records);
  }
  source.Stop();
  if (!sampler->Stop().ok()) return state.SkipWithError("it does not stop");
  while (sampler->Drain([](const perfkit::SamplerRecord&) {}) != 0) continue;
  state.SetLabel(source.what());
  if (const std::string wrong = CheckAccounting(sampler->stats()); !wrong.empty())
    return state.SkipWithError(wrong.c_str());
  if (const std::string wrong = CheckRate(tally); !wrong.empty()) state.SkipWithError(wrong.c_str());
}

constexpr double kFull = 3600, kShort = 3;

// One ring, read on the CPU that fills it. No data moves between caches, and if a hypervisor takes that CPU away for
// longer than the ring lasts, both threads stop.
BENCHMARK_CAPTURE(Throughput, one, Setting{0, 0, false, kFull})
    ->Name("Throughput/1Mps")
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(1);
// The same ring read on another CPU.
BENCHMARK_CAPTURE(Throughput, apart, Setting{0, 1, false, kShort})
    ->Name("Throughput/apart")
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(1);
// One ring for each CPU, merged by time.
BENCHMARK_CAPTURE(Throughput, all, Setting{-1, -1, true, kShort})
    ->Name("Throughput/merged")
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(1);

}  // namespace
}  // namespace bench
