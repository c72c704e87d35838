// stat: counts a command, threads, processes, CPUs or the system, as `simpleperf stat` and `perf stat` do.
//
//   stat -e cycles,instructions,page-faults gzip -k big.tar
//   stat -r 5 -x, -e task-clock gzip -k big.tar          the mean of five runs, for a spreadsheet
//   stat -a --cpu 0-3 -e context-switches -d 2 -I 100    each tenth of a second
#include <perfkit/child.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "counting.h"
#include "options.h"
#include "report.h"
#include "tool/command.h"
#include "tool/output.h"
#include "tool/targets.h"
#include "tool/task_watch.h"

namespace stat_tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{10};

volatile std::sig_atomic_t g_interrupted = 0;
volatile std::sig_atomic_t g_command = 0;  // The process of the command while it runs.

// Control-C of a terminal reaches the command as well. A SIGINT from kill(1) does not, and is passed on.
void OnInterrupt(int, siginfo_t* info, void*) {
  g_interrupted = 1;
  if (info->si_code <= 0 && g_command != 0) kill(g_command, SIGTERM);
}

void CatchInterrupt() {
  struct sigaction action {};
  action.sa_sigaction = OnInterrupt;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

template <class T>
T OrRefuse(absl::StatusOr<T> result) {
  if (!result.ok()) Refuse(std::string(result.status().message()));
  return *std::move(result);
}

void StartOrExit(perfkit::Child& child) {
  const absl::Status started = child.Start();
  if (started.ok()) return;
  fprintf(stderr, "stat: %s\n", std::string(started.message()).c_str());
  exit(absl::IsNotFound(started) ? 127 : 126);
}

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Leaves no counts.
void RemoveCounts(Measurement& measured) {
  for (Row& row : measured.rows) {
    row.cells.count = {.validity = {.flags = perfkit::Validity::kNotCounted}};
    row.cells.reason = "the kernel stopped counting the command";
  }
}

// One run: of the command, or of the time for which another process is counted.
class Run {
 public:
  Run(const Options& options, Report& report) : options_(options), report_(report) {
    if (!options.command.empty()) child_ = OrRefuse(tool::SpawnCommand(options.command));
    std::vector<perfkit::Target> targets = OrRefuse(tool::MakeTargets(options.names, options.inherit));
    if (targets.empty()) targets.push_back(options.inherit ? child_->target() : child_->target().WithoutInherit());
    watch_.emplace(targets);
    if (child_ && options.names.empty() && options.inherit) {
      absl::StatusOr<perfkit::CounterSet> clock = perfkit::CounterSet::Open({"task-clock"}, child_->target());
      if (clock.ok()) clock_ = *std::move(clock);
      if (clock_) clock_->Read(clock_begin_);
    }
    counting_.emplace(OrRefuse(Counting::Open(EventsOf(options), targets)));
  }

  // Returns everything that was counted; with -I, what was counted since the last interval.
  Measurement Count() {
    started_ = last_ = Clock::now();
    g_command = child_ ? child_->pid() : 0;  // Before Start returns, the command may have sent the signal itself.
    if (child_) StartOrExit(*child_);
    if (child_) uncounted_ns_ = tool::CpuTimeNs(*child_);
    if (child_ && g_interrupted == 0 && !options_.seconds && !options_.interval) {
      (void)child_->Wait();  // without a clock of our own: ends with it, to the microsecond
      g_command = 0;
    } else {
      Watch();
    }
    return Take();
  }

  // Ends the command if it still runs. Returns the code to exit with. If the kernel did not count the command, removes
  // the counts from `measured`.
  int End(Measurement& measured) {
    if (!child_) return 0;
    tool::EndCommand(*child_);
    const auto ended = child_->Wait();
    g_command = 0;
    if (!ended.ok()) fprintf(stderr, "stat: %s\n", std::string(ended.status().message()).c_str());
    if (!ended.ok()) return 1;
    const std::string why = WhyUncounted(ended->cpu_ns);
    if (!why.empty()) {
      fprintf(stderr, "stat: %s\n", why.c_str());
      RemoveCounts(measured);
    }
    return ended->shell_code();
  }

  const perfkit::CounterSet& set() const { return counting_->set(); }

 private:
  bool IsOver() const { return g_interrupted != 0 || (child_ ? tool::HasEnded(child_->pid()) : watch_->AllEnded()); }

  // Returns a warning if the kernel did not count the command, which has used `cpu_ns` of CPU time; "" otherwise.
  std::string WhyUncounted(uint64_t cpu_ns) {
    if (!clock_) return "";
    perfkit::Snapshot now;
    clock_->Read(now);
    const perfkit::Count clock = clock_->Difference(clock_begin_, now, 0);
    return clock.validity.counted() ? tool::UncountedText(cpu_ns, uncounted_ns_, clock.value) : "";
  }

  // Prints each interval, until it is over, or the time is.
  void Watch() {
    const Clock::time_point end = started_ + Seconds(options_.seconds.value_or(1e9));
    const Clock::duration interval = Seconds(options_.interval.value_or(1e9));
    for (Clock::time_point tick = started_ + interval; !IsOver() && Clock::now() < end;) {
      if (Clock::now() >= tick) {
        Measurement interval_counts = Take();
        if (child_ && !WhyUncounted(tool::CpuTimeNs(*child_)).empty()) RemoveCounts(interval_counts);
        report_.Print(interval_counts);
        tick = std::max(tick + interval, Clock::now());
      }
      std::this_thread::sleep_until(std::min({Clock::now() + kPoll, tick, end}));
    }
  }

  Measurement Take() {
    Measurement taken;
    taken.rows = counting_->Take();
    const Clock::time_point now = Clock::now();
    taken.wall_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now - last_).count());
    taken.ended_s = std::chrono::duration<double>(now - started_).count();
    last_ = now;
    return taken;
  }

  const Options& options_;
  Report& report_;
  std::optional<perfkit::Child> child_;
  std::optional<tool::TaskWatch> watch_;
  std::optional<Counting> counting_;
  uint64_t uncounted_ns_ = 0;                 // CPU time of the command before its exec, or a little more
  std::optional<perfkit::CounterSet> clock_;  // tells whether the command was counted as a whole
  perfkit::Snapshot clock_begin_;
  Clock::time_point started_, last_;
};

// Tells how many runs the mean is of if they are fewer than asked for: CSV and JSON have no field for it.
void TellRuns(size_t runs, const Options& options) {
  if (static_cast<int>(runs) < options.runs) {
    fprintf(stderr, "stat: interrupted; the counts are those of %zu of %d runs\n", runs, options.runs);
  }
}

int Main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  const Options options = ParseOptions(argc, argv);
  Report report(options);
  CatchInterrupt();
  std::vector<Measurement> runs;
  std::string paths;
  int code = 0;
  for (int i = 0; i < options.runs && g_interrupted == 0; ++i) {
    Run run(options, report);
    Measurement measured = run.Count();
    // An interrupt may have cut this run short: it is left out if an earlier run is complete.
    const bool is_complete = g_interrupted == 0 || runs.empty();
    code = run.End(measured);
    if (is_complete) runs.push_back(std::move(measured));
    if (options.verbose) paths = ReadPaths(run.set());
  }
  if (runs.empty()) return 128 + SIGINT;
  TellRuns(runs.size(), options);
  report.Print(Mean(runs));
  if (options.format != Format::kTable) fputs(paths.c_str(), stderr);
  const bool is_written = report.Finish() && (options.format != Format::kTable || tool::PrintText("stat", paths));
  return is_written ? code : 2;
}

}  // namespace
}  // namespace stat_tool

int main(int argc, char** argv) { return stat_tool::Main(argc, argv); }
