// Hot, in the order in which samples came, and from nothing: times are those of one stack; cold, of the whole run.
//
// Before a contender is timed its stacks are compared with perfkit's, all of them: who walks other frames, or gives up
// early, is not compared.
#include "bench/unwind/cases.h"

#include <absl/strings/str_format.h>
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <map>

#include "bench/unwind/contender.h"
#include "bench/unwind/workloads.h"
#include "src/sys/allocations.h"

namespace bench {
namespace {

// How many of all stacks have to be the same to the last frame. libdwfl of Debian 12 ends in PLT stubs, which is where
// one in fifty of sqlite3's samples is; libunwind guesses where the others know.
struct Known {
  const char* name;
  double min_equal;
};
constexpr Known kContenders[] = {{"perfkit", 1}, {"perfkit_batch", 1}, {"libdwfl", 0.95}, {"libunwind", 0.95}};

// A workload, and those who have unwound it before.
struct Subject {
  struct Entrant {
    std::unique_ptr<Contender> contender;
    std::string error;
    double equal = 0;  // of all stacks
  };

  std::unique_ptr<Capture> capture;
  std::string error;
  std::vector<Pcs> expected;
  std::map<std::string, Entrant> entrants;

  Entrant& Of(const Known& known) {
    const auto [found, is_new] = entrants.try_emplace(known.name);
    if (is_new) Enter(known, found->second);
    return found->second;
  }

 private:
  void Enter(const Known& known, Entrant& entrant) {
    entrant.contender = MakeContender(known.name, *capture);
    entrant.error = entrant.contender->error();
    if (!entrant.error.empty()) return;
    const std::vector<Pcs> found = entrant.contender->Find(capture->samples());
    size_t equal = 0;
    for (size_t i = 0; i < found.size(); ++i) equal += found[i] == expected[i];
    entrant.equal = static_cast<double>(equal) / static_cast<double>(found.size());
    if (entrant.equal >= known.min_equal) return;
    entrant.error = absl::StrFormat("only %.1f %% of its stacks are the same as perfkit's", 100 * entrant.equal);
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
  subject.expected = MakeContender("perfkit", *subject.capture)->Find(subject.capture->samples());
  return subject;
}

uint64_t Allocations() { return *perfkit::sys::ThreadAllocations(); }

// Unwinds `samples` in every round, and says how it went.
void Measure(benchmark::State& state, Subject::Entrant& entrant, std::span<const perfkit::Sample> samples) {
  if (!entrant.error.empty()) return state.SkipWithError(entrant.error.c_str());
  size_t frames = entrant.contender->Unwind(samples);  // whatever is kept is there now
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

// Some samples from all of the run, each of them so often that nothing of it comes from memory any more: one after the
// other for those who unwind one at a time, all of them round and round for batches.
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

// What the heap holds, with what malloc has mapped apart.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A round is everything from nothing: what is mapped is told, files are opened, tables read, rules worked out.
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
    if (workload.cold) Register("Cold", workload, Cold);
  }
}

}  // namespace bench
