// record: samples a program while it runs and reports where its time went, as `perf record` and `perf report` do.
//
//   record                                       samples itself: TBB workers that compress by zstd
//   record -e page-faults -c 1 ls -R /usr        a command, from its exec on
//   record -g --children -o out.pb.gz make       with call trees, and a file for go tool pprof
//   record -a --sort thread,module --duration 2  the whole system
#include <perfkit/child.h>
#include <perfkit/profile_collector.h>
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
#include "report.h"
#include "tool/command.h"
#include "tool/output.h"
#include "tool/targets.h"
#include "tool/task_watch.h"
#include "workload/compression.h"

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

absl::StatusOr<std::vector<perfkit::Target>> Targets(const record::Options& options,
                                                     const std::optional<perfkit::Child>& child) {
  auto targets = tool::MakeTargets(options.names, options.inherit);
  if (!targets.ok() || !targets->empty()) return targets;
  const perfkit::Target own = child ? child->target() : perfkit::Target::AllThreads();
  targets->push_back(options.inherit ? own : own.WithoutInherit());
  return targets;
}

perfkit::SamplerOptions SamplerOptionsOf(const record::Options& options) {
  perfkit::SamplerOptions how{.stack = options.stack, .branches = options.branches, .side_band = true};
  for (const std::string& event : options.events) how.events.push_back({.event = event, .rate = options.rate});
  how.ring_bytes = options.ring_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return how;
}

// One sampler for each target, and the collector of their records.
struct Recording {
  std::vector<perfkit::Sampler> samplers{};
  perfkit::ProfileCollector collector;
  uint64_t branches = 0;
};

absl::StatusOr<Recording> Open(const record::Options& options, const std::vector<perfkit::Target>& targets) {
  const perfkit::SamplerOptions how = SamplerOptionsOf(options);
  Recording recording{.collector =
                          perfkit::ProfileCollector(how, {.lines = options.lines, .demangle = options.demangle})};
  for (const perfkit::Target& target : targets) {
    auto sampler = perfkit::Sampler::Open(how, target);
    if (!sampler.ok()) return sampler.status();
    recording.samplers.push_back(*std::move(sampler));
  }
  return recording;
}

void Drain(Recording& recording) {
  for (perfkit::Sampler& sampler : recording.samplers) {
    sampler.Drain([&](const perfkit::SamplerRecord& record) {
      recording.collector.Add(record, sampler.layout());
      perfkit::Dispatch(record, sampler.layout(),
                        [&](const perfkit::Sample& sample) { recording.branches += sample.branches().size(); });
    });
  }
}

// Drains the rings until sampling ends.
void Loop(const record::Options& options, Recording& recording, const std::function<bool()>& is_over) {
  const Clock::time_point start = Clock::now();
  const std::chrono::duration<double> limit(options.seconds.value_or(options.demo() ? kDemoSeconds : 1e9));
  std::vector<pollfd> ready;
  for (const perfkit::Sampler& sampler : recording.samplers) ready.push_back({sampler.poll_fd(), POLLIN, 0});
  while (g_interrupted == 0 && Clock::now() - start < limit && !is_over()) {
    poll(ready.data(), ready.size(), kWaitMs);
    Drain(recording);
  }
  for (perfkit::Sampler& sampler : recording.samplers) {
    if (const absl::Status stopped = sampler.Stop(); !stopped.ok()) Fail(TextOf(stopped));
  }
  Drain(recording);
}

perfkit::Profile MakeProfile(const record::Options& options, Recording& recording) {
  perfkit::Profile profile = recording.collector.MakeProfile(recording.samplers);
  profile.program = options.demo()             ? "record"
                    : options.names.empty()    ? options.command[0]
                    : options.names.has_cpus() ? "whole CPUs"
                                               : "tasks";
  if (options.branches) {
    profile.accounting.notes.push_back("branches before the samples: " + std::to_string(recording.branches));
  }
  return profile;
}

// Only a clock event shows this.
void WarnIfUncounted(const perfkit::ExitStatus& ended, uint64_t uncounted_ns, const perfkit::Profile& profile) {
  const size_t clock = profile.EventIndex("cpu-clock");
  if (clock == profile.events.size() || profile.events[clock].accounting.counted_is_lower_bound) return;
  const std::string why = tool::UncountedText(ended.cpu_ns, uncounted_ns, profile.events[clock].accounting.counted);
  if (!why.empty()) std::fprintf(stderr, "record: %s\n", why.c_str());
}

// Starts the command, samples it, reports. Returns the exit code.
int Run(const record::Options& options, std::optional<perfkit::Child>& child) {
  const bool samples_child = child && options.names.empty();
  const auto targets = Targets(options, child);
  if (!targets.ok()) return Fail(TextOf(targets.status()));
  const tool::TaskWatch watch(*targets);
  auto recording = Open(options, *targets);
  if (!recording.ok()) return Fail(TextOf(recording.status()));
  for (perfkit::Sampler& sampler : recording->samplers) {
    if (samples_child) break;  // its exec switches the events on
    const absl::Status started = sampler.Start();
    if (!started.ok()) return Fail(TextOf(started));
  }
  if (child) {
    const absl::Status started = child->Start();
    if (!started.ok()) return Fail(TextOf(started), absl::IsNotFound(started) ? 127 : 126);
  }
  const uint64_t uncounted_ns = child ? tool::CpuTimeNs(*child) : 0;
  Loop(options, *recording, [&] { return child ? tool::HasEnded(child->pid()) : watch.AllEnded(); });
  // A command that still runs goes on without being sampled.
  const bool is_whole = samples_child && options.inherit && tool::HasEnded(child->pid());
  tool::Output output("record");
  const perfkit::Profile profile = MakeProfile(options, *recording);
  const absl::Status reported = record::Report(options, profile, output);
  if (!reported.ok()) Fail(TextOf(reported));
  const bool is_complete = output.Finish() && reported.ok();
  if (!child) return is_complete ? 0 : 1;
  tool::EndCommand(*child);
  const auto ended = child->Wait();
  if (!ended.ok()) Fail(TextOf(ended.status()));
  if (is_whole && ended.ok()) WarnIfUncounted(*ended, uncounted_ns, profile);
  return is_complete && ended.ok() ? ended->shell_code() : 1;
}

}  // namespace

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  record::Options options;
  std::string error;
  if (!record::ParseOptions(argc, argv, &options, &error)) return Fail(error + "\nrecord --help says more");
  if (options.help) return tool::PrintText("record", record::kUsage) ? 0 : 2;
  if (options.events.empty()) options.events.push_back("cpu-clock");
  if (const absl::Status outputs = record::CheckOutputs(options); !outputs.ok()) return Fail(TextOf(outputs));
  std::optional<perfkit::Child> child;
  if (!options.command.empty()) {
    auto spawned = tool::SpawnCommand(options.command);
    if (!spawned.ok()) return Fail(TextOf(spawned.status()));
    child = *std::move(spawned);
  }
  std::signal(SIGINT, [](int) { g_interrupted = 1; });
  std::atomic<bool> stop{false};
  std::string corpus;
  std::thread demo;
  if (options.demo()) {
    corpus = workload::ReadCorpus(kCorpusBytes);  // Not in the profile: from a slow disk that takes seconds.
    const int workers = options.workers > 0 ? options.workers : static_cast<int>(std::thread::hardware_concurrency());
    demo = std::thread([&stop, &corpus, workers] { record::CompressUntil(stop, corpus, workers); });
  }
  const int code = Run(options, child);
  stop = true;
  if (demo.joinable()) demo.join();
  return code;
}
