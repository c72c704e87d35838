// Whole call stacks of samples that hold registers and a copy of the stack, also of code without frame pointers.
//
//   perfkit::Unwinder unwinder;  // of a sampler with CallStack::UserDump(bytes) and SamplerOptions::side_band
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     unwinder.Add(record, sampler->layout());
//     perfkit::Dispatch(record, sampler->layout(), [&](const perfkit::Sample& sample) {
//       perfkit::StackFrame frames[256];
//       const perfkit::UnwoundStack stack = unwinder.Unwind(sample, frames);
//       for (const perfkit::StackFrame& frame : std::span(frames).first(stack.frames)) Use(frame.code());
//     });
//   });
//
// Component perfkit::dwarf: link it to have this. A stack says how it ended: one that did not reach its root is a part.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "perfkit/sample.h"
#include "perfkit/stack_frame.h"

namespace perfkit {

namespace unwind {
class LiveTables;
class LiveWalker;
class UnwindLoop;
class Walker;
}  // namespace unwind
struct SamplerRecord;  // sampler.h

// How long dumps have to be, by what the latest stacks took:
//
//   use.Add(stack);                                 // of each
//   sampler->SetStackBytes(use.BytesFor(0.99));     // now and then
class StackUse {
 public:
  void Add(const UnwoundStack& stack);

  // The least multiple of 1 KiB that this share of them fits in, at most the longest dump there is: that is how many
  // those count for that were cut off. Of the latest stacks, some thousand. 0 when there was none.
  uint32_t BytesFor(double share) const;

 private:
  static constexpr size_t kMax = 60;  // KiB
  std::array<uint32_t, kMax + 1> counts_{};
  uint32_t total_ = 0;
};

// Since the Unwinder was made.
struct UnwinderStats {
  uint64_t stacks = 0, frames = 0;
  uint64_t rule_lookups = 0;      // how often it was asked how a frame's caller is found,
  uint64_t cache_hits = 0;        // and how often the answer was in the cache
  uint64_t slow_frames = 0;       // that needed all registers: about a microsecond each, and one for each frame below
  size_t modules = 0;             // files that were opened,
  size_t unreadable_modules = 0;  // and those that could not be, or were other files by now: they have no information
  size_t table_bytes = 0;         // heap that rules of code take; the files are mapped, and the kernel's to drop
  uint64_t stitched_stacks = 0;   // completed by an earlier one,
  size_t stitch_bytes = 0;        // and the heap that those take which are remembered
};

// What walks of live stacks rest on.
struct LiveStats {
  size_t modules = 0;      // loaded now, as far as is known,
  size_t bare = 0;         // and those of them that say nothing of how callers are found
  size_t table_bytes = 0;  // heap of all tables, also of those that wait to be freed
  size_t retired = 0;      // modules that were unloaded, and whose tables wait until no walk can still be reading them
  uint64_t changes = 0;    // times that modules had come or gone
};

struct UnwinderOptions {
  std::string proc = "/proc";
  // Whole stacks are remembered in so many bytes, to complete those of the same thread that were cut off: of a sampler
  // with FullDumps. Some 100 KiB a thread; those threads give way that had none for the longest time. Then samples have
  // to come in order of time, and are walked one after the other. 0: a stack is what its own sample holds.
  //
  // A stack that was cut off in a call that a remembered one has, too (by its CFA and its function), gets the calls
  // outside of it. That the call is the same one still is likely, not certain: docs/sampling.md has how often it was
  // not. Threads that end are forgotten.
  size_t stitch_bytes = 0;
};

// Knows what processes have mapped, and how the callers of their code are found. For one thread at a time. Moves, never
// copies.
//
// Opens each module's file when the first frame in it is met, maps it, and keeps it mapped; a file that was replaced
// since it ran is noticed and gives no information. Rules are worked out for each function when it is first met;
// after that nothing is allocated and no system call is made. Bytes, registers and files may be hostile: every walk is
// bounded by the room for its frames, and what is odd ends it.
class Unwinder {
 public:
  explicit Unwinder(UnwinderOptions options = {});
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  // Takes MMAP, MMAP2, FORK, EXIT and COMM records, in order of time, and passes over all others. Whether it was one
  // that can change what later pcs mean.
  bool Add(const RawRecord& record, const SampleLayout& layout);

  // What process `pid` has mapped now, instead of what was known of it. NotFound when there is none, PermissionDenied
  // when it may not be looked at.
  absl::Status AddProcess(pid_t pid);

  // The stack of a sample with kSampleTid, kSampleRegsUser and kSampleStackUser, by what was mapped in its process
  // according to the latest record: user code only, innermost first, as many as `frames` has room for.
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);

  // The same of several samples, many at a time in turns, so that one waits for memory while others go on: faster where
  // deep stacks come from memory, as when a ring is drained now and then; slower where all of them are in the caches.
  // Each has its frames in its own equal part of `frames`, in order: those of samples[i] begin at
  // i * (frames.size() / samples.size()). The records of all of them must be there. `stacks`: one each.
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);

  // Adds up what modules take: some microseconds.
  UnwinderStats stats() const;

 private:
  std::unique_ptr<unwind::Walker> walker_;
};

// Unwinding on another thread than the one that drains a sampler, so that the rings are emptied in time however long
// stacks take:
//
//   perfkit::UnwindQueue queue(sampler->layout());
//   std::thread thread([&] {
//     perfkit::Unwinder unwinder;
//     queue.Run(unwinder, [](const perfkit::QueuedStack& stack) { Use(stack.frames); });
//   });
//   sampler->Drain([&](const perfkit::SamplerRecord& record) { queue.Push(record); });  // again and again
//   queue.Finish();
//   thread.join();

struct UnwindQueueOptions {
  size_t bytes = 16 << 20;   // that records may wait in; 256 KiB at least
  size_t max_frames = 512;   // of a stack
};

// A sample that was unwound. All of it lives until the visitor returns.
struct QueuedStack {
  const SamplerRecord& record;
  const Sample& sample;
  const UnwoundStack& stack;
  std::span<const StackFrame> frames;
};

// The accounting: pushed = unwound + no_room + malformed + waiting, and when Run has returned, + stopped.
struct UnwindQueueStats {
  uint64_t pushed = 0;       // samples
  uint64_t unwound = 0;      // given to the visitor
  uint64_t no_room = 0;      // given up because too many waited
  uint64_t malformed = 0;    // not of the layout
  uint64_t waiting = 0;      // or under way
  uint64_t stopped = 0;      // given up because Run has returned: that waited then, or came later
  uint64_t others_lost = 0;  // other records given up: what is mapped is not fully known
  uint64_t max_bytes = 0;    // how many waited when there were most
};

// A queue of records with a fixed size. Push for one thread at a time, Run for another one; the rest for any.
class UnwindQueue {
 public:
  using Visit = absl::FunctionRef<void(const QueuedStack& stack)>;

  explicit UnwindQueue(const SampleLayout& layout, UnwindQueueOptions options = {});
  // Not while Run runs.
  ~UnwindQueue();

  // Copies the record; allocates nothing and waits for nothing. False: it is given up, and in the accounting. Those
  // that an Unwinder passes over are not taken, and true.
  bool Push(const SamplerRecord& record);

  // Unwinds what was pushed, in that order, and waits for more. Returns when all is done that was pushed before Finish,
  // or on Stop as soon as the stacks are found that are under way (16 at most).
  void Run(Unwinder& unwinder, Visit visit);

  // Both may be called from any thread, the visitor's too, and before Run; what is pushed later is given up.
  void Finish();
  void Stop();

  UnwindQueueStats stats() const;

 private:
  std::unique_ptr<unwind::UnwindLoop> loop_;
};

// Walks the stack of the thread that it runs on, where it is: whole, without a copy, also in a signal handler.
//
//   perfkit::LiveUnwinder unwinder;                     // long before, and once a program that loads modules has
//   unwinder.Maintain();                                // done so
//   void OnSignal(int, siginfo_t*, void* context) {
//     perfkit::StackFrame frames[128];
//     const perfkit::UnwoundStack stack = unwinder.InterruptedStack(context, frames);
//
// Holds tables of all code that is loaded: 0.3 MiB, made in 13 ms, with libc, libstdc++ and SQLite (5 MiB of code);
// 2 MiB, made in 0.1 s, with LLVM (122 MiB). Of code that was loaded or made since the last Maintain nothing is known:
// a walk that comes to it ends (StackEnd::kNoMapping). What was unloaded since is noticed, also where something else
// has taken its place. Through code that no module holds, and through modules of other namespaces (dlmopen), frame
// pointers are followed, as guesses. Moves, never copies.
class LiveUnwinder {
 public:
  // Reads all that is loaded.
  LiveUnwinder();
  LiveUnwinder(LiveUnwinder&&) noexcept;
  LiveUnwinder& operator=(LiveUnwinder&&) noexcept;
  // No walk may be under way.
  ~LiveUnwinder();

  // Never in a signal handler; one thread at a time, while others walk. Makes tables of what was loaded since, and
  // frees those of what is gone when no walk can still be reading them. A microsecond when nothing has changed.
  // Unavailable when modules come and go all the time: what was known stays.
  absl::Status Maintain();

  // The calls that led here: the innermost frame is the caller of this. Any thread, any number at once, and handlers,
  // too: no allocation, no lock, no system call that waits; errno is kept. Some 2 KiB of stack; 20-60 ns a frame.
  UnwoundStack CurrentStack(std::span<StackFrame> frames) noexcept;

  // The same for what a signal has interrupted. `context`: the third argument of a handler with SA_SIGINFO.
  UnwoundStack InterruptedStack(const void* context, std::span<StackFrame> frames) noexcept;

  // One thread at a time with Maintain.
  LiveStats stats() const;

 private:
  std::unique_ptr<unwind::LiveTables> tables_;
};

// What CallStack::Live takes: a sampler whose threads walk their own stacks when they are sampled.
std::unique_ptr<unwind::LiveWalker> LiveStacks();

}  // namespace perfkit
