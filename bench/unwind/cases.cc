// Four ways of unwinding: hot; in the order of the samples, again and again; the same once, after the processor's
// caches were evicted; and cold, that is, with nothing read before. Times are for one stack; cold, for the whole run.
//
// Before a contender is timed, all its stacks are compared with perfkit's. If it finds other frames, or fewer than
// kMinFrames of them, it is not timed. Where frames are guesses, it may lack the caller of the innermost one.
#include "bench/unwind/cases.h"

#include <absl/strings/str_format.h>
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <map>

#include "bench/unwind/contender.h"
#include "bench/unwind/workloads.h"
#include "src/sys/allocations.h"

namespace bench {
namespace {

// The share of stacks that have to be equal as far as both go.
struct Known {
  const char* name;
  double min_same;
};
// The share of perfkit's frames that a contender has to find; one that finds fewer has less to do, and is faster for
// it. Peers end in some epilogues: the rule of a register that was popped already names its slot, which lies below sp,
// where no bytes were copied. Those are 0.2 % of cc1plus's stacks, and up to 1 % of node's.
constexpr double kMinFrames = 0.98;
constexpr Known kContenders[] = {{"perfkit", 1}, {"perfkit_batch", 1}, {"libdwfl", 0.999}, {"libunwind", 0.999}};

// Returns true if two stacks are equal as far as both go.
bool Agree(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  const size_t both = std::min(a.size(), b.size());
  return std::ranges::equal(a.first(both), b.first(both));
}

// A workload, and the contenders that have unwound it before.
struct Subject {
  struct Entrant {
    std::unique_ptr<Contender> contender;
    std::string error;
    double equal = 0;  // As a fraction of all stacks.
  };

  std::unique_ptr<Capture> capture;
  std::string error;
  bool guesses = false;  // As Workload's.
  std::vector<Pcs> expected;
  std::map<std::string, Entrant> entrants;

  Entrant& Of(const Known& known) {
    const auto [found, is_new] = entrants.try_emplace(known.name);
    if (is_new) Enter(known, found->second);
    return found->second;
  }

 private:
  // A leaf without information may have pushed nothing yet: then perfkit guesses that the word at sp is its return
  // address, if it follows a call. Peers go on by the frame pointer, which is the caller's, and pass over the caller.
  static bool IsSame(const Pcs& found, const Pcs& other, bool may_lack) {
    if (found.empty() || other.empty()) return false;
    if (Agree(found, other)) return true;
    return may_lack && other.size() > 2 && found[0] == other[0] &&
           Agree(std::span(found).subspan(1), std::span(other).subspan(2));
  }
  void Enter(const Known& known, Entrant& entrant) {
    entrant.contender = MakeContender(known.name, *capture);
    entrant.error = entrant.contender->error();
    if (!entrant.error.empty()) return;
    const std::vector<Pcs> found = entrant.contender->Find(capture->samples());
    size_t equal = 0, same = 0, frames = 0, all_frames = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t both = std::min(found[i].size(), expected[i].size());
      equal += found[i] == expected[i];
      same += IsSame(found[i], expected[i], guesses && known.min_same < 1);
      frames += both;
      all_frames += expected[i].size();
    }
    const auto share = [](size_t of, size_t all) { return static_cast<double>(of) / static_cast<double>(all); };
    entrant.equal = share(equal, found.size());
    if (share(same, found.size()) < known.min_same) {
      entrant.error = absl::StrFormat("only %.2f %% of its stacks have no frames that differ from perfkit's",
                                      100 * share(same, found.size()));
    } else if (share(frames, all_frames) < kMinFrames) {
      entrant.error = absl::StrFormat("finds only %.2f %% of perfkit's frames", 100 * share(frames, all_frames));
    }
  }
};

Subject& SubjectOf(const Workload& workload) {
  static std::map<std::string, Subject> subjects;
  const auto [found, is_new] = subjects.try_emplace(workload.name);
  Subject& subject = found->second;
  if (!is_new) return subject;
  auto loaded = Capture::Load(CapturePath(workload));
  if (!loaded.ok()) {
    subject.error = "not captured here: unwind_capture does that";
    return subject;
  }
  subject.capture = *std::move(loaded);
  subject.guesses = workload.guesses;
  subject.expected = MakeContender("perfkit", *subject.capture)->Find(subject.capture->samples());
  return subject;
}

uint64_t Allocations() { return *perfkit::sys::ThreadAllocations(); }

// Unwinds `samples` in each round, and reports the result.
void Measure(benchmark::State& state, Subject::Entrant& entrant, std::span<const perfkit::Sample> samples) {
  if (!entrant.error.empty()) return state.SkipWithError(entrant.error.c_str());
  size_t frames = entrant.contender->Unwind(samples);  // Fills all caches.
  uint64_t stacks = 0;
  frames = 0;
  const uint64_t before = Allocations();
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(samples.size()))) {
    frames += entrant.contender->Unwind(samples);
    stacks += samples.size();
  }
  const auto each = [&](uint64_t count) { return static_cast<double>(count) / static_cast<double>(stacks); };
  state.counters["allocations"] = each(Allocations() - before);
  state.counters["frames"] = each(frames);
  state.counters["equal"] = entrant.equal;
}

// A few samples from all of the run, each of them repeated until everything is in the caches: one after the other for
// contenders that unwind one at a time, all of them in turns for batches.
std::vector<perfkit::Sample> HotSamples(const Capture& capture, bool in_batches) {
  constexpr size_t kDistinct = 64, kAgain = 16;
  const std::vector<perfkit::Sample>& samples = capture.samples();
  std::vector<perfkit::Sample> hot;
  for (size_t i = 0; i < kDistinct * kAgain; ++i) {
    const size_t which = in_batches ? i % kDistinct : i / kAgain;
    hot.push_back(samples[which * samples.size() / kDistinct]);
  }
  return hot;
}

void Hot(benchmark::State& state, const Workload& workload, const Known& known) {
  Subject& subject = SubjectOf(workload);
  if (!subject.error.empty()) return state.SkipWithError(subject.error.c_str());
  Measure(state, subject.Of(known), HotSamples(*subject.capture, std::string_view(known.name).ends_with("batch")));
}

void Stream(benchmark::State& state, const Workload& workload, const Known& known) {
  Subject& subject = SubjectOf(workload);
  if (!subject.error.empty()) return state.SkipWithError(subject.error.c_str());
  Measure(state, subject.Of(known), subject.capture->samples());
}

// Writes to more memory than the caches hold that this CPU does not share with others: the next pass finds neither
// samples nor rules in them.
void EvictCaches() {
  constexpr size_t kBytes = 64 << 20, kLine = 64;
  static std::vector<char> memory(kBytes);
  for (size_t i = 0; i < kBytes; i += kLine) ++memory[i];
  benchmark::ClobberMemory();
}

// As Stream, but as a program that drains its rings now and then: between two passes it does other work. Rules have
// been computed before, but lie in memory.
void Once(benchmark::State& state, const Workload& workload, const Known& known) {
  Subject& subject = SubjectOf(workload);
  if (!subject.error.empty()) return state.SkipWithError(subject.error.c_str());
  Subject::Entrant& entrant = subject.Of(known);
  if (!entrant.error.empty()) return state.SkipWithError(entrant.error.c_str());
  const std::vector<perfkit::Sample>& samples = subject.capture->samples();
  benchmark::DoNotOptimize(entrant.contender->Unwind(samples));  // Computes all rules.
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(samples.size()))) {
    state.PauseTiming();
    EvictCaches();
    state.ResumeTiming();
    benchmark::DoNotOptimize(entrant.contender->Unwind(samples));
  }
  state.counters["equal"] = entrant.equal;
}

// Returns the bytes of the heap, including those that malloc has mapped.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A round does everything: adds the mappings, opens files, reads tables, computes rules.
void Cold(benchmark::State& state, const Workload& workload, const Known& known) {
  Subject& subject = SubjectOf(workload);
  if (!subject.error.empty()) return state.SkipWithError(subject.error.c_str());
  Subject::Entrant& entrant = subject.Of(known);
  if (!entrant.error.empty()) return state.SkipWithError(entrant.error.c_str());
  size_t heap_bytes = 0;
  for (auto _ : state) {
    const size_t before = HeapBytes();
    const std::unique_ptr<Contender> contender = MakeContender(known.name, *subject.capture);
    benchmark::DoNotOptimize(contender->Unwind(subject.capture->samples()));
    heap_bytes = HeapBytes() - before;
  }
  state.counters["heap_bytes"] = static_cast<double>(heap_bytes);
}

void Register(const char* kind, const Workload& workload,
              void (*run)(benchmark::State&, const Workload&, const Known&)) {
  for (const Known& known : kContenders) {
    const std::string name = absl::StrFormat("%s/%s/%s", kind, workload.name, known.name);
    benchmark::RegisterBenchmark(name.c_str(), [&, run](benchmark::State& state) { run(state, workload, known); });
  }
}

}  // namespace

void RegisterUnwindCases() {
  for (const Workload& workload : Workloads()) {
    Register("Unwind", workload, Hot);
    Register("Stream", workload, Stream);
    Register("Once", workload, Once);
    if (workload.cold) Register("Cold", workload, Cold);
  }
}

}  // namespace bench
