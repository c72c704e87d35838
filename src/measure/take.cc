// The order of backends, and the test that each must pass. An event that opens may still count nothing (a PMU that is
// emulated in part, a tracepoint under exclude_kernel, uprobes without the right library), so each backend first counts
// work of known cost. Only events whose work is certain are tested.
#include "src/measure/take.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "src/sys/kernel.h"

namespace perfkit::measure {
namespace {

using enum MeasureBackend;

constexpr std::array kPerfOnly = {kCounter};
constexpr std::array kSteppable = {kCounter, kStepper};
// Hooks first: they were linked on purpose, cost a thousandth of a uprobe, and need no right.
constexpr std::array kAllocating = {kHooks, kCounter, kStepper};
constexpr std::array kHooksOnly = {kHooks};

// The test is work of known cost: three allocations, three system calls.
constexpr int64_t kProof = 3;
constexpr int64_t kProofBytes = 16;  // Of each allocation.

// Programs, and their sanitizers, may replace any of the three. volatile: otherwise the compiler drops the
// calls.
void Allocate(void*) {
  void* (*volatile allocate)(size_t) = ::malloc;
  void* (*volatile reallocate)(void*, size_t) = ::realloc;
  void* (*volatile allocate_zeros)(size_t, size_t) = ::calloc;
  ::free(reallocate(allocate(kProofBytes), kProofBytes));
  ::free(allocate_zeros(1, kProofBytes));
}

void CallSystem(void*) {
  // Not sys::kernel(): a test may have installed a table that counts nothing.
  for (int i = 0; i < kProof; ++i) sys::kLinux.gettid();
}

void Nothing(void*) {}

// A loop of some instructions: a PMU that counts none of them does not work.
void Spin(void*) {
  for (int i = 0; i < 1000; ++i) asm volatile("");
}

// Returns the count of `body` without the wrapper around it: the difference from an empty body. A first take warms up,
// because it may bind symbols lazily, which allocates.
absl::StatusOr<int64_t> Difference(const TakeFn& take, Body body) {
  if (auto warm = take(body, nullptr); !warm.ok()) return warm;
  const absl::StatusOr<int64_t> with = take(body, nullptr), without = take(Nothing, nullptr);
  if (!with.ok()) return with;
  if (!without.ok()) return without;
  return *with - *without;
}

absl::Status Prove(MeasureBackend backend, const Take& take, const EventType& event) {
  if (backend == kStepper && event == event::kInstructions) return absl::OkStatus();  // Stepper::Open has tested it.
  const bool is_pmu = event == event::kInstructions || event == event::kCycles || event == event::kBranches;
  const bool allocates = IsAllocations(event) || IsAllocatedBytes(event);
  if (!is_pmu && !allocates && !IsSyscalls(event)) return absl::OkStatus();
  const absl::StatusOr<int64_t> seen = Difference(take.take, is_pmu ? Spin : allocates ? Allocate : CallSystem);
  if (!seen.ok()) return seen.status();
  const int64_t made = IsAllocatedBytes(event) ? kProof * kProofBytes : kProof;
  if (is_pmu ? *seen > 0 : *seen == made) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kUnavailable,
                      is_pmu ? "it opens here, and counts nothing"
                             : absl::StrFormat("it counted %d of %d made as a proof", *seen, made));
}

absl::StatusOr<Take> Open(MeasureBackend backend, const EventType& event, const MeasureOptions& options) {
  switch (backend) {
    case kCounter: return OpenCounterTake(event);
    case kHooks: return OpenHookTake(event);
    case kStepper: return OpenStepTake(event, options);
  }
  return absl::Status(absl::StatusCode::kInvalidArgument, "no such backend");
}

}  // namespace

std::vector<AllocatorEntry> AllocatorEntries() {
  std::vector<AllocatorEntry> entries;
  for (const char* name :
       {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc"}) {
    const void* const code = ::dlsym(RTLD_DEFAULT, name);
    const auto same = [&](const AllocatorEntry& other) { return other.code == code; };
    if (code == nullptr || std::ranges::none_of(entries, same)) entries.push_back({name, code});
  }
  return entries;
}

std::span<const MeasureBackend> BackendsFor(const EventType& event) {
  if (IsAllocations(event)) return kAllocating;
  if (IsAllocatedBytes(event)) return kHooksOnly;
  if (event.type == kMeasuredType || event == event::kInstructions) return kSteppable;
  return kPerfOnly;
}

std::string_view BackendName(MeasureBackend backend) {
  switch (backend) {
    case kCounter: return "perf";
    case kHooks: return "wrapped malloc";
    case kStepper: return "stepper";
  }
  return "?";
}

absl::StatusOr<Take> OpenTake(MeasureBackend backend, const EventType& event, const MeasureOptions& options) {
  absl::StatusOr<Take> take = Open(backend, event, options);
  if (!take.ok()) return take;
  if (absl::Status proven = Prove(backend, *take, event); !proven.ok()) return proven;
  return take;
}

}  // namespace perfkit::measure
