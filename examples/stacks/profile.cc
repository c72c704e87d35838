// A live stack comes ready, as a record of its own; a dump is unwound here.
#include "profile.h"

#include <absl/strings/str_format.h>
#include <time.h>

#include <thread>
#include <utility>

namespace stacks {
namespace {

uint64_t OwnCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

double Each(uint64_t part, uint64_t of) { return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of); }

}  // namespace

absl::StatusOr<std::unique_ptr<Profile>> Profile::Open(const perfkit::CallStack& stack) {
  auto sampler = perfkit::Sampler::Open(
      {.events = {{"cpu-clock:u", perfkit::Frequency{499}}}, .stack = stack, .side_band = true, .ring_bytes = 2 << 20},
      perfkit::Target::AllThreads());
  if (!sampler.ok()) return sampler.status();
  if (!sampler->shrunk().ok()) std::fprintf(stderr, "stacks: %s\n", std::string(sampler->shrunk().message()).c_str());
  const bool live = stack.kind == perfkit::CallStack::Kind::kLive;
  return std::unique_ptr<Profile>(new Profile(*std::move(sampler), live));
}

absl::Status Profile::Sample(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kNap{10};
  if (absl::Status status = sampler_.Start(); !status.ok()) return status;
  for (std::chrono::milliseconds slept{0}; slept < time; slept += kNap) {
    std::this_thread::sleep_for(kNap);
    Drain();
  }
  absl::Status status = sampler_.Stop();
  Drain();
  return status;
}

void Profile::Drain() {
  const uint64_t start = OwnCpuNs();
  sampler_.Drain([this](const perfkit::SamplerRecord& record) { Take(record); });
  outcome_.drain_ns += OwnCpuNs() - start;
}

void Profile::Take(const perfkit::SamplerRecord& record) {
  symbolizer_.Add(record, sampler_.layout());
  if (live_) {
    const auto stack = perfkit::LiveStack::Parse(record, sampler_.layout());
    if (stack) Add(stack->pid, std::span(frames_).first(stack->CopyTo(frames_)), stack->end);
    return;
  }
  unwinder_.Add(record, sampler_.layout());
  perfkit::Dispatch(record, sampler_.layout(), [this](const perfkit::Sample& sample) {
    const uint64_t start = OwnCpuNs();
    const perfkit::UnwoundStack stack = unwinder_.Unwind(sample, frames_);
    outcome_.unwind_ns += OwnCpuNs() - start;
    Add(sample.task()->pid, std::span(frames_).first(stack.frames), stack.end);
  });
}

void Profile::Add(uint32_t pid, std::span<const perfkit::StackFrame> frames, perfkit::StackEnd end) {
  ++outcome_.stacks;
  ++outcome_.ends[static_cast<size_t>(end)];
  std::vector<Location> locations;
  for (const perfkit::StackFrame& frame : frames) {
    ++outcome_.frames;
    outcome_.guesses += frame.is_guess ? 1 : 0;
    locations.push_back(symbolizer_.Locate(pid, frame.code()));
  }
  if (!locations.empty()) tree_.Add(locations);
}

void Profile::PrintOutcome(const std::string& title) const {
  const perfkit::SamplerStats stats = sampler_.stats();
  // Walks of live stacks are the threads' own time: what the sampler took beside Drain, its upkeep included.
  const uint64_t walks_ns =
      live_ ? stats.own_cpu_ns - std::min(stats.own_cpu_ns, outcome_.drain_ns) : outcome_.unwind_ns;
  const double us = Each(walks_ns, outcome_.stacks) / 1000;
  absl::PrintF("\n%s: %d stacks of %.1f frames, %d of them guesses; %.1f us each: %.0f a second\n", title,
               outcome_.stacks, Each(outcome_.frames, outcome_.stacks), outcome_.guesses, us, us == 0 ? 0 : 1e6 / us);
  for (size_t i = 0; i < outcome_.ends.size(); ++i) {
    if (outcome_.ends[i] == 0) continue;
    const std::string end(perfkit::StackEndName(static_cast<perfkit::StackEnd>(i)));
    absl::PrintF("  ended by %-14s %6.2f %%\n", end, 100 * Each(outcome_.ends[i], outcome_.stacks));
  }
  PrintAccounting(stats.events[0]);
  absl::PrintF("  own cost: %.1f ms in this process, about %.1f ms in the kernel\n",
               static_cast<double>(stats.own_cpu_ns) / 1e6, static_cast<double>(stats.kernel_cpu_ns) / 1e6);
}

void Profile::PrintAccounting(const perfkit::EventAccounting& accounting) const {
  absl::PrintF("  accounting: %d samples delivered, %d lost; %.1f of %.1f ms have no sample\n", accounting.delivered,
               accounting.lost, static_cast<double>(accounting.unsampled_ns) / 1e6,
               static_cast<double>(accounting.counted) / 1e6);
  const perfkit::StackAccounting& stacks = accounting.stacks;
  if (!live_) return;
  absl::PrintF("  of their stacks: %d delivered, %d stale, %d beyond the budget, %d coalesced, %d without room\n",
               stacks.delivered, stacks.stale, stacks.budget, stacks.coalesced, stacks.no_ring + stacks.ring_full);
}

}  // namespace stacks
