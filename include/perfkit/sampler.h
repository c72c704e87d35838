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
// Every sample is delivered, or it is in the accounting: delivered + duplicates + lost + paused = what the kernel
// counted, for events of period 1, exactly, once the sampler has stopped and is drained.
#pragma once

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

// Sample every `events` events; for clock events, every `events` nanoseconds, at least 10,000: the kernel's own floor.
struct Period {
  uint64_t events = 1;
};
// So many samples a second while the thread runs: the kernel chooses the period as it goes.
struct Frequency {
  uint64_t hz = 1000;
};
using SampleRate = std::variant<Period, Frequency>;

// A full dump of the stack beside the short ones of CallStack::UserDump, with each `every`th sample, as a sample of its
// own (SamplerRecord::full_stack): what an Unwinder completes the short ones from (UnwinderOptions::stitch_bytes).
struct FullDumps {
  uint32_t every = 0;         // 0: none
  uint32_t bytes = 32 << 10;  // of the stack, a multiple of 8 below 64 KiB
};

// What a sample says about who called.
struct CallStack {
  enum class Kind : uint8_t { kNone, kFramePointers, kUserDump, kLive };
  Kind kind = Kind::kNone;
  uint16_t depth = 0;        // at most so many calls; 0: kernel.perf_event_max_stack; of kLive 512
  uint32_t stack_bytes = 0;  // kUserDump: of the stack, a multiple of 8 below 64 KiB
  FullDumps full{};          // kUserDump
  std::unique_ptr<unwind::LiveWalker> (*stacks)() = nullptr;  // kLive

  static constexpr CallStack None() { return {}; }
  // The kernel follows frame pointers: cheap, and wrong or short where code has none. arm64: without the caller of a
  // leaf, which Sample::leaf_caller has.
  static constexpr CallStack FramePointers(uint16_t depth = 0) { return {Kind::kFramePointers, depth, 0}; }
  // Registers and a copy of the stack, to be unwound by the reader. UserDump(6 << 10, {.every = 16}) takes a quarter of
  // what UserDump(32 << 10) takes, and completes nearly as many stacks (docs/sampling.md). Each event is opened twice
  // for that, so that events of hardware take two counters; events that the kernel counts in software, other than
  // clocks, tracepoints and breakpoints, cannot be.
  static constexpr CallStack UserDump(uint32_t bytes, FullDumps full = {}) { return {Kind::kUserDump, 0, bytes, full}; }
  // The sampled thread walks its own stack, in a signal that its sample sends: whole, and without a copy. Of threads of
  // this process only. `stacks`: perfkit::LiveStacks (component perfkit::dwarf). Stacks are records of their own:
  // LiveStack. Before Linux 5.13 with Rings::kPerThread, whatever was asked, and of samples in user space only.
  static constexpr CallStack Live(std::unique_ptr<unwind::LiveWalker> (*stacks)(), uint16_t depth = 0) {
    return {Kind::kLive, depth, 0, {}, stacks};
  }
};

// Which branches a branch stack holds: perf_event_attr.branch_sample_type.
struct BranchFilter {
  uint64_t bits = 0;

  // "any,u", "any_call,ind_jmp": the words of `perf record -j` and `simpleperf record -j`. InvalidArgument: a word that
  // is none of them, with all that are.
  static absl::StatusOr<BranchFilter> Parse(std::string_view words);
};

// An event that is sampled.
struct SampledEvent {
  EventSpec event;
  // Without one: each time that it happens for what the kernel counts in its code (faults, switches, tracepoints,
  // breakpoints); 1000 times a second, or kernel.perf_event_max_sample_rate, for clocks and hardware events.
  std::optional<SampleRate> rate{};
  // Counted with it, as one group: each sample holds their values (Sample::read), the event's own first.
  std::vector<EventSpec> followers{};
  // Of a tracepoint: which of its events pass, by its fields: "prev_pid == 0 && prev_comm ~ kworker*". The kernel drops
  // the others before it counts them.
  std::string filter{};
};

struct SamplerOptions {
  // Which ring a thread's samples go to. kPerCpu: one ring a CPU for all threads. kPerThread: one a thread; threads
  // that are born later are found and attached at the next Drain or Start, and what they did until then is missed.
  enum class Rings : uint8_t { kPerCpu, kPerThread };

  std::vector<SampledEvent> events{};
  CallStack stack{};
  std::optional<BranchFilter> branches{};
  // Further fields that samples shall have, as SampleBits: kSampleAddr, kSampleCpu, kSampleWeight, kSampleDataSrc,
  // kSamplePhysAddr, kSampleDataPageSize, kSampleCodePageSize, kSampleRegsUser (of the thread in user space) and
  // kSampleRegsIntr (of the code that was sampled, the kernel's too), … IDENTIFIER, IP, TID and TIME are always there,
  // PERIOD with a Frequency, RAW with tracepoints.
  uint64_t fields = 0;
  // User space only, even where more is permitted. Single events: the modifiers ":u" and ":k".
  bool user_only = false;

  // What is mapped, who starts, ends and is renamed: MMAP2, COMM, FORK and EXIT records, for unwinding and symbols. The
  // first Drain after Start delivers what was there at the start in the same words (SamplerRecord::synthesized).
  // They have rings of their own, which stream and are never paused: drain those of RingMode::kOverwrite, too.
  bool side_band = false;
  // SWITCH records: when each thread leaves its CPU, and comes back. They share the samples' rings. With them come FORK
  // and EXIT records.
  bool switches = false;

  RingMode mode = RingMode::kStream;
  Rings rings = Rings::kPerCpu;
  // Of one ring: rounded up to a power of two. Where this user may not lock that much it is less: Sampler::ring_bytes.
  // A ring of the side band, which each ring has beside it if many threads are sampled or side_band is set, takes as
  // much, but at most 64 KiB.
  size_t ring_bytes = 512 << 10;
  // No more than this for all rings together: they shrink until it holds.
  size_t memory_bytes = 64 << 20;
  // poll_fd() wakes when a ring holds this, at most half of the ring; 0: a quarter of it.
  uint32_t watermark_bytes = 0;
  // What sampling may cost, in CPUs: 0.01 is a hundredth of one. 0: whatever it costs, and nothing of what follows. Of
  // each 100 ms or more between two calls of Drain, the cost is the CPU time of Drain, visitors included, and what the
  // kernel is known to take for each sample (SamplerStats::kernel_cpu_ns, an estimate). Above the budget, or when
  // samples are lost again and again, Drain gives up bytes of the stack, then the stack, then samples, and takes them
  // back one by one when the cost has been less than a third of the budget for a while. Records keep their one layout:
  // a shorter stack says so itself, and of periods EventAccounting::represented keeps the sum. Every decision is in
  // SamplerStats::decisions. Streaming rings only; for rings that overwrite nobody drains in time.
  double cpu_budget = 0;
  // Of the records' times. Rings are merged by it.
  clockid_t clock_id = CLOCK_MONOTONIC;
};

// A record, and where it comes from.
struct SamplerRecord : RawRecord {
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  uint32_t event = kNoEvent;  // samples: which of SamplerOptions::events
  bool synthesized = false;   // not of the kernel: what was there when the sampler started
  bool full_stack = false;    // a sample beside the event's own ones, for its stack alone: FullDumps
  // A sample that the kernel has prepared for another sampler of the same software event on this thread (of this
  // process, or perf's): its id, time, stack and registers are by that one's options.
  bool foreign = false;
  // Samples: what this one stands for, in events, or in nanoseconds of a clock. The sum over an event's samples is
  // EventAccounting::represented, if that is kept.
  uint64_t weight = 0;
};

// Who had called, when a thread was sampled: with CallStack::Live. A view, as long-lived as its record.
//
// It is the stack of its thread's latest sample of that event before it. Where that was taken in user space, it is the
// one of them whose ip is the stack's first pc: a later one may have been taken in the signal's handler already.
// Samples that were taken in the kernel during one and the same call of it have one stack together.
struct LiveStack {
  uint32_t event = SamplerRecord::kNoEvent;
  uint32_t pid = 0, tid = 0;
  uint64_t time_ns = 0;  // when the walk began: some microseconds after the sample
  StackEnd end{};        // whether it is whole
  uint32_t guesses = 0;  // frames that nothing vouches for
  Words pcs;             // innermost first

  size_t size() const { return pcs.size(); }
  // Frame i, i < size().
  StackFrame operator[](size_t i) const noexcept;
  // As many as there is room for; how many.
  size_t CopyTo(std::span<StackFrame> frames) const noexcept;

  // Nothing when `record` is no live stack.
  static std::optional<LiveStack> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
  Words marks;  // 2 bits a frame: see live_stack.cc
};

// Samples of a target, in rings. For one thread at a time, any thread. Moves, never copies.
//
// Nothing runs in the background: rings fill until Drain empties them. After fork() the child's copy holds nothing,
// drains nothing, and may be destroyed; the child may open its own.
class Sampler {
 public:
  using Event = SampledEvent;
  using Options = SamplerOptions;

  // Opens all events on all of the target's threads and CPUs, stopped.
  // Errors: those of CounterSet::Open; InvalidArgument also for options that contradict each other; ResourceExhausted
  // when not even one page a ring can be locked, or when there are not enough descriptors (threads x CPUs x events):
  // the message says how many.
  static absl::StatusOr<Sampler> Open(const SamplerOptions& options, Target target = Target::ThisThread());

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Start and Stop switch the events (about 1 us each and event); Start also attaches threads that were born since
  // Open. If Start fails, all events are off; Stop goes on with the others. A stopped event still costs its thread a
  // little at each switch: destroy the sampler to pay nothing.
  absl::Status Start();
  absl::Status Stop();
  // Pause and Resume gate the rings alone: cheap enough for each iteration of a loop. Events go on counting, and what
  // they would have written is `paused` in the accounting. SWITCH records are not written either; the side band goes
  // on.
  absl::Status Pause();
  absl::Status Resume();
  // Changes how often an event is sampled: at once, or, where threads inherit the events (Target::AllThreads and
  // Target::Process with Rings::kPerCpu), for all threads together at the next Drain, without a gap (with
  // CallStack::Live or RingMode::kOverwrite: nothing is sampled while the rings are drained). Samples in the rings
  // keep their weight (EventAccounting::represented). Takes a Period for an event that was opened with a Period, a
  // Frequency for a Frequency. On an error the event goes on at its old rate. Errors: InvalidArgument if the rate is 0,
  // of the other kind, a period of 2^63 or more, or a frequency above kernel.perf_event_max_sample_rate.
  absl::Status SetRate(size_t event, SampleRate rate);

  // Of CallStack::UserDump: how much of the stack is copied, from a call of Drain on that comes while the sampler runs.
  // It opens all events anew, as a decision does (cpu_budget), and takes back what was given up. If they cannot be
  // opened, sampling goes on as it was, SamplerStats::decisions_refused counts it, and the next Drain tries again.
  // InvalidArgument for what UserDump would not take; FailedPrecondition when there are no dumps, or rings overwrite.
  absl::Status SetStackBytes(uint32_t bytes);

  // Readable when a ring has reached its watermark, for poll, epoll and their like. Owned by the sampler. Call Drain
  // once before the first wait: it tells of new records, not of those that are there.
  int poll_fd() const;

  // Calls visit with the records of all rings in order of time, and gives their room back. While samples are being
  // taken, the youngest 50 us stay in the rings if there are several of them, so that none is overtaken. Returns how
  // many were given. Views die when visit returns. The visitor must not use the sampler, except layout(). If it throws
  // (not with PERFKIT_NO_EXCEPTIONS), the record that it was given counts as delivered, and the others are for the next
  // Drain.
  // `max_records` bounds what one call reads, so that a caller gets back to other work; what is left, and upkeep (new
  // threads, cpu_budget, new rates), is for a call that reads less than that. Snapshots are delivered as a whole.
  size_t Drain(absl::FunctionRef<void(const SamplerRecord&)> visit, size_t max_records = SIZE_MAX);

  // RingMode::kOverwrite: a second ring takes over, and what the first one holds is for the next Drain, newest first,
  // after what the side band has told until then. Nothing falls between the two; where other threads are
  // sampled both write for some microseconds: what happens from from_ns to to_ns (by SamplerOptions::clock_id) is in
  // both. FailedPrecondition when not started.
  struct Takeover {
    uint64_t from_ns = 0, to_ns = 0;
  };
  absl::StatusOr<Takeover> Snapshot();

  // The layout of all records, of every event.
  const SampleLayout& layout() const;
  // Of one ring, after shrinking; with Rings::kPerThread those of late threads may be smaller.
  size_t ring_bytes() const;
  size_t rings() const;  // how many, without those of the side band
  // OK, or why the rings are smaller than was asked for: which limit, and how it is raised.
  const absl::Status& shrunk() const;
  // Whether an event covers user space only although more was asked for: this user may not see the kernel.
  bool user_only(size_t event) const;

  // Reads the kernel's counts: some system calls for each thread and CPU.
  SamplerStats stats() const;

 private:
  explicit Sampler(std::unique_ptr<sample::SamplerImpl> impl);
  std::unique_ptr<sample::SamplerImpl> impl_;
};

// Dispatch of sample.h, with the event: a visitor may also take a LiveStack.
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

// When threads ran and when they waited: off-CPU time, for every user.
//
//   on ─────── out (preempted?) ─ ─ ─ ─ ─ in ─────── out ─ ─ ─ EXIT

// What one thread did from its first SWITCH record to its EXIT record, or until now: on_ns + off_ns is the time between
// them, exactly.
struct ThreadTime {
  uint32_t tid = 0;
  uint64_t on_ns = 0;         // on a CPU
  uint64_t off_ns = 0;        // not on any: blocked, or waiting for one
  uint64_t preempted_ns = 0;  // of off_ns: could have run on, but others did
  uint64_t switches = 0;      // times that it left its CPU
  uint64_t preemptions = 0;   // of these: involuntarily
  bool running = false;       // by its last record
  bool ended = false;         // its time grows no more
};

// Adds up the SWITCH records of any number of threads, of a sampler that was opened with SamplerOptions::switches. For
// one thread at a time. Allocates once for each thread.
class ThreadTimes {
 public:
  // Takes SWITCH, EXIT and FORK records, and passes over all others. In order of time, as a sampler gives them: a
  // record of an earlier time than the thread's last one counts for nothing. An EXIT record ends a thread; a FORK
  // record begins another one with that number. Idle threads are passed over: all have the number 0.
  void Add(const RawRecord& record, const SampleLayout& layout);

  // Brings all threads that have not ended up to `now_ns`: what they do now, they have done until then.
  void Until(uint64_t now_ns);

  // The thread that has this number now, or had it last; nullopt if it has no SWITCH record yet.
  std::optional<ThreadTime> Of(uint32_t tid) const;
  // All threads, each once, also those whose number another has now.
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

  std::unordered_map<uint32_t, State> threads_;  // by number: the latest thread that had it
  std::vector<ThreadTime> replaced_;             // threads whose number another has now
};

}  // namespace perfkit
