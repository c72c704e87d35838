// Complete call stacks from samples with registers and a copy of the stack, also for code without frame pointers.
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
// Requires the component perfkit::dwarf. UnwoundStack::end says why unwinding stopped: kRoot means complete.
#pragma once

#include "perfkit/detail/library_only.h"

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
class UnwindLoop;
class Walker;
}  // namespace unwind
struct SamplerRecord;  // sampler_record.h

// Finds the size that dumps of the stack need, from the sizes of recent stacks. Not thread-safe. Does not allocate.
//
//   use.Add(stack);                                 // for each stack
//   sampler->SetStackBytes(use.BytesFor(0.99));     // from time to time
class StackUse {
 public:
  // Counts the result of Unwinder::Unwind.
  void Add(const UnwoundStack& stack);

  // Returns the smallest size of a dump, in bytes, that holds the share `share` (0 to 1) of the recent stacks. It is a
  // multiple of 1 KiB, at most 60 KiB; 0 if no stack was added. All counts are halved when their sum reaches 4096, so
  // older stacks count less. A truncated stack counts as 60 KiB.
  uint32_t BytesFor(double share) const;

 private:
  static constexpr size_t kMax = 60;         // The largest size, in KiB.
  std::array<uint32_t, kMax + 1> counts_{};  // By size in KiB: stacks of that size, older ones with less weight.
  uint32_t total_ = 0;                       // Their sum.
};

// The work of an Unwinder since its construction.
struct UnwinderStats {
  uint64_t stacks = 0, frames = 0;
  uint64_t rule_lookups = 0;  // Lookups of unwind rules.
  uint64_t cache_hits = 0;    // Those of them that the cache answered.
  // Frames whose step needed all registers. To recover these takes about 1 us for each frame, counted from the
  // innermost one.
  uint64_t slow_frames = 0;
  size_t modules = 0;             // Files that were opened.
  size_t unreadable_modules = 0;  // Files that could not be opened or were replaced: they give no information.
  size_t table_bytes = 0;         // Heap bytes of rules. Files are mapped, so the kernel may drop their pages.
  uint64_t stitched_stacks = 0;   // Stacks that were completed from an earlier one.
  size_t stitch_bytes = 0;        // Heap bytes of remembered stacks.
};

struct UnwinderOptions {
  std::string proc = "/proc";
  // Bytes for remembering complete stacks, from which truncated stacks of the same thread are completed; 0 disables it.
  // For samplers with FullDumps. Takes about 100 KiB for each thread; the threads without a stack for the longest time
  // are forgotten first. Requires samples in order of time. Unwind of several samples then walks one after the other.
  //
  // A truncated stack whose outermost call is also in a remembered stack (same CFA, same pc) gets that stack's outer
  // calls, if no stack since then has shown that the call had returned, or if more calls of several remembered stacks
  // agree. That it is the same call is likely, not certain: docs/sampling.md has the measured error.
  // Threads that end are forgotten.
  size_t stitch_bytes = 0;
};

// The result of Unwinder::UnwindWithKernel.
struct JoinedStack {
  uint32_t kernel_frames = 0;  // Number of frames in the kernel: the first ones, StackFrame::is_kernel.
  // Callers in the kernel may be missing: the chain or the room was full, or the sample has no chain.
  bool kernel_cut = false;
  UnwoundStack user;  // The frames after them.

  size_t frames() const { return size_t{kernel_frames} + user.frames; }
  // Returns true if both parts are complete. Always false for kernel threads, which have no user code.
  bool complete() const { return user.complete() && !kernel_cut; }
  bool operator==(const JoinedStack&) const = default;
};

// Unwinds the stacks of samples. Movable, not copyable: a moved-from one may only be assigned to or destroyed. Not
// thread-safe: any thread may call it, one at a time.
//
// Opens and maps each module's file at the first frame in it, and keeps it mapped. A file that was replaced since it
// was mapped by the process gives no information. Computes the rules of a function at the first frame in it; later
// frames allocate nothing and make no system call. Bytes, registers and files may be hostile: a walk is bounded by the
// room for its frames, and ends at the first inconsistency.
class Unwinder {
 public:
  explicit Unwinder(UnwinderOptions options = {});
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  // Adds an MMAP, MMAP2, FORK, EXIT or COMM record; of other records, such as samples, uses only the time. Requires
  // records in order of time. Returns true if the record can change what later pcs mean. If the parent in a FORK record
  // is unknown, reads its mappings in /proc, or if it has ended, those of the child. If one of them has called exec
  // since the FORK, these apply only to records later than the time at which they were read.
  bool Add(const RawRecord& record, const SampleLayout& layout);

  // Replaces the known mappings of process `pid` by its current ones, from /proc. Errors: NotFound if there is no such
  // process; PermissionDenied if this user may not read its mappings.
  absl::Status AddProcess(pid_t pid);

  // Unwinds a sample with kSampleTid, kSampleRegsUser and kSampleStackUser, by the mappings that its process has after
  // the latest record. Writes the frames of user code to `frames`, innermost first, as many as fit. Returns their
  // number and why unwinding stopped.
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);

  // As Unwind, with the kernel's frames before those of user code: for samplers with CallStack::kernel. For a sample in
  // user code, the same as Unwind. A sample in the kernel without a chain gives the sampled pc alone.
  JoinedStack UnwindWithKernel(const Sample& sample, std::span<StackFrame> frames);

  // Unwinds several samples. If recent stacks were deep, unwinds them in turns, so that one waits for memory while
  // others go on. This is faster than one by one if the stacks are not in the CPU's caches, as after a drain, and
  // slower if they are in the caches. The frames of samples[i] begin at frames[i * (frames.size() / samples.size())];
  // its result is stacks[i]. Requires stacks.size() == samples.size(), and the records of all samples to be valid.
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);

  // Returns the statistics. Sums over all modules, in some microseconds.
  UnwinderStats stats() const;

 private:
  std::unique_ptr<unwind::Walker> walker_;
  uint32_t max_chain_ = 0;  // kernel.perf_event_max_stack.
};

// Unwinds on another thread than the one that drains the sampler, so that slow unwinding does not delay draining:
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
  size_t bytes = 16 << 20;  // Room for waiting records, at least 256 KiB.
  size_t max_frames = 512;  // Maximum frames of a stack.
};

// An unwound sample. Valid until the visitor returns.
struct QueuedStack {
  const SamplerRecord& record;
  const Sample& sample;
  const UnwoundStack& stack;
  std::span<const StackFrame> frames;  // Of user code; KernelFrames(sample) has those before them.
};

// pushed = unwound + no_room + malformed + waiting + stopped.
struct UnwindQueueStats {
  uint64_t pushed = 0;     // Samples given to Push.
  uint64_t unwound = 0;    // Samples given to the visitor.
  uint64_t no_room = 0;    // Samples dropped because 7/8 of the queue were full: the rest is for other records.
  uint64_t malformed = 0;  // Samples that did not match the layout.
  // Samples in the queue or being unwound, and those pushed after Finish or Stop; 0 once Run has returned.
  uint64_t waiting = 0;
  // Once Run has returned: samples that were in the queue at Stop, or pushed after Finish or Stop.
  uint64_t stopped = 0;
  uint64_t others_lost = 0;  // Dropped records other than samples: mappings are not fully known.
  uint64_t max_bytes = 0;    // Maximum of bytes that waited at once.
};

// A queue of records with a fixed size. One thread at a time may call Push, another one Run; any thread may call the
// other methods.
class UnwindQueue {
 public:
  using Visit = absl::FunctionRef<void(const QueuedStack& stack)>;

  // Copies `layout`.
  explicit UnwindQueue(const SampleLayout& layout, UnwindQueueOptions options = {});
  // Requires that Run is not running.
  ~UnwindQueue();

  // Copies a record into the queue. Returns false if it was dropped, which UnwindQueueStats counts. Records that an
  // Unwinder ignores are not copied, and the result is true. Does not allocate, lock or wait.
  bool Push(const SamplerRecord& record);

  // Unwinds pushed samples in order, calls visit for each, and waits for more. Returns after Finish when all samples
  // that were pushed before it are done, or after Stop, without visiting the stacks in progress (at most 16).
  void Run(Unwinder& unwinder, Visit visit);

  // Thread-safe; may be called by the visitor, and before Run. Records that are pushed later are dropped.
  void Finish();
  void Stop();

  UnwindQueueStats stats() const;

 private:
  std::unique_ptr<unwind::UnwindLoop> loop_;
};

}  // namespace perfkit
