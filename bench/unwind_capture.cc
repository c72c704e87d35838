// Samples real programs at work, with their stacks, for unwind_bench to unwind: writes what the rings held into a
// folder beside this program. `unwind_capture [NAME...]`; without names all.
//
// Exit code: 0 all captures are there, 1 one of them is not, 2 there is no such program to sample.
#include <absl/strings/str_format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "bench/unwind/capture_file.h"
#include "bench/unwind/workloads.h"
#include "perfkit/child.h"
#include "perfkit/sampler.h"

namespace {

constexpr uint64_t kHz = 1000;

perfkit::SamplerOptions Options(const perfkit::CallStack& stack) {
  perfkit::SamplerOptions options;
  options.events = {{.event = "cpu-clock", .rate = perfkit::Frequency{kHz}}};
  options.stack = stack;
  options.side_band = true;
  options.ring_bytes = 8 << 20;
  return options;
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

// Writes what the sampler has until there are samples enough; then those that were sampled are ended.
class Recorder {
 public:
  Recorder(perfkit::Sampler& sampler, bench::CaptureWriter& writer, size_t wanted)
      : sampler_(sampler), writer_(writer), wanted_(wanted) {}

  void Run(pid_t pid) {
    for (bool ended = false; !ended;) {
      ended = HasEnded(pid);
      pollfd wait{sampler_.poll_fd(), POLLIN, 0};
      if (!ended) poll(&wait, 1, 20);
      sampler_.Drain([&](const perfkit::SamplerRecord& record) { Take(record); });
      if (taken() < wanted_) continue;
      for (const auto& [sampled, samples] : samples_of_) kill(static_cast<pid_t>(sampled), SIGKILL);
    }
  }
  // Of the process that has most: a driver's and a shell's are not what is wanted.
  size_t taken() const {
    size_t most = 0;
    for (const auto& [pid, samples] : samples_of_) most = std::max(most, samples);
    return most;
  }

 private:
  void Take(const perfkit::SamplerRecord& record) {
    const auto sample = perfkit::Sample::Parse(record, sampler_.layout());
    if (sample && taken() >= wanted_) return;
    if (sample) ++samples_of_[sample->task()->pid];
    writer_.Write(record);
  }

  perfkit::Sampler& sampler_;
  bench::CaptureWriter& writer_;
  const size_t wanted_;
  std::map<uint32_t, size_t> samples_of_;
};

absl::Status RecordOne(const bench::Workload& workload, const perfkit::CallStack& stack) {
  auto child = perfkit::Child::Spawn(
      {"/bin/sh", "-c", absl::StrFormat("cd '%s' && %s", bench::CaptureFolder(), workload.command)});
  if (!child.ok()) return child.status();
  auto sampler = perfkit::Sampler::Open(Options(stack), child->target());
  if (!sampler.ok()) return sampler.status();
  const std::string path = bench::CapturePath(workload);
  auto writer = bench::CaptureWriter::Create(path, sampler->layout());
  if (!writer.ok()) return writer.status();
  for (const absl::Status& started : {sampler->Start(), child->Start()}) {
    if (!started.ok()) return started;
  }
  Recorder recorder(*sampler, *writer, workload.samples);
  recorder.Run(child->pid());
  child->Wait().IgnoreError();
  if (absl::Status written = writer->Close(); !written.ok()) return written;
  const auto lost = sampler->stats().events[0].lost;
  std::printf("%-10s %5zu samples, %llu lost\n", workload.name, recorder.taken(),
              static_cast<unsigned long long>(lost));
  if (recorder.taken() >= workload.samples) return absl::OkStatus();
  std::filesystem::remove(path);
  return absl::UnavailableError("the program ended too early, or could not be run");
}

// Which were named, or all.
struct Session {
  std::vector<std::string_view> wanted;
  size_t recorded = 0, failed = 0;

  void Record(std::span<const bench::Workload> workloads, const perfkit::CallStack& stack) {
    for (const bench::Workload& workload : workloads) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), workload.name) == wanted.end()) continue;
      const absl::Status status = RecordOne(workload, stack);
      ++(status.ok() ? recorded : failed);
      if (!status.ok()) std::fprintf(stderr, "unwind_capture: %s: %s\n", workload.name, status.ToString().c_str());
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::create_directories(bench::CaptureFolder());
  for (const bench::Input& input : bench::Inputs()) {
    std::ofstream(bench::CaptureFolder() + "/" + input.name) << input.text;
  }
  Session session{.wanted = {argv + 1, argv + argc}};
  session.Record(bench::Workloads(), perfkit::CallStack::UserDump(bench::kStackBytes));
  session.Record(bench::StitchedWorkloads(),
                 perfkit::CallStack::UserDump(bench::kShortBytes, {bench::kFullEvery, bench::kStackBytes}));
  if (session.recorded + session.failed > 0) return session.failed > 0;
  std::fprintf(stderr, "unwind_capture: there is no such program\n");
  return 2;
}
