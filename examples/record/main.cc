// record: samples a program while it runs and prints its hottest functions, as `simpleperf record` and `report` do.
//
//   record                                       samples itself: TBB workers that compress by zstd
//   record -e page-faults -c 1 ls -R /usr        a command, from its exec on
//   record -a --duration 2                       the whole system
#include <perfkit/child.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "compress.h"
#include "options.h"
#include "profile.h"
#include "report.h"
#include "tool/targets.h"
#include "tool/task_watch.h"

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t g_interrupted = 0;

constexpr double kDemoSeconds = 4;
constexpr size_t kCorpusBytes = 8 << 20;
constexpr int kWaitMs = 100;

int Fail(const std::string& why, int code = 2) {
  std::fprintf(stderr, "record: %s\n", why.c_str());
  return code;
}
std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

absl::StatusOr<std::vector<perfkit::Target>> Targets(const record::Options& options,
                                                     const std::optional<perfkit::Child>& child) {
  auto targets = tool::MakeTargets(options.names, options.inherit);
  if (!targets.ok() || !targets->empty()) return targets;
  const perfkit::Target own = child ? child->target() : perfkit::Target::AllThreads();
  targets->push_back(options.inherit ? own : own.WithoutInherit());
  return targets;
}

// One a target: each has its own rings and its own accounting.
absl::StatusOr<std::vector<perfkit::Sampler>> OpenAll(const record::Options& options,
                                                      const std::vector<perfkit::Target>& targets) {
  perfkit::SamplerOptions how{.stack = options.stack, .branches = options.branches, .side_band = true};
  for (const std::string& event : options.events) how.events.push_back({.event = event, .rate = options.rate});
  how.ring_bytes = options.ring_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<perfkit::Sampler> samplers;
  for (const perfkit::Target& target : targets) {
    auto sampler = perfkit::Sampler::Open(how, target);
    if (!sampler.ok()) return sampler.status();
    if (!sampler->shrunk().ok()) std::fprintf(stderr, "record: %s\n", TextOf(sampler->shrunk()).c_str());
    samplers.push_back(*std::move(sampler));
  }
  return samplers;
}

// A line that is written anew again and again, for people who watch.
class ProgressLine {
 public:
  void Show(double seconds, uint64_t samples, uint64_t bytes) {
    if (!shown_) return;
    std::fprintf(stderr, "\r%5.1f s  %8llu samples  ", seconds, static_cast<unsigned long long>(samples));
    if (bytes > 0) std::fprintf(stderr, "%6.0f MiB/s compressed ", static_cast<double>(bytes) / seconds / (1 << 20));
    std::fflush(stderr);
  }
  void Clear() const {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool shown_ = isatty(STDERR_FILENO) == 1;
};

// Empties the rings until it is over.
record::Durations Loop(const record::Options& options, std::vector<perfkit::Sampler>& samplers,
                       record::Profile& profile, const std::function<bool()>& is_over, const record::Progress& work) {
  const Clock::time_point start = Clock::now();
  const double limit = options.seconds.value_or(options.demo() ? kDemoSeconds : 1e9);
  ProgressLine line;
  std::vector<pollfd> ready;
  for (const perfkit::Sampler& sampler : samplers) ready.push_back({sampler.poll_fd(), POLLIN, 0});
  while (g_interrupted == 0 && Since(start) < limit && !is_over()) {
    poll(ready.data(), ready.size(), kWaitMs);
    for (perfkit::Sampler& sampler : samplers) {
      sampler.Drain([&](const perfkit::SamplerRecord& record) { profile.Take(record, sampler.layout()); });
    }
    line.Show(Since(start), profile.samples(), work.bytes_in.load(std::memory_order_relaxed));
  }
  record::Durations durations;
  durations.sampled_s = Since(start);
  for (perfkit::Sampler& sampler : samplers) {
    if (const absl::Status stopped = sampler.Stop(); !stopped.ok()) Fail(TextOf(stopped));
    sampler.Drain([&](const perfkit::SamplerRecord& record) { profile.Take(record, sampler.layout()); });
  }
  line.Clear();
  durations.read_s = Since(start);
  return durations;
}

// Starts what is sampled, samples it, reports. The code to exit with.
int Run(const record::Options& options, std::optional<perfkit::Child>& child, record::Progress& work) {
  const bool samples_child = child && options.names.empty();
  const auto targets = Targets(options, child);
  if (!targets.ok()) return Fail(TextOf(targets.status()));
  const tool::TaskWatch watch(*targets);
  auto samplers = OpenAll(options, *targets);
  if (!samplers.ok()) return Fail(TextOf(samplers.status()));
  for (perfkit::Sampler& sampler : *samplers) {
    if (samples_child) break;  // its exec switches the events on
    const absl::Status started = sampler.Start();
    if (!started.ok()) return Fail(TextOf(started));
  }
  if (child) {
    const absl::Status started = child->Start();
    if (!started.ok()) return Fail(TextOf(started), absl::IsNotFound(started) ? 127 : 126);
  }
  record::Profile profile(options.events.size(), options.rate, options.demangle);
  const auto is_over = [&] { return child ? tool::HasEnded(child->pid()) : watch.AllEnded(); };
  const record::Durations durations = Loop(options, *samplers, profile, is_over, work);
  record::Report(options, *samplers, profile, durations);
  if (!child) return 0;
  if (!tool::HasEnded(child->pid())) kill(child->pid(), SIGTERM);
  const auto ended = child->Wait();
  return ended.ok() ? ended->shell_code() : 1;
}

}  // namespace

int main(int argc, char** argv) {
  record::Options options;
  std::string error;
  if (!record::ParseOptions(argc, argv, &options, &error)) return Fail(error + "\nrecord --help says more");
  if (options.help) return std::fputs(record::kUsage, stdout), 0;
  if (options.events.empty()) options.events.push_back("cpu-clock");
  std::optional<perfkit::Child> child;
  if (!options.command.empty()) {
    auto spawned = perfkit::Child::Spawn(options.command);
    if (!spawned.ok()) return Fail(TextOf(spawned.status()));
    child = *std::move(spawned);
  }
  std::signal(SIGINT, [](int) { g_interrupted = 1; });
  std::atomic<bool> stop{false};
  record::Progress work;
  std::thread demo;
  if (options.demo()) {
    const int workers = options.workers > 0 ? options.workers : static_cast<int>(std::thread::hardware_concurrency());
    demo = std::thread(
        [&stop, &work, workers] { record::CompressUntil(stop, record::ReadCorpus(kCorpusBytes), workers, work); });
  }
  const int code = Run(options, child, work);
  stop = true;
  if (demo.joinable()) demo.join();
  return code;
}
