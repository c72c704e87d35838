// From the kernel to the visitor: a thread faults as fast as it can, each fault a record in a ring of 512 KiB; the time
// is the reader's CPU time for each record, its waiting and waking included. At 1 M records/s a nanosecond is 0.1 % of
// a core, so that 3 % are 30 ns. `lost` must be 0; `records_s` is what the machine gave.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "perfkit/sampler.h"

namespace bench {
namespace {

constexpr size_t kPages = 4096, kPageBytes = 4096;

double Seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Faults on its own memory until told to stop.
class Faulter {
 public:
  Faulter() : thread_([this] { Run(); }) {
    while (tid == 0) std::this_thread::yield();
  }
  ~Faulter() {
    stop_ = true;
    thread_.join();
  }
  std::atomic<pid_t> tid{0};
  std::atomic<bool> go{false};

 private:
  void Run() {
    auto* const memory = static_cast<char*>(
        mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory, kPages * kPageBytes, MADV_NOHUGEPAGE);
    tid = gettid();
    while (!go && !stop_) std::this_thread::yield();
    while (!stop_) {
      madvise(memory, kPages * kPageBytes, MADV_DONTNEED);
      // Read only: all pages become the one zero page, and nothing has to be cleared.
      for (size_t i = 0; i < kPages && !stop_; ++i)
        static_cast<void>(*static_cast<volatile char*>(memory + i * kPageBytes));
    }
    munmap(memory, kPages * kPageBytes);
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void Throughput(benchmark::State& state) {
  perfkit::SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = perfkit::Period{1}}};
  options.ring_bytes = 512 << 10;
  Faulter faulter;
  auto sampler = perfkit::Sampler::Open(options, perfkit::Target::Thread(faulter.tid));
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  faulter.go = true;
  uint64_t records = 0, sum = 0;
  const double begun = Seconds(CLOCK_MONOTONIC);
  const auto visit = [&](const perfkit::SamplerRecord& record) { sum += record.size; };
  for (auto _ : state) {
    const uint64_t from = records;
    const double cpu = Seconds(CLOCK_THREAD_CPUTIME_ID);
    while (records - from < 20'000) {
      pollfd wait{sampler->poll_fd(), POLLIN, 0};
      poll(&wait, 1, 100);
      records += sampler->Drain(visit);
    }
    state.SetIterationTime((Seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) / static_cast<double>(records - from));
  }
  benchmark::DoNotOptimize(sum);
  state.counters["records_s"] = static_cast<double>(records) / (Seconds(CLOCK_MONOTONIC) - begun);
  state.counters["lost"] = static_cast<double>(sampler->stats().events[0].lost);
}
BENCHMARK(Throughput)->Name("Throughput/1Mps")->UseManualTime()->Iterations(20);

}  // namespace
}  // namespace bench
