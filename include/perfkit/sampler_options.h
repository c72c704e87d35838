// What a sampler samples (sampler.h): events with their rates, the parts of each sample, rings, and the budget.
#pragma once

#include "perfkit/detail/library_only.h"

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event_type.h"
#include "perfkit/ring_reader.h"

namespace perfkit {

namespace unwind {
class LiveWalker;
}

// Sample every `events` events; for clock events, every `events` nanoseconds. A clock's period below 10,000 is raised
// to that, the kernel's minimum. 0, and 2^63 or more, are InvalidArgument.
struct Period {
  uint64_t events = 1;
};
// Take `hz` samples a second while the thread runs. The kernel adapts the period. 0, and more than
// kernel.perf_event_max_sample_rate, are InvalidArgument. A clock's frequency above 100,000 is lowered to that.
struct Frequency {
  uint64_t hz = 1000;
};
using SampleRate = std::variant<Period, Frequency>;

// Full dumps of the stack beside the short ones of CallStack::UserDump. Each is a sample of its own
// (SamplerRecord::full_stack). An Unwinder completes short dumps from them (UnwinderOptions::stitch_bytes).
struct FullDumps {
  uint32_t every = 0;         // One full dump for each `every` samples; 0 means none.
  uint32_t bytes = 32 << 10;  // Bytes of the stack: a multiple of 8, more than CallStack::stack_bytes, at most 60 KiB.
};

// How call stacks are sampled.
struct CallStack {
  enum class Kind : uint8_t { kNone, kFramePointers, kUserDump, kLive };
  Kind kind = Kind::kNone;
  // Maximum depth in calls; 0 means kernel.perf_event_max_stack, for kLive 1,024, 256 of them `outer`. kFramePointers:
  // more than that sysctl is InvalidArgument.
  uint16_t depth = 0;
  uint32_t stack_bytes = 0;  // kUserDump: bytes of the stack, a multiple of 8, at most 60 KiB.
  FullDumps full{};          // kUserDump.
  std::unique_ptr<unwind::LiveWalker> (*stacks)() = nullptr;  // kLive: perfkit::LiveStacks.
  // Samples in the kernel have the kernel's callers, too (KernelFrames). With dumped and live stacks, that takes 8
  // bytes more for a sample in user code, and about 100 for one in the kernel. No effect if this user may not sample
  // the kernel, with SamplerOptions::user_only, or if no event with a stack includes the kernel. If false, a sample in
  // the kernel has the sampled pc and the user's frames alone.
  bool kernel = true;
  // kLive: how many of the `depth` calls are the outermost ones, if the stack is deeper. Those between are left out
  // (LiveStack::omitted), but the walk takes time for them: 20-60 ns each. 0 means that the walk ends at `depth`, so
  // the root of deeper stacks is not known; if `depth` is 0, too, it means 256. Must be less than `depth` (else
  // InvalidArgument).
  uint16_t outer = 0;

  static constexpr CallStack None() { return {}; }
  // The kernel follows frame pointers. Cheap, but stacks are wrong or short if code has no frame pointers. On arm64
  // the chain lacks the caller of a leaf function: Sample::leaf_caller returns it.
  static constexpr CallStack FramePointers(uint16_t depth = 0) { return {Kind::kFramePointers, depth, 0}; }
  // The kernel copies the registers and `bytes` of the stack into the sample; an Unwinder finds the callers. Only on
  // x86-64 and arm64 (else Unavailable).
  // UserDump(6 << 10, {.every = 16}) takes a quarter of the room of UserDump(32 << 10) and completes nearly as many
  // stacks (docs/sampling.md). FullDumps open each event twice: a hardware event then takes two counters. Not for
  // software events other than clocks, such as page faults, which can't be opened twice.
  static constexpr CallStack UserDump(uint32_t bytes, FullDumps full = {}) { return {Kind::kUserDump, 0, bytes, full}; }
  // The sampled thread walks its own stack in a handler of SIGTRAP, which perfkit installs and never removes. A
  // system call that another signal interrupts may end with EINTR, although the handler of that signal has SA_RESTART;
  // since Linux 6.1 nothing else does (docs/sampling.md, Live stacks). Complete, and without a copy of the stack.
  // Requires RingMode::kStream, a depth of at most 7,900 (a record has at most 64 KiB), and Target::ThisThread,
  // Target::AllThreads or Target::Thread with a thread of this process (else InvalidArgument); at most 16 such samplers
  // exist at once (else ResourceExhausted). `stacks` is perfkit::LiveStacks (component perfkit::dwarf). Each stack is a
  // record of its own: LiveStack. Before Linux 5.13, rings are always Rings::kPerThread, and Open fails
  // (InvalidArgument) unless `user_only` is set or each event with a stack excludes the kernel.
  static constexpr CallStack Live(std::unique_ptr<unwind::LiveWalker> (*stacks)(), uint16_t depth = 0,
                                  uint16_t outer = 0) {
    CallStack stack{Kind::kLive, depth, 0, {}, stacks};
    stack.outer = outer;
    return stack;
  }
};

// Which branches a branch stack holds: perf_event_attr.branch_sample_type.
struct BranchFilter {
  uint64_t bits = 0;

  // Parses the words of `perf record -j` and `simpleperf record -j`: "any,u", "any_call,ind_jmp".
  // Errors: InvalidArgument if a word is unknown; the message lists the known ones.
  static absl::StatusOr<BranchFilter> Parse(std::string_view words);
};

// An event that is sampled.
struct SampledEvent {
  EventSpec event;  // A software event other than a clock may be given at most once.
  // nullopt means period 1 for events that the kernel counts one by one (faults, switches, tracepoints, breakpoints),
  // and 1000 Hz, or kernel.perf_event_max_sample_rate if that is lower, for clocks and hardware events. If samples have
  // the field PERIOD (SamplerOptions::fields), a Period of an event of the first kind must be 1 (else InvalidArgument).
  std::optional<SampleRate> rate{};
  // Siblings: events that are counted in one group with this one. Each sample holds the values of the group
  // (Sample::read), this event's first. Threads can inherit them since Linux 6.12 (before, Open fails: Unavailable).
  std::vector<EventSpec> followers{};
  // Tracepoints: a filter on the fields, e.g. "prev_pid == 0 && prev_comm ~ kworker*"; "" means none. The kernel drops
  // the events that don't match before it counts them. InvalidArgument for other events.
  std::string filter{};
  // If false, its samples have no stack, whatever SamplerOptions::stack is: for frequent events whose location in code
  // does not matter. Not with FullDumps.
  bool stack = true;
};

struct SamplerOptions {
  // With several threads (Target::AllThreads, Target::Process, one that inherits): kPerCpu has one ring for each CPU,
  // shared by all threads, and takes threads x CPUs x (events + 1) + 2 x CPUs descriptors. kPerThread has one ring for
  // each thread, and takes threads x (events + 3) descriptors; a thread that starts later is attached at the next Drain
  // or Start, so its samples until then are missed, and child processes are not sampled. kAuto is kPerCpu, or
  // kPerThread if there are too few descriptors for that (Sampler::ring_status). Other targets have one ring for each
  // CPU that is sampled, or one for the thread.
  enum class Rings : uint8_t { kPerCpu, kPerThread, kAuto };

  std::vector<SampledEvent> events{};
  CallStack stack{};
  // Adds branch stacks to samples. InvalidArgument without a hardware event.
  std::optional<BranchFilter> branches{};
  // Additional fields of samples, as SampleBits: kSampleAddr, kSampleCpu, kSampleWeight, kSampleDataSrc,
  // kSamplePhysAddr, kSampleDataPageSize, kSampleCodePageSize, kSampleRegsUser (the thread's registers in user space),
  // kSampleRegsIntr (the registers of the sampled code, also in the kernel), kSampleCgroup (the number of the thread's
  // cgroup, since Linux 5.7; with side_band, CGROUP records have the paths), and others. InvalidArgument for fields
  // that have options of their own (stack, branches, followers), for AUX, and for kSampleWeight, kSampleDataSrc and
  // kSampleTransaction without a hardware event. Unavailable for registers, except on x86-64 and arm64. All samples of
  // a sampler have the same fields: these, those of the options, and
  //   IDENTIFIER, IP, TID, TIME  always;
  //   PERIOD                     if an event that is not a clock has a Frequency, and with a tracepoint at Period{1}
  //                              that may count several at once (sched:sched_stat_*, or known by its number only);
  //   CPU                        with `switches`;
  //   RAW                        with a tracepoint;
  //   CALLCHAIN                  with CallStack::kFramePointers; with dumped and live stacks, if CallStack::kernel has
  //                              an effect;
  //   READ                       with followers; and with several software events that are not clocks, but before
  //                              Linux 6.12 not if these are inherited.
  uint64_t fields = 0;
  // Samples user space only, even if more is permitted. For single events, use the modifiers ":u" and ":k".
  // InvalidArgument with an event of EventConfig::kernel_side.
  bool user_only = false;

  // Delivers MMAP2, COMM, FORK and EXIT records, which unwinding and symbols need, and with kSampleCgroup CGROUP
  // records: for groups that exist, and for those that are created later, by sampled threads or on sampled CPUs. The
  // first Drain after Start also delivers synthesized records for the threads and mappings that already exist
  // (SamplerRecord::synthesized): for whole CPUs, those of all processes that procfs shows and this user may read
  // (SamplerStats::processes_unread); if children inherit the events, also those of the target's descendants, but not
  // of orphans among them. Start reads them before it enables the events, for up to half a second; the next drains read
  // the others. What these had mapped before that is not known, so that earlier samples have no names. The kernel's
  // records have rings of their own, which always stream and are never paused, so drain a sampler of
  // RingMode::kOverwrite, too.
  bool side_band = false;
  // Delivers SWITCH records, which say when each thread leaves its CPU and returns, and FORK and EXIT records. SWITCH
  // records share the rings of the samples.
  bool switches = false;

  RingMode mode = RingMode::kStream;
  Rings rings = Rings::kAuto;
  // Size of one ring in bytes, rounded up to a power of two. Smaller if this user may not lock that much memory:
  // Sampler::ring_bytes. With side_band, or with a target of several threads (Target::AllThreads, Target::Process, one
  // that inherits), each ring has a ring of the side band beside it, of the same size, but at most 64 KiB.
  size_t ring_bytes = 512 << 10;
  // Maximum for all rings together, in bytes. Rings shrink until they fit.
  size_t memory_bytes = 64 << 20;
  // Bytes in a ring at which poll_fd() wakes, at most half of the ring; 0 means a quarter of the ring, with
  // CallStack::Live at most 8 KiB.
  uint32_t watermark_bytes = 0;
  // CPU budget, as a fraction of one CPU; 0 disables the budget. Requires RingMode::kStream.
  //
  // The cost is measured over windows of at least 100 ms: the CPU time of Drain, visitors included, and of walks of
  // live stacks, plus an estimate of the kernel's time for each sample (SamplerStats::kernel_cpu_ns). If the cost
  // exceeds the budget, or samples are lost in two windows in a row, Drain reduces first the size of the stack, then
  // drops the stack, then reduces the number of samples. It restores them step by step after the cost has stayed below
  // a third of the budget for a while. The layout of records does not change: a shorter stack says so itself, and
  // EventAccounting::represented sums the periods. SamplerStats::decisions lists each decision.
  double cpu_budget = 0;
  // The clock of the records' times, by which rings are merged. In a time namespace, records have the host's time. A
  // process that enters a time namespace by setns must do so before it uses perfkit.
  clockid_t clock_id = CLOCK_MONOTONIC;
};

}  // namespace perfkit
