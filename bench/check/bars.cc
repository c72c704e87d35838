// THE table of bars: the checker, the document and the test use it.
#include "bench/check/bars.h"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

constexpr Bar kCountBars[] = {
    {"Scope4/perfkit_group", "Scope4/raw_group", 1.03, "a scope by the kernel, to two raw reads"},
    {"Scope4/perfkit_fast", "Floor/ticks2", 1.7, "a scope without a system call, to two reads of the tick counter"},
    {"Scope4/perfkit_group", "Scope4/papi", 0.95, "a scope by the kernel, to PAPI's two reads"},
    {"Frame/perfkit_mark", "Frame/raw_read", 1.05, "the end of a frame by the kernel, to one raw read"},
    {"Frame/perfkit_mark_fast", "Floor/ticks2", 1.8,
     "the same without a system call, to two reads of the tick counter"},
    {"Zone/pair", "Scope4/raw_group", 1.05, "a zone by the kernel, to two raw reads"},
    {"Zone/pair_fast", "Floor/ticks2", 2.1, "the same without a system call, to two reads of the tick counter"},
    {"Zone/itt", "Zone/pair_fast", 3, "a task of ITT-annotated code, to a zone without a system call"},
    {"Zone/pair_metrics", "Zone/pair_fast", 1.03, "a zone whose report has columns of formulas, to one without", 0},
    {"Zone/off", "Floor/relaxed_load", 3, "a zone that is switched off, to one relaxed load"},
    {"Zone/tracy_fast", "Zone/pair_fast", 1.1, "a zone of code that is annotated for Tracy, to perfkit's own", 0},
    {"Zone/tracy_off", "Floor/relaxed_load", 3, "the same without a FrameCounter that takes it, to one relaxed load"},
    {"Zone/siblings/1000", "Zone/siblings/10", 1.3, "a zone among 1,000 siblings, to one among 10"},
    {"Zone/refused", "Zone/pair_fast", 1, "a zone of a thread that is not counted, to one without a system call"},
    {"Zone/first_of_thread", nullptr, 100e3, "a thread's first zone, which opens its events"},
    {.name = "Zone/workers",
     .floor = nullptr,
     .limit = 64,
     .what = "KiB of memory that a thread with 36 zones takes",
     .counter = "kib"},
    {"Switch/fast4", "Switch/none", 1.85, "two switches of threads with four events, to threads without"},
    {"Keep/frame", nullptr, 50e3, "a reason to keep the frame under way"},
    {"Analyse/frame", nullptr, 5e6, "a frame of 100 zones, explained by the session's thread"},
    {"Task/switch", "Floor/ticks2", 3, "a task that is resumed and suspended, to two reads of the tick counter"},
    {"Task/switch16", "Task/switch", 1.2, "CPU time of the same while 15 other threads do it, to one thread", 0},
    {"Read1/perfkit", "Read1/raw", 1.05, "one event that needs the kernel, to one raw read"},
    {"Threads256/inherited", "Threads256/raw", 0.25, "256 threads by one inherited group, to a group each"},
    {"Threads256/slots", "Threads256/raw", 0.02, "256 threads by slots, to the same"},
};

constexpr const char* kCountNames[] = {
    "Floor/getppid",
    "Floor/ticks2",
    "Floor/relaxed_load",
    "Scope4/raw_group",
    "Scope4/perfkit_group",
    "Scope4/perfkit_fast",
    "Scope4/papi",
    "Frame/raw_read",
    "Frame/perfkit_mark",
    "Frame/perfkit_mark_fast",
    "Recorder/off",
    "Recorder/on",
    "Keep/frame",
    "Analyse/frame",
    "Read1/raw",
    "Read1/perfkit",
    "Zone/pair",
    "Zone/pair_fast",
    "Zone/itt",
    "Zone/itt_outermost",
    "Zone/pair_metrics",
    "Zone/off",
    "Zone/tracy_fast",
    "Zone/tracy_off",
    "Zone/siblings/10",
    "Zone/siblings/1000",
    "Zone/refused",
    "Zone/first_of_thread",
    "Zone/workers",
    "Task/switch",
    "Task/switch16",
    "Task/switch_to_twice",
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

constexpr Bar kLockBars[] = {
    {"Lock/wrapped", "Lock/bare", 1.15,
     "an interposed lock and unlock that no thread waits for, to the C library's own"},
    {.name = "Lock/alone",
     .floor = nullptr,
     .limit = 8,
     .what = "nanoseconds that they add in a process with one thread",
     .counter = "extra_ns"},
    {.name = "Lock/contended",
     .floor = nullptr,
     .limit = 1.05,
     .what = "threads that take turns, sections of 1 us, recorded: to the C library's own",
     .counter = "ratio"},
};

constexpr const char* kLockNames[] = {"Lock/bare", "Lock/wrapped", "Lock/recorded", "Lock/alone", "Lock/contended"};

constexpr Bar CounterBar(const char* name, double limit, const char* what, const char* counter) {
  return {.name = name, .floor = nullptr, .limit = limit, .what = what, .counter = counter};
}

constexpr Bar kSampleBars[] = {
    {"Gate/pair", "Gate/getppid", 5, "pausing and resuming a running sampler, to one getppid"},
    {"Snapshot512K", nullptr, 50'000, "a snapshot of 512 KiB: the switch, wall time"},
    {"Throughput/1Mps", nullptr, 30, "the reader's CPU time a record at 1 M/s, none lost: 30 ns are 3 % of a core"},
    CounterBar("Live/handler", 1.15, "a live stack, to the kernel's part of it in the same rounds: an empty handler",
               "to_bare_signal"),
    {"Live/handler", "Live/dump16k", 1, "a live stack, to the sampled thread: to a copy of 16 KiB of it"},
    CounterBar("Live/handler", 0.001, "live stacks that do not reach their root, of all", "cut"),
};

constexpr const char* kSampleNames[] = {
    "Gate/getppid", "Gate/pair",    "Snapshot512K",     "Throughput/1Mps", "Throughput/apart", "Throughput/merged",
    "Live/none",    "Live/dump16k", "Live/bare_signal", "Live/signal",     "Live/handler",
};

constexpr Bar kSymbolizeBars[] = {
    {"Symbol/name", "Symbol/dwfl_addrinfo", 0.0005, "the name of a place that is new, to dwfl_module_addrinfo"},
    {"Symbol/memo", "Symbol/dwfl_addrinfo", 0.0001, "the name of one that was named before, to the same"},
    {"Symbol/inline", "Symbol/dwarf_getscopes", 0.0004, "inlined calls and lines of a place that is new, to libdw's"},
    {"Symbol/inline_cold", "Symbol/dwarf_getscopes", 0.025, "the same, when nothing has been read yet"},
};

constexpr const char* kSymbolizeNames[] = {
    "Symbol/name",        "Symbol/memo",          "Symbol/inline",
    "Symbol/inline_cold", "Symbol/dwfl_addrinfo", "Symbol/dwarf_getscopes",
};

constexpr Bar kUnwindBars[] = {
    {"Unwind/*/perfkit", "Unwind/*/libdwfl", 1.0 / 80, "a stack again and again, to libdwfl"},
    {"Unwind/*/perfkit", "Unwind/*/libunwind", 1.0 / 50, "the same, to libunwind; node excluded", 0.5, nullptr, "node"},
    {"Stream/*/perfkit_batch", "Stream/*/libdwfl", 1.0 / 30, "stacks in the order in which they came, in batches"},
    {"Once/*/perfkit_batch", "Once/*/libdwfl", 1.0 / 15, "the same, the CPU's caches evicted before each pass"},
    {"Unwind/sqlite3/perfkit", nullptr, 50, "a stack of SQLite again and again"},
    {"Unwind/node/perfkit", "Unwind/node/libdwfl", 1.0 / 70, "one of a JIT compiler's code, to libdwfl"},
    {"Stream/node/perfkit_batch", "Stream/node/libdwfl", 1.0 / 15, "the same in their order, in batches"},
    {"Cold/clang/perfkit_batch", "Cold/clang/libdwfl", 0.1, "the first 2,500 stacks of a compiler, everything new"},
    {.name = "Cold/clang/perfkit_batch",
     .floor = nullptr,
     .limit = 2 << 20,
     .what = "the heap that this takes",
     .counter = "heap_bytes"},
    {.name = "Unwind/*/perfkit", .floor = nullptr, .limit = 0, .what = "allocations a stack", .counter = "allocations"},
    {.name = "Stream/*/perfkit_batch",
     .floor = nullptr,
     .limit = 0,
     .what = "the same in batches",
     .counter = "allocations"},
    {"Frozen/build", nullptr, 1e6, "the tables of live stacks, built for a MiB of code"},
    CounterBar("Frozen/build", 45 << 10, "the heap that they take", "bytes"),
    CounterBar("Stitch/sqlite3_short", 0.02, "short dumps that stitching leaves incomplete, of SQLite's", "incomplete"),
    CounterBar("Stitch/python3_short", 0.02, "the same of Python's", "incomplete"),
    CounterBar("Stitch/sqlite3_short", 0.3, "the bytes that this takes, of dumps of 32 KiB", "bytes"),
    CounterBar("Stitch/python3_short", 0.3, "the same of Python's", "bytes"),
};

constexpr const char* kUnwindNames[] = {
    "Unwind/sqlite3/perfkit", "Unwind/sqlite3/perfkit_batch", "Unwind/sqlite3/libdwfl", "Unwind/sqlite3/libunwind",
    "Stream/sqlite3/perfkit", "Stream/sqlite3/perfkit_batch", "Stream/sqlite3/libdwfl", "Stream/sqlite3/libunwind",
    "Once/sqlite3/perfkit",   "Once/sqlite3/perfkit_batch",   "Once/sqlite3/libdwfl",   "Once/sqlite3/libunwind",
    "Unwind/python3/perfkit", "Unwind/python3/perfkit_batch", "Unwind/python3/libdwfl", "Unwind/python3/libunwind",
    "Stream/python3/perfkit", "Stream/python3/perfkit_batch", "Stream/python3/libdwfl", "Stream/python3/libunwind",
    "Once/python3/perfkit",   "Once/python3/perfkit_batch",   "Once/python3/libdwfl",   "Once/python3/libunwind",
    "Unwind/cc1plus/perfkit", "Unwind/cc1plus/perfkit_batch", "Unwind/cc1plus/libdwfl", "Unwind/cc1plus/libunwind",
    "Stream/cc1plus/perfkit", "Stream/cc1plus/perfkit_batch", "Stream/cc1plus/libdwfl", "Stream/cc1plus/libunwind",
    "Once/cc1plus/perfkit",   "Once/cc1plus/perfkit_batch",   "Once/cc1plus/libdwfl",   "Once/cc1plus/libunwind",
    "Unwind/clang/perfkit",   "Unwind/clang/perfkit_batch",   "Unwind/clang/libdwfl",   "Unwind/clang/libunwind",
    "Stream/clang/perfkit",   "Stream/clang/perfkit_batch",   "Stream/clang/libdwfl",   "Stream/clang/libunwind",
    "Once/clang/perfkit",     "Once/clang/perfkit_batch",     "Once/clang/libdwfl",     "Once/clang/libunwind",
    "Unwind/xz/perfkit",      "Unwind/xz/perfkit_batch",      "Unwind/xz/libdwfl",      "Unwind/xz/libunwind",
    "Stream/xz/perfkit",      "Stream/xz/perfkit_batch",      "Stream/xz/libdwfl",      "Stream/xz/libunwind",
    "Once/xz/perfkit",        "Once/xz/perfkit_batch",        "Once/xz/libdwfl",        "Once/xz/libunwind",
    "Unwind/perl/perfkit",    "Unwind/perl/perfkit_batch",    "Unwind/perl/libdwfl",    "Unwind/perl/libunwind",
    "Stream/perl/perfkit",    "Stream/perl/perfkit_batch",    "Stream/perl/libdwfl",    "Stream/perl/libunwind",
    "Once/perl/perfkit",      "Once/perl/perfkit_batch",      "Once/perl/libdwfl",      "Once/perl/libunwind",
    "Unwind/cmake/perfkit",   "Unwind/cmake/perfkit_batch",   "Unwind/cmake/libdwfl",   "Unwind/cmake/libunwind",
    "Stream/cmake/perfkit",   "Stream/cmake/perfkit_batch",   "Stream/cmake/libdwfl",   "Stream/cmake/libunwind",
    "Once/cmake/perfkit",     "Once/cmake/perfkit_batch",     "Once/cmake/libdwfl",     "Once/cmake/libunwind",
    "Unwind/node/perfkit",    "Unwind/node/perfkit_batch",    "Unwind/node/libdwfl",    "Unwind/node/libunwind",
    "Stream/node/perfkit",    "Stream/node/perfkit_batch",    "Stream/node/libdwfl",    "Stream/node/libunwind",
    "Once/node/perfkit",      "Once/node/perfkit_batch",      "Once/node/libdwfl",      "Once/node/libunwind",
    "Cold/clang/perfkit",     "Cold/clang/perfkit_batch",     "Cold/clang/libdwfl",     "Cold/clang/libunwind",
    "Stitch/sqlite3_short",   "Stitch/python3_short",         "Frozen/build",
};

constexpr Bar OverheadBar(const char* name, double percent, const char* what) {
  return {.name = name, .floor = nullptr, .limit = percent, .what = what, .counter = "overhead_percent"};
}

// What a session adds to the kernel's own timer, which alone can take more than the bar on a virtual machine.
constexpr Bar OwnBar(const char* name, const char* what) {
  return {.name = name, .floor = nullptr, .limit = 1, .what = what, .counter = "own_percent"};
}

constexpr Bar FileBar(const char* name, double seconds, const char* what) {
  return {.name = name, .floor = nullptr, .limit = seconds, .what = what, .counter = "s_per_100mb"};
}

constexpr Bar kSessionBars[] = {
    OverheadBar("Session/regex/100hz", 0.2, "percent of a thread's CPU time for live stacks, 100 a second"),
    OverheadBar("Session/regex/1khz", 1.5, "the same, 1,000 a second"),
    OverheadBar("Session/interpreter/100hz", 0.2, "of an interpreter, 100 a second"),
    OverheadBar("Session/interpreter/1khz", 1.5, "the same, 1,000 a second"),
    OverheadBar("Session/sqlite/100hz", 0.2, "of SQLite, 100 a second"),
    OverheadBar("Session/sqlite/1khz", 1.5, "the same, 1,000 a second"),
    OverheadBar("Session/zstd/100hz", 0.2, "of zstd, 100 a second"),
    OverheadBar("Session/zstd/1khz", 1.5, "the same, 1,000 a second"),
    OverheadBar("Session/deep1000/1khz", 5, "the same, stacks of 1,000 calls"),
    OwnBar("Session/regex/1khz", "percent at 1,000 a second that are not the kernel's timer"),
    OwnBar("Session/interpreter/1khz", "the same of an interpreter"),
    OwnBar("Session/sqlite/1khz", "the same of SQLite"),
    OwnBar("Session/zstd/1khz", "the same of zstd"),
    {"Aggregate/1M", nullptr, 1e9, "1,000,000 samples into a profile, after unwinding"},
    {"Start/100modules", nullptr, 20e6, "the start of a session, 100 modules mapped"},
    {"Stop/100k", nullptr, 300e6, "the end of one: 100,000 samples, named"},
    {.name = "Snapshot/stream",
     .floor = nullptr,
     .limit = 50,
     .what = "microseconds that a sampled thread stands still at a snapshot",
     .counter = "stall_us"},
    {.name = "Snapshot/overwrite",
     .floor = nullptr,
     .limit = 50,
     .what = "the same with a flight recorder",
     .counter = "stall_us"},
    {"Look/blocked", nullptr, 15'000, "a stack of a sleeping thread, for the thread that examines it"},
    FileBar("Write/folded", 3, "seconds of CPU time for 100 MB of folded stacks"),
    FileBar("Write/perfetto", 3, "the same of a Perfetto trace"),
    FileBar("Write/chrome", 3, "the same of Chrome's JSON"),
    FileBar("Write/callgrind", 10, "the same of Callgrind's format, which is sums"),
    FileBar("Write/pprof", 30, "the same of pprof's format, compressed: some 15,000,000 samples"),
    FileBar("Write/firefox", 60, "the same of Firefox's profile, compressed"),
    FileBar("Write/html", 60, "the same of the page, compressed"),
};

constexpr const char* kSessionNames[] = {
    "Session/regex/100hz",
    "Session/regex/1khz",
    "Session/interpreter/100hz",
    "Session/interpreter/1khz",
    "Session/sqlite/100hz",
    "Session/sqlite/1khz",
    "Session/zstd/100hz",
    "Session/zstd/1khz",
    "Session/deep1000/1khz",
    "Aggregate/1M",
    "Start/100modules",
    "Stop/100k",
    "Snapshot/stream",
    "Snapshot/overwrite",
    "Look/blocked",
    "Look/blocked_anew",
    "Tree/merged",
    "Tree/by_thread",
    "Tree/bottom_up",
    "Write/folded",
    "Write/callgrind",
    "Write/pprof",
    "Write/perfetto",
    "Write/firefox",
    "Write/chrome",
    "Write/html",
};

constexpr Bar kFrameBars[] = {
    OverheadBar("Game/1khz", 1.5, "percent of a game's frame time for a recorder, 1,000 live stacks a second"),
    OverheadBar("Game/200hz", 0.3, "the same, 200 a second"),
    {.name = "Game/1khz",
     .floor = nullptr,
     .limit = 0,
     .what = "percent that the 99th percentile of its frames is longer at least, with 95 % confidence",
     .counter = "p99_low"},
    {.name = "Game/200hz", .floor = nullptr, .limit = 0, .what = "the same, 200 a second", .counter = "p99_low"},
};

constexpr const char* kFrameNames[] = {"Game/1khz", "Game/200hz"};

constexpr Method kDefault{.repetitions = 21, .min_seconds = 0.03};

constexpr Suite kSuites[] = {
    {"count_bench", kDefault, kCountBars, kCountNames},
    {"ring_bench", kDefault, kRingBars, kRingNames},
    {"lock_bench", kDefault, kLockBars, kLockNames},
    {"sample_bench", {.repetitions = 11, .min_seconds = 0.03}, kSampleBars, kSampleNames, "--full"},
    {"session_bench", {.repetitions = 1, .min_seconds = 0.2}, kSessionBars, kSessionNames, "--full"},
    {"frame_bench", {.repetitions = 1, .min_seconds = 0.2}, kFrameBars, kFrameNames, "--full"},
    {"symbolize_bench", {.repetitions = 11, .min_seconds = 0.03}, kSymbolizeBars, kSymbolizeNames},
    {"unwind_bench", {.repetitions = 11, .min_seconds = 0.03}, kUnwindBars, kUnwindNames},
    // Short cases and a bar of a hundredth: many small samples, so that a burst of other work affects all alike.
    {"adapter_bench", {.repetitions = 61, .min_seconds = 0.005}, kAdapterBars, kAdapterNames},
};

std::string WithWord(std::string pattern, std::string_view word) { return pattern.replace(pattern.find('*'), 1, word); }

// Returns the compared value of one case; nullopt if it was not measured.
std::optional<double> Held(const Results& results, std::string_view name, const Bar& bar) {
  if (bar.counter != nullptr) return CounterOf(results, name, bar.counter);
  const auto held = QuantileOf(results, name, bar.quantile);
  if (bar.floor == nullptr || !held) return held;
  const std::string_view pattern = bar.name;
  const size_t before = pattern.find('*');
  std::string floor = bar.floor;
  if (before != pattern.npos) floor = WithWord(floor, name.substr(before, name.size() - (pattern.size() - 1)));
  const auto to = QuantileOf(results, floor, bar.quantile);
  return to && *to > 0 ? std::optional(*held / *to) : std::nullopt;
}

// Returns the value over all workloads. If one was not measured on both sides, the bar counts as not measured: the
// others would be a choice of what to judge.
std::optional<double> HeldOfAll(const Results& results, const Bar& bar) {
  size_t workloads = 0;
  double logarithms = 0, most = 0;
  for (const auto& [name, measured] : results) {
    if (!Matches(bar.name, name) || (bar.without != nullptr && name == WithWord(bar.name, bar.without))) continue;
    const std::optional<double> held = measured.ns.empty() ? std::nullopt : Held(results, name, bar);
    if (!held) return std::nullopt;
    ++workloads;
    logarithms += std::log(*held);
    most = std::max(most, *held);
  }
  if (workloads < kMinWorkloads) return std::nullopt;
  return bar.counter != nullptr ? most : std::exp(logarithms / static_cast<double>(workloads));
}

}  // namespace

std::span<const Suite> Suites() { return kSuites; }

bool Matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after) &&
         name.find('/', star) == name.size() - after.size();
}

std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars) {
  std::vector<Judged> judged;
  for (const Bar& bar : bars) {
    const bool of_all = std::string_view(bar.name).find('*') != std::string_view::npos;
    judged.push_back({&bar, of_all ? HeldOfAll(results, bar) : Held(results, bar.name, bar)});
  }
  return judged;
}

}  // namespace bench
