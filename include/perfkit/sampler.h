// Samples: where events happen, as records in rings that this process reads itself.
//
//   auto sampler = perfkit::Sampler::Open({.events = {{"cpu-clock", perfkit::Frequency{1000}}},
//                                          .stack = perfkit::CallStack::FramePointers()},
//                                         perfkit::Target::AllThreads());
//   sampler->Start();
//   ...  // whenever sampler->poll_fd() is readable, or now and then:
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     perfkit::Dispatch(record, sampler->layout(), [](const perfkit::Sample& sample) { Use(*sample.ip()); });
//   });
//
// Each sample is delivered or accounted for. For events of period 1, once the sampler is stopped and drained:
// delivered + duplicates + lost + paused + malformed = what the kernel counted.
#pragma once

#include "perfkit/detail/library_only.h"

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/event_type.h"
#include "perfkit/sample.h"
#include "perfkit/sampler_stats.h"
#include "perfkit/stack_frame.h"
#include "perfkit/target.h"

namespace perfkit {

namespace sample {
class SamplerImpl;
}
namespace unwind {
class LiveWalker;
}

// Sample every `events` events; for clock events, every `events` nanoseconds. The kernel's minimum for clocks is
// 10,000.
struct Period {
  uint64_t events = 1;
};
// Take `hz` samples a second while the thread runs. The kernel adapts the period.
struct Frequency {
  uint64_t hz = 1000;
};
using SampleRate = std::variant<Period, Frequency>;

// Full dumps of the stack beside the short ones of CallStack::UserDump. Each is a sample of its own
// (SamplerRecord::full_stack). An Unwinder completes short dumps from them (UnwinderOptions::stitch_bytes).
struct FullDumps {
  uint32_t every = 0;         // One full dump for each `every` samples; 0 means none.
  uint32_t bytes = 32 << 10;  // Bytes of the stack: a multiple of 8 below 64 KiB.
};

// How call stacks are sampled.
struct CallStack {
  enum class Kind : uint8_t { kNone, kFramePointers, kUserDump, kLive };
  Kind kind = Kind::kNone;
  uint16_t depth = 0;        // Maximum depth in calls; 0 means kernel.perf_event_max_stack, for kLive 512.
  uint32_t stack_bytes = 0;  // kUserDump: bytes of the stack, a multiple of 8 below 64 KiB.
  FullDumps full{};          // kUserDump.
  std::unique_ptr<unwind::LiveWalker> (*stacks)() = nullptr;  // kLive: perfkit::LiveStacks.

  static constexpr CallStack None() { return {}; }
  // The kernel follows frame pointers. Cheap, but stacks are wrong or short if code has no frame pointers. On arm64
  // the chain lacks the caller of a leaf function: Sample::leaf_caller returns it.
  static constexpr CallStack FramePointers(uint16_t depth = 0) { return {Kind::kFramePointers, depth, 0}; }
  // The kernel copies the registers and `bytes` of the stack into the sample; an Unwinder finds the callers.
  // UserDump(6 << 10, {.every = 16}) takes a quarter of the room of UserDump(32 << 10) and completes nearly as many
  // stacks (docs/sampling.md). FullDumps open each event twice: a hardware event then takes two counters. Not for
  // software events other than clocks, such as page faults, which can't be opened twice.
  static constexpr CallStack UserDump(uint32_t bytes, FullDumps full = {}) { return {Kind::kUserDump, 0, bytes, full}; }
  // The sampled thread walks its own stack in a signal handler: complete, and without a copy of the stack. Requires
  // threads of this process. `stacks` is perfkit::LiveStacks (component perfkit::dwarf). Each stack is a record of its
  // own: LiveStack. Before Linux 5.13 rings are always Rings::kPerThread, and only samples in user space have stacks.
  static constexpr CallStack Live(std::unique_ptr<unwind::LiveWalker> (*stacks)(), uint16_t depth = 0) {
    return {Kind::kLive, depth, 0, {}, stacks};
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
  EventSpec event;
  // nullopt means period 1 for what the kernel counts in its code (faults, switches, tracepoints, breakpoints), and
  // 1000 Hz, or kernel.perf_event_max_sample_rate if that is lower, for clocks and hardware events.
  std::optional<SampleRate> rate{};
  // Siblings: events that are counted in one group with this one. Each sample holds the values of the group
  // (Sample::read), this event's first.
  std::vector<EventSpec> followers{};
  // Tracepoints: a filter on the fields, e.g. "prev_pid == 0 && prev_comm ~ kworker*"; "" means none. The kernel drops
  // the events that don't match before it counts them.
  std::string filter{};
  // If false, its samples have no stack, whatever SamplerOptions::stack is: for frequent events whose location in code
  // does not matter. Not with FullDumps.
  bool stack = true;
};

struct SamplerOptions {
  // kPerCpu: one ring for each CPU, shared by all threads. kPerThread: one ring for each thread; a thread that starts
  // later is attached at the next Drain or Start, and its samples until then are missed.
  enum class Rings : uint8_t { kPerCpu, kPerThread };

  std::vector<SampledEvent> events{};
  CallStack stack{};
  std::optional<BranchFilter> branches{};
  // Additional fields of samples, as SampleBits: kSampleAddr, kSampleCpu, kSampleWeight, kSampleDataSrc,
  // kSamplePhysAddr, kSampleDataPageSize, kSampleCodePageSize, kSampleRegsUser (the thread's registers in user space),
  // kSampleRegsIntr (the registers of the sampled code, also in the kernel), …. Samples always have IDENTIFIER, IP, TID
  // and TIME, with a Frequency also PERIOD, and for tracepoints also RAW.
  uint64_t fields = 0;
  // Samples user space only, even if more is permitted. For single events, use the modifiers ":u" and ":k".
  bool user_only = false;

  // Delivers MMAP2, COMM, FORK and EXIT records, which unwinding and symbols need. The first Drain after Start also
  // delivers synthesized records for the threads and mappings that already exist (SamplerRecord::synthesized). These
  // records have rings of their own, which always stream and are never paused, so drain a sampler of
  // RingMode::kOverwrite, too.
  bool side_band = false;
  // Delivers SWITCH records, which say when each thread leaves its CPU and returns, and FORK and EXIT records. SWITCH
  // records share the rings of the samples.
  bool switches = false;

  RingMode mode = RingMode::kStream;
  Rings rings = Rings::kPerCpu;
  // Size of one ring in bytes, rounded up to a power of two. Smaller if this user may not lock that much memory:
  // Sampler::ring_bytes. If many threads are sampled or side_band is set, each ring has a ring of the side band beside
  // it, of the same size, but at most 64 KiB.
  size_t ring_bytes = 512 << 10;
  // Maximum for all rings together, in bytes. Rings shrink until they fit.
  size_t memory_bytes = 64 << 20;
  // Bytes in a ring at which poll_fd() wakes, at most half of the ring; 0 means a quarter of the ring.
  uint32_t watermark_bytes = 0;
  // CPU budget, as a fraction of one CPU; 0 disables the budget. Requires RingMode::kStream.
  //
  // The cost is measured over windows of at least 100 ms: the CPU time of Drain, visitors included, plus an estimate of
  // the kernel's time for each sample (SamplerStats::kernel_cpu_ns). If the cost exceeds the budget, or samples are
  // lost in several windows in a row, Drain reduces first the bytes of the stack, then drops the stack, then reduces
  // the number of samples. It restores them step by step after the cost has stayed below a third of the budget for a
  // while. The layout of records does not change: a shorter stack says so itself, and EventAccounting::represented sums
  // the periods. SamplerStats::decisions lists each decision.
  double cpu_budget = 0;
  // The clock of the records' times, by which rings are merged.
  clockid_t clock_id = CLOCK_MONOTONIC;
};

// A record with its origin. A view: valid until the visitor returns.
struct SamplerRecord : RawRecord {
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  uint32_t event = kNoEvent;  // Samples: index in SamplerOptions::events; else kNoEvent.
  bool synthesized = false;   // Made by perfkit for what existed when the sampler started.
  bool full_stack = false;    // An extra sample that was taken for its stack: FullDumps.
  // A sample that the kernel prepared for another sampler of the same software event on this thread, in this process or
  // perf's. Its id, time, stack and registers follow that sampler's options.
  bool foreign = false;
  // Samples: what this one represents, in events, for clocks in nanoseconds. The sum over an event's samples is
  // EventAccounting::represented, if that is not 0.
  uint64_t weight = 0;
};

// The call stack of a sample, with CallStack::Live. A view: valid as long as its record. Thread-safe to read; does not
// allocate. It belongs to an earlier sample of the same thread and event: to the latest one if that was taken in the
// kernel, otherwise to the latest one whose ip is the first pc. (A later one was taken in the signal's handler.)
// Samples that were taken in the kernel during one system call share one stack.
struct LiveStack {
  uint32_t event = SamplerRecord::kNoEvent;  // Index in SamplerOptions::events. Set by Dispatch, not by Parse.
  uint32_t pid = 0, tid = 0;                 // Of the thread.
  uint64_t time_ns = 0;  // Start of the walk, some microseconds after the sample; by SamplerOptions::clock_id.
  StackEnd end{};        // Why the walk stopped.
  uint32_t guesses = 0;  // Number of frames that were found by an unconfirmed frame pointer.
  Words pcs;             // Innermost first.

  // Returns the number of frames.
  size_t size() const { return pcs.size(); }
  // Returns frame i. Requires i < size().
  StackFrame operator[](size_t i) const noexcept;
  // Copies as many frames as fit, innermost first. Returns their number.
  size_t CopyTo(std::span<StackFrame> frames) const noexcept;

  // Parses a record. Returns nullopt if it is not a live stack. `layout` is Sampler::layout().
  static std::optional<LiveStack> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
  Words marks;  // Data of operator[]: 2 bits for each frame (src/sample/live_record.h).
};

// Samples a target into rings. Movable, not copyable. Not thread-safe: any thread may call it, one at a time. Not
// async-signal-safe.
//
// Nothing runs in the background: rings fill until Drain empties them. In a forked child the copy is empty: its methods
// return FailedPrecondition, Drain returns 0, and it may be destroyed. The child may open its own sampler.
class Sampler {
 public:
  using Event = SampledEvent;
  using Options = SamplerOptions;

  // Opens all events on all threads and CPUs of the target, stopped.
  // Errors: as CounterSet::Open; InvalidArgument also if options contradict each other; ResourceExhausted if not even
  // one page for each ring can be locked, or if descriptors run out (threads x CPUs x events; the message says how many
  // are needed).
  static absl::StatusOr<Sampler> Open(const SamplerOptions& options, Target target = Target::ThisThread());

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Start enables and Stop disables all events, in about 1 us for each event. Start also attaches threads that started
  // since Open. With side_band, the next Drain delivers the synthesized records. If Start fails, all events are
  // disabled. If Stop fails for one event, it still disables the others. After Stop, Drain delivers what the rings
  // still hold. A stopped event costs its thread a little at each context switch: destroy the sampler to avoid that.
  // Errors: FailedPrecondition in a forked child; those of ioctl.
  absl::Status Start();
  absl::Status Stop();
  // Pause stops and Resume restarts writing to the rings, cheap enough for each iteration of a loop. Events keep
  // counting; the samples that are not written count as EventAccounting::paused. SWITCH records are not written either;
  // the side band is not paused. Pausing a paused sampler has no effect, nor has resuming a running one. Errors: as
  // Start.
  absl::Status Pause();
  absl::Status Resume();
  // Changes the rate of event `event`. Takes effect at once; if threads inherit the events (Target::AllThreads and
  // Target::Process with Rings::kPerCpu), at the next Drain, for all threads together. That change leaves no gap,
  // except with CallStack::Live or RingMode::kOverwrite: there nothing is sampled while the rings are drained. Samples
  // in the rings keep their weight (EventAccounting::represented). On an error the event keeps its rate. Errors:
  // InvalidArgument if there is no such event, or if the rate is 0, of the other kind (Period, Frequency) than the
  // event was opened with, a period of 2^63 or more, or a frequency above kernel.perf_event_max_sample_rate;
  // FailedPrecondition in a forked child.
  absl::Status SetRate(size_t event, SampleRate rate);

  // Changes how many bytes of the stack CallStack::UserDump copies. The next Drain while the sampler runs carries it
  // out: it reopens all events, as a decision does (cpu_budget), and restores what decisions have reduced. If events
  // can't be opened, sampling continues unchanged, SamplerStats::decisions_refused counts the failure, and the next
  // Drain tries again. Errors: InvalidArgument if UserDump would not take `bytes`; FailedPrecondition without dumps,
  // with RingMode::kOverwrite, or in a forked child.
  absl::Status SetStackBytes(uint32_t bytes);

  // Returns a descriptor for poll or epoll that is readable once a ring has reached its watermark. The sampler owns it.
  // Call Drain once before the first wait: the descriptor reports new records only.
  int poll_fd() const;

  // Calls visit for the records of all rings in order of time, and frees their room. Returns the number of records.
  // While samples are taken, the youngest 50 us stay in the rings if there are several rings, so that no record is
  // overtaken. A record is valid until visit returns. The visitor must not call the sampler, except layout(). If it
  // throws (not with PERFKIT_NO_EXCEPTIONS), its record counts as delivered, and the next Drain delivers the others.
  //
  // `max_records` bounds the records that one call reads. Upkeep (new threads, cpu_budget, new rates) is done by calls
  // that read fewer records than that. Snapshots are delivered as a whole.
  size_t Drain(absl::FunctionRef<void(const SamplerRecord&)> visit, size_t max_records = SIZE_MAX);

  // RingMode::kOverwrite: a second ring takes over. The next Drain delivers what the first ring holds, newest first,
  // after the side band's records up to now. No record is missed. If other threads are sampled, both rings are written
  // for some microseconds: what happens between from_ns and to_ns (by SamplerOptions::clock_id) is in both.
  // Errors: FailedPrecondition if the sampler was not started, streams, or is in a forked child.
  struct Takeover {
    uint64_t from_ns = 0, to_ns = 0;
  };
  absl::StatusOr<Takeover> Snapshot();

  // Returns the layout of all records of all events. Valid as long as the sampler.
  const SampleLayout& layout() const;
  // Returns the size of one ring after shrinking. With Rings::kPerThread, rings of late threads may be smaller.
  size_t ring_bytes() const;
  // Returns the number of rings, without those of the side band.
  size_t rings() const;
  // Returns OK, or why the rings are smaller than asked for: the limit, and how to raise it.
  const absl::Status& shrunk() const;
  // Returns true if the event was restricted to user space because this user may not observe the kernel.
  bool user_only(size_t event) const;

  // Returns the accounting. Reads the kernel's counts, in some system calls for each thread and CPU.
  SamplerStats stats() const;

 private:
  explicit Sampler(std::unique_ptr<sample::SamplerImpl> impl);
  std::unique_ptr<sample::SamplerImpl> impl_;
};

// As Dispatch of sample.h, for a SamplerRecord. The visitor may also take a LiveStack.
template <class Visitor>
bool Dispatch(const SamplerRecord& record, const SampleLayout& layout, Visitor&& visit) {
  if constexpr (std::is_invocable_v<Visitor&, const LiveStack&>) {
    if (std::optional<LiveStack> stack = LiveStack::Parse(record, layout)) {
      stack->event = record.event;
      visit(std::as_const(*stack));
      return true;
    }
  }
  return Dispatch(static_cast<const RawRecord&>(record), layout, std::forward<Visitor>(visit));
}

// When threads ran and when they waited (off-CPU time). Needs no privileges.
//
//   on ─────── out (preempted?) ─ ─ ─ ─ ─ in ─────── out ─ ─ ─ EXIT

// The time of one thread from its first SWITCH record to its EXIT record, or until now: exactly on_ns + off_ns.
struct ThreadTime {
  uint32_t tid = 0;
  uint64_t on_ns = 0;         // Time on a CPU.
  uint64_t off_ns = 0;        // Time off CPU: blocked, or waiting for a CPU.
  uint64_t preempted_ns = 0;  // Part of off_ns: runnable, but preempted.
  uint64_t switches = 0;      // Times that it left its CPU.
  uint64_t preemptions = 0;   // Part of switches: involuntary ones.
  bool running = false;       // On a CPU, according to its last record.
  bool ended = false;         // An EXIT record was seen.
};

// Adds up the SWITCH records of threads, from a sampler with SamplerOptions::switches. Not thread-safe. Allocates once
// for each thread.
class ThreadTimes {
 public:
  // Adds a SWITCH, EXIT or FORK record; ignores others. Requires records in order of time, as a sampler delivers them:
  // a record that is older than its thread's last one is ignored. An EXIT record ends a thread; a FORK record starts a
  // new one with its tid. Idle threads, which all have tid 0, are ignored.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // Extends the times of all threads that have not ended up to `now_ns`.
  void Until(uint64_t now_ns);

  // Returns the latest thread with this tid, or nullopt if it has no SWITCH record yet.
  std::optional<ThreadTime> Of(uint32_t tid) const;
  // Returns all threads, including ended ones whose tid another thread has now.
  std::vector<ThreadTime> All() const;

 private:
  struct State {
    ThreadTime time;
    uint64_t last_ns = 0;
    bool preempted = false;

    void AdvanceTo(uint64_t now_ns);
    void EndAt(uint64_t now_ns);
  };
  void AddSwitch(const SwitchRecord& change);
  void AddFork(const ForkRecord& fork);

  std::unordered_map<uint32_t, State> threads_;  // By tid: the latest thread that had it.
  std::vector<ThreadTime> replaced_;             // Threads whose tid a later thread has.
};

}  // namespace perfkit
