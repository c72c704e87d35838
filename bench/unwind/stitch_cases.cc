// Truncated stacks that are completed from earlier stacks of their thread: how many are complete, and the bytes of the
// dumps compared with full dumps of all. A round is the whole run, with nothing read before. The test unwind_dwarf_test
// measures how many are completed wrongly, for which it has the full dumps of the same stacks.
#include <absl/strings/str_format.h>
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/unwind/capture_file.h"
#include "bench/unwind/cases.h"
#include "bench/unwind/workloads.h"
#include "perfkit/unwinder.h"

namespace bench {
namespace {

struct Completed {
  size_t stacks = 0, whole = 0;  // Of the short dumps.
  uint64_t bytes = 0;            // Of all dumps.

  double incomplete() const { return 1 - static_cast<double>(whole) / static_cast<double>(stacks); }
  double of_full_dumps() const { return static_cast<double>(bytes) / (static_cast<double>(stacks) * kStackBytes); }
};

Completed Complete(const Capture& capture) {
  constexpr size_t kMemory = 8 << 20, kFrames = 1000;
  perfkit::Unwinder unwinder({.stitch_bytes = kMemory});
  std::vector<perfkit::StackFrame> frames(kFrames);
  Completed completed;
  for (const perfkit::RawRecord& record : capture.records()) {
    unwinder.Add(record, capture.layout());
    const auto sample = perfkit::Sample::Parse(record, capture.layout());
    if (!sample || sample->user_registers().abi == 0) continue;
    const perfkit::UnwoundStack stack = unwinder.Unwind(*sample, frames);
    const uint64_t reserved = sample->user_stack().reserved;
    completed.bytes += reserved;
    if (reserved > kShortBytes) continue;
    ++completed.stacks;
    completed.whole += stack.complete() ? 1 : 0;
  }
  return completed;
}

void Stitch(benchmark::State& state, const Workload& workload) {
  const auto capture = Capture::Load(CapturePath(workload));
  if (!capture.ok()) return state.SkipWithError("not captured here: unwind_capture does that");
  Completed completed;
  for (auto _ : state) completed = Complete(**capture);
  if (completed.stacks == 0) return state.SkipWithError("there is no stack in it");
  state.counters["incomplete"] = completed.incomplete();
  state.counters["bytes"] = completed.of_full_dumps();
  state.counters["stacks"] = static_cast<double>(completed.stacks);
}

}  // namespace

void RegisterStitchCases() {
  for (const Workload& workload : StitchedWorkloads()) {
    benchmark::RegisterBenchmark(absl::StrFormat("Stitch/%s", workload.name).c_str(),
                                 [&](benchmark::State& state) { Stitch(state, workload); });
  }
}

}  // namespace bench
