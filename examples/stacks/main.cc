// stacks: samples SQLite while it runs queries and prints whole call stacks as a tree, with inlined calls and lines.
//
//   stacks [SECONDS] [BYTES]      how long; how much of the stack each sample copies (32,768)
#include <absl/strings/str_format.h>
#include <perfkit/dwarf_lines.h>
#include <perfkit/sampler.h>
#include <perfkit/symbolizer.h>
#include <perfkit/unwinder.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "call_tree.h"
#include "queries.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostFrames = 512;
constexpr double kLeastPercent = 2;

// What came of all stacks.
struct Outcome {
  uint64_t stacks = 0, frames = 0, guesses = 0;
  std::array<uint64_t, 16> ends{};  // by StackEnd
  Clock::duration unwinding{};
};

class Profile {
 public:
  void Take(const perfkit::SamplerRecord& record, const perfkit::SampleLayout& layout) {
    unwinder_.Add(record, layout);
    symbolizer_.Add(record, layout);
    perfkit::Dispatch(record, layout, [this](const perfkit::Sample& sample) { Unwind(sample); });
  }
  const Outcome& outcome() const { return outcome_; }
  perfkit::UnwinderStats unwinder_stats() const { return unwinder_.stats(); }
  void PrintTree() { tree_.Print(symbolizer_, kLeastPercent); }

 private:
  void Unwind(const perfkit::Sample& sample) {
    const Clock::time_point start = Clock::now();
    const perfkit::UnwoundStack stack = unwinder_.Unwind(sample, frames_);
    outcome_.unwinding += Clock::now() - start;
    ++outcome_.stacks;
    outcome_.frames += stack.frames;
    outcome_.guesses += stack.guesses;
    ++outcome_.ends[static_cast<size_t>(stack.end)];
    std::vector<stacks::Place> places;
    for (uint32_t i = 0; i < stack.frames; ++i) {
      places.push_back(symbolizer_.Locate(sample.task()->pid, frames_[i].code()));
    }
    if (!places.empty()) tree_.Add(places);
  }

  perfkit::Unwinder unwinder_;
  perfkit::Symbolizer symbolizer_{{.lines = perfkit::DwarfLines}};
  std::array<perfkit::StackFrame, kMostFrames> frames_{};
  stacks::CallTree tree_;
  Outcome outcome_;
};

int Fail(const std::string& why) {
  std::fprintf(stderr, "stacks: %s\n", why.c_str());
  return 1;
}

void PrintOutcome(const Profile& profile, const perfkit::SamplerStats& stats) {
  const Outcome& all = profile.outcome();
  const auto stacks = static_cast<double>(all.stacks);
  const perfkit::UnwinderStats unwinder = profile.unwinder_stats();
  absl::PrintF("\n%d stacks of %.1f frames, %.1f us each; %d frames are guesses\n", all.stacks,
               static_cast<double>(all.frames) / stacks,
               std::chrono::duration<double, std::micro>(all.unwinding).count() / stacks, all.guesses);
  for (size_t i = 0; i < all.ends.size(); ++i) {
    if (all.ends[i] == 0) continue;
    const std::string end(perfkit::StackEndName(static_cast<perfkit::StackEnd>(i)));
    absl::PrintF("  ended by %-14s %6.2f %%\n", end, 100 * static_cast<double>(all.ends[i]) / stacks);
  }
  absl::PrintF("%d modules, %.1f KiB of rules\n", unwinder.modules, static_cast<double>(unwinder.table_bytes) / 1024);
  const perfkit::EventBooks& books = stats.events[0];
  absl::PrintF("books: %d delivered, %d lost; %.1f of %.1f ms have no sample\n", books.delivered, books.lost,
               static_cast<double>(books.unsampled_ns) / 1e6, static_cast<double>(books.counted) / 1e6);
  absl::PrintF("own cost: %.1f ms to read and unwind, about %.1f ms in the kernel\n",
               static_cast<double>(stats.own_cpu_ns) / 1e6, static_cast<double>(stats.kernel_cpu_ns) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const auto bytes = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 32 << 10);
  auto sampler = perfkit::Sampler::Open({.events = {{"cpu-clock:u", perfkit::Frequency{499}}},
                                         .stack = perfkit::CallStack::UserDump(bytes),
                                         .side_band = true,
                                         .ring_bytes = 2 << 20},
                                        perfkit::Target::AllThreads());
  if (!sampler.ok()) return Fail(std::string(sampler.status().message()));
  if (!sampler->shrunk().ok()) std::fprintf(stderr, "stacks: %s\n", std::string(sampler->shrunk().message()).c_str());

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> queries{0};
  std::string wrong;
  if (const auto status = sampler->Start(); !status.ok()) return Fail(std::string(status.message()));
  std::thread worker([&] { wrong = stacks::RunQueries(stop, queries); });
  Profile profile;
  const auto take = [&](const perfkit::SamplerRecord& record) { profile.Take(record, sampler->layout()); };
  const bool watched = isatty(STDERR_FILENO) == 1;
  for (const Clock::time_point end =
           Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
       Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    sampler->Drain(take);
    if (watched) std::fprintf(stderr, "\r%llu stacks ", static_cast<unsigned long long>(profile.outcome().stacks));
  }
  stop = true;
  worker.join();
  const auto stopped = sampler->Stop();
  sampler->Drain(take);
  if (watched) std::fprintf(stderr, "\r\033[K");
  if (!stopped.ok()) return Fail(std::string(stopped.message()));
  if (!wrong.empty()) return Fail(wrong);
  if (profile.outcome().stacks == 0) return Fail("no sample came");

  absl::PrintF("%d queries\n\n", queries.load());
  profile.PrintTree();
  PrintOutcome(profile, sampler->stats());
  return 0;
}
