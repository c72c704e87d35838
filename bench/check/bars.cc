// The table of bars, once: the checker, the document and the test read it from here.
#include "bench/check/bars.h"

#include <iterator>

namespace bench {
namespace {

constexpr Bar kCountBars[] = {
    {"Scope4/perfkit_group", "Scope4/raw_group", 1.03, "a scope by the kernel, to two raw reads"},
    {"Scope4/perfkit_fast", "Scope4/raw_group", 0.035, "a scope without a system call, to the same"},
    {"Scope4/perfkit_group", "Scope4/papi", 0.95, "a scope by the kernel, to PAPI's two reads"},
    {"Frame/perfkit_mark", "Frame/raw_read", 1.05, "the end of a frame by the kernel, to one raw read"},
    {"Frame/perfkit_mark_fast", "Frame/raw_read", 0.1, "the same without a system call"},
    {"Zone/pair", "Scope4/raw_group", 1.05, "a zone by the kernel, to two raw reads"},
    {"Zone/pair_fast", "Scope4/raw_group", 0.05, "the same without a system call"},
    {"Zone/off", "Floor/relaxed_load", 3, "a zone that is switched off, to one relaxed load"},
    {"Read1/perfkit", "Read1/raw", 1.05, "one event that needs the kernel, to one raw read"},
    {"Threads256/inherited", "Threads256/raw", 0.25, "256 threads by one inherited group, to a group each"},
    {"Threads256/slots", "Threads256/raw", 0.02, "256 threads by slots, to the same"},
};

constexpr const char* kCountNames[] = {
    "Floor/getppid",
    "Floor/relaxed_load",
    "Scope4/raw_group",
    "Scope4/perfkit_group",
    "Scope4/perfkit_fast",
    "Scope4/papi",
    "Frame/raw_read",
    "Frame/perfkit_mark",
    "Frame/perfkit_mark_fast",
    "Read1/raw",
    "Read1/perfkit",
    "Zone/pair",
    "Zone/pair_fast",
    "Zone/off",
    "Threads256/inherited",
    "Threads256/slots",
    "Threads256/raw",
    "Switch/none",
    "Switch/fast4",
    "Switch/group4",
    "Switch/off",
};

constexpr Bar kRingBars[] = {
    {"Decode40/perfkit_fixed", "Decode40/walk", 1.3, "a small sample by a fixed layout, to a walk over headers"},
    {"Decode40/perfkit_runtime", "Decode40/walk", 3.2, "the same by a layout of run time"},
    {"Decode40/perfkit_fixed", "Decode40/heap_sample", 0.125, "by a fixed layout, to objects on the heap"},
    {"DecodeChain20/perfkit_fixed", "DecodeChain20/walk", 1.3, "a sample with a call chain of 20, fixed"},
    {"DecodeChain20/perfkit_runtime", "DecodeChain20/walk", 3.2, "the same at run time"},
    {"DecodeChain20/perfkit_fixed", "DecodeChain20/heap_sample", 0.125, "fixed, to objects on the heap"},
    {"DecodeStack8K/perfkit_fixed", "DecodeStack8K/walk", 1.3, "a sample with 8 KiB of stack, fixed"},
    {"DecodeStack8K/perfkit_runtime", "DecodeStack8K/walk", 3.2, "the same at run time"},
    {"DecodeStack8K/perfkit_fixed", "DecodeStack8K/heap_sample", 0.125, "fixed, to objects on the heap"},
    {"Merge8/perfkit", "Merge8/heap", 0.2, "8 rings in the order of time, to one heap"},
    {"Merge64/perfkit", "Merge64/heap", 0.2, "64 rings in the order of time, to one heap"},
};

constexpr const char* kRingNames[] = {
    "Decode40/walk",
    "Decode40/perfkit_fixed",
    "Decode40/perfkit_runtime",
    "Decode40/heap_sample",
    "DecodeChain20/walk",
    "DecodeChain20/perfkit_fixed",
    "DecodeChain20/perfkit_runtime",
    "DecodeChain20/heap_sample",
    "DecodeStack8K/walk",
    "DecodeStack8K/perfkit_fixed",
    "DecodeStack8K/perfkit_runtime",
    "DecodeStack8K/heap_sample",
    "Merge2/perfkit",
    "Merge2/heap",
    "Merge8/perfkit",
    "Merge8/heap",
    "Merge64/perfkit",
    "Merge64/heap",
};

constexpr Bar kAdapterBars[] = {
    {"Loop/counted", "Loop/bare", 1.01, "a round of a counted benchmark loop, to the library's own", 0},
    {"Assert/counters", "Assert/region", 5000, "an assertion by counters, to the microsecond that it is about"},
    {"Step/measured", "Step/empty_handler", 1.2, "stepping, to an empty handler of the trap flag's signal", 0},
};

constexpr const char* kAdapterNames[] = {
    "Loop/bare", "Loop/counted", "Assert/region", "Assert/counters", "Step/empty_handler", "Step/measured",
};

constexpr Bar kSampleBars[] = {
    {"Gate/pair", "Gate/getppid", 5, "pausing and resuming a running sampler, to one getppid"},
    {"Snapshot512K", nullptr, 50'000, "a snapshot of 512 KiB: the switch, wall time"},
    {"Throughput/1Mps", nullptr, 30, "the reader's CPU time a record at 1 M/s, none lost: 30 ns are 3 % of a core"},
};

constexpr const char* kSampleNames[] = {
    "Gate/getppid", "Gate/pair", "Snapshot512K", "Throughput/1Mps", "Throughput/apart", "Throughput/merged",
};

constexpr Bar kSymbolizeBars[] = {
    {"Symbol/name", "Symbol/dwfl_addrinfo", 0.0005, "the name of a place that is new, to dwfl_module_addrinfo"},
    {"Symbol/memo", "Symbol/dwfl_addrinfo", 0.0001, "the name of one that was named before, to the same"},
};

constexpr const char* kSymbolizeNames[] = {
    "Symbol/name",        "Symbol/memo",          "Symbol/inline",
    "Symbol/inline_cold", "Symbol/dwfl_addrinfo", "Symbol/dwarf_getscopes",
};

constexpr Method kUsual{.repetitions = 21, .min_seconds = 0.03};

constexpr Suite kSuites[] = {
    {"count_bench", kUsual, kCountBars, kCountNames},
    {"ring_bench", kUsual, kRingBars, kRingNames},
    {"sample_bench", {.repetitions = 11, .min_seconds = 0.03}, kSampleBars, kSampleNames, "--throughput_seconds=60"},
    {"symbolize_bench", {.repetitions = 11, .min_seconds = 0.03}, kSymbolizeBars, kSymbolizeNames},
    // Short cases and a bar of a hundredth: many small samples, so that a burst of other work hits all alike.
    {"adapter_bench", {.repetitions = 61, .min_seconds = 0.005}, kAdapterBars, kAdapterNames},
};

}  // namespace

std::span<const Suite> Suites() { return kSuites; }

std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars) {
  std::vector<Judged> judged;
  for (const Bar& bar : bars) {
    const auto held = QuantileOf(results, bar.name, bar.quantile);
    const auto floor = bar.floor == nullptr ? std::optional(1.0) : QuantileOf(results, bar.floor, bar.quantile);
    judged.push_back({&bar, held && floor && *floor > 0 ? std::optional(*held / *floor) : std::nullopt});
  }
  return judged;
}

}  // namespace bench
